#include "codband/policy/codband/bayes_detector.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "codband/linalg/joint_likelihood.h"
#include "codband/linalg/kernels.h"
#include "codband/policy/codband/assignment.h"
#include "codband/policy/codband/change_filter.h"
#include "codband/policy/codband/codband.h"
#include "codband/policy/codband/explained.h"
#include "codband/policy/codband/feature_vector.h"
#include "codband/policy/codband/hyper_parameters.h"
#include "codband/policy/codband/parts.h"
#include "codband/policy/codband/period_ledger.h"
#include "codband/policy/streams.h"

namespace codband {

namespace {

// A period is young for at least this many observations.
constexpr std::size_t kYoung = 16;
// A young period is scored with every observation up to so many, then when it has grown by an
// eighth: a score costs O(d³), and there are as many as columns.
constexpr std::size_t kEveryReward = 32;
constexpr std::uint64_t kYoungGrowth = 8;
// Of more columns a score costs more than it gains with a visit that may bring no reward.
constexpr std::size_t kMostColumns = 128;

// While models have less than two young periods' observations on average, so many times as many
// others are resampled: that is when it is found who shares with whom.
constexpr std::size_t kFormingTimes = 8;
constexpr std::size_t kFormingPeriods = 2;

// With this chance of one model, by the whole of the period, a user's place in the pool is known.
constexpr double kKnown = 0.99;
// With less than this chance of the model that they were on, a user may have changed.
constexpr double kDoubtful = 0.9;

// With more than this chance of another model, a user is on it.
constexpr double kLikely = 0.5;

// Clicks say little: while the model that a user was on has less than this chance, the window is
// long, so that a change can be dated as far back as it took to find it.
constexpr double kSuspicious = 0.99;

// A model whose predictions have less than this share of the noise's variance is well known.
constexpr double kWellKnown = 0.2;

// After an outlier so many observations are taken as they come.
constexpr std::uint8_t kOutlierPause = 16;

// A new model would contain D only, which the user's own model contains too: their chances are one.
void TakeNewAsOwn(std::span<double> chances, std::size_t own) {
  chances[own] += chances.back();
  chances.back() = 0;
}

class BayesDetector final : public ChangeDetector {
 public:
  explicit BayesDetector(const DetectorContext& context)
      : ChangeDetector(context),
        leaves_outliers_out_(FindPart<bool>("outliers", context.options.outliers)),
        window_(context.options.window),
        resample_(context.options.resample),
        pool_(context.pool),
        hyper_(context.hyper),
        assignment_(context.assignment),
        ledger_(context.ledger),
        filter_(pool_.prior().dim(), window_),
        joint_(pool_.prior().dim()),
        reduced_(pool_.prior()),
        before_(linalg::SufficientStats::OfColumns(context.options.intercept)),
        moved_(before_) {}

  DetectorTraits traits() const override {
    return {.rounds_features = true,
            .redraws_first_model = true,
            .tempers_clicks = true,
            .supports_random_effects = true};
  }

  std::unique_ptr<DetectorState> NewState() const override {
    return std::make_unique<FilterState>(context().options.intercept, window_);
  }

  void Grow(std::size_t) override {
    const std::size_t inner_dim = pool_.prior().dim();
    filter_ = ChangeFilter(inner_dim, window_);
    joint_ = linalg::JointLikelihood(inner_dim);
    reduced_ = pool_.prior();
  }

  bool IsOutlier(const LearnStep& step) override;
  void Observe(const LearnStep& step) override;
  bool Reassign(const LearnStep& step) override;

  void ModelChances(UserId id, const UserRecord& user, bool renew, ChancesScratch& scratch,
                    std::span<double> chances) const override;

  double ChanceOfOwnModel(const UserRecord& user) const override {
    const Belief& belief = FilterState::Of(user).belief;
    for (std::size_t i = 0; i < belief.size(); ++i) {
      if (belief.model(i) == user.current.model) return belief.chance(i);
    }
    return 0;
  }

 private:
  // What the filter says of a user: they stay where they are, have been elsewhere all along, or
  // have changed.
  enum class Verdict { kStays, kMisplaced, kChanged };

  const PoolModel& ModelOf(const UserRecord& user) const {
    return pool_.model(pool_.IndexOf(user.current.model).value());
  }
  // A period is young up to this length: as many as columns have been seen, at least kYoung.
  std::size_t young() const { return std::max(kYoung, hyper_.scales().active()); }
  // Whether a period of this length is scored as a whole.
  bool ReviewDue(const UserRecord& user, std::uint64_t length) const {
    return length <= std::min(young(), kEveryReward) || length == young() ||
           length >= user.next_review;
  }
  // Whether the user's place in the pool is known, so that changes can be told from misplacement.
  bool IsPlaced(const UserRecord& user) const {
    return FilterState::Of(user).trial.placed || user.current.data.m() >= young();
  }
  bool PoolIsForming() const {
    return pool_.observations() < kFormingPeriods * young() * pool_.size();
  }
  // For how many observations past its review a period in doubt is not scored as a whole. Clicks of
  // a user whose place was known take long to tell.
  std::size_t LongestDoubt(const UserRecord& user) const {
    const bool known = FilterState::Of(user).trial.placed;  // at the last review
    return hyper_.noise().clicks() && known ? ChangeWindow::kLong * window_ : window_;
  }
  // Whether the filter leaves open where the user is now. A period is not scored as a whole then:
  // it may turn out to be two.
  bool IsInDoubt(const UserRecord& user) const { return ChanceOfOwnModel(user) < kDoubtful; }
  // Whether that may be for a change: of a young period on a model that is well known alone, since
  // a model that is not says as little of the user as of itself.
  bool MayHaveChanged(const LearnStep& step) const {
    if (!IsInDoubt(step.user)) return false;
    const linalg::GaussianPosterior& model = ModelOf(step.user).posterior;
    return step.user.current.data.m() > young() ||
           model.Variance(step.x) <= kWellKnown * model.noise_variance();
  }
  // Whether the user's period is young and may be scored as a whole.
  bool IsUnsettled(const UserRecord& user) const {
    return user.has_period() && user.current.data.m() > 0 && user.current.data.m() < young() &&
           !(IsPlaced(user) && IsInDoubt(user));
  }
  void ContinueTrial(const LearnStep& step);
  void Refute(Trial& trial) {
    if (!trial.in_fashion) hyper_.change_rate().Refute(trial.verdicts);
  }
  void WeighFashion();
  void Review(const LearnStep& step);
  void ResampleOthers(const LearnStep& step);
  void Gibbs(UserId id, UserRecord& user, RandomStream& random, LearnMemo* memo);
  void KeepSuspicion(const UserRecord& user, std::span<double> chances) const;
  Verdict FollowBelief(UserRecord& user);
  std::size_t FindChange(const UserRecord& user, const PoolModel* target);
  bool WholePeriodFits(const UserRecord& user, const PoolModel* target, std::size_t after);
  void Split(UserRecord& user, std::size_t after, ModelId to);
  void Settle(UserRecord& user);

  bool leaves_outliers_out_;
  std::size_t window_;
  std::size_t resample_;
  ModelPool& pool_;
  HyperParameters& hyper_;
  Assignment& assignment_;
  PeriodLedger& ledger_;

  bool filtered_ = false;  // whether the filter has seen the observation that is learned from

  // Scratch.
  ChangeFilter filter_;
  linalg::JointLikelihood joint_;
  std::vector<double> prior_chances_;
  linalg::GaussianPosterior reduced_;  // the user's model without observations that may have left
  linalg::SufficientStats before_;     // the observations before a change
  linalg::SufficientStats moved_;      // those after it
};

// Clicks are never far off.
bool BayesDetector::IsOutlier(const LearnStep& step) {
  if (!leaves_outliers_out_ || hyper_.noise().clicks()) return false;
  std::uint8_t& pause = FilterState::Of(step.user).trial.outlier_pause;
  if (pause > 0) {
    --pause;
    return false;
  }
  if (!step.beyond_limits && SomeModelExplains(pool_, hyper_, ModelOf(step.user), step))
    return false;
  pause = kOutlierPause;
  return true;
}

// Before it is known who shares with whom, the belief of the user's last review is of models that
// were others: they have learned from everybody who came since.
void BayesDetector::ModelChances(UserId id, const UserRecord& user, bool renew,
                                 ChancesScratch& scratch, std::span<double> chances) const {
  const std::uint64_t length = user.current.data.m();
  const std::size_t dim = pool_.prior().dim();
  if (!renew || IsPlaced(user) || length == 0 || length > kEveryReward || dim > kMostColumns) {
    assignment_.PriorChances(id, &user, scratch.prior);
    FilterState::Of(user).belief.Expand(pool_, scratch.prior, chances);
    return;
  }
  scratch.Prepare(dim, context().options);
  assignment_.Posterior(id, user, *scratch.likelihood, scratch.prior, chances);
  const std::size_t own = pool_.IndexOf(user.current.model).value();
  if (pool_.model(own).periods == 1) TakeNewAsOwn(chances, own);
  scratch.means.Find(pool_, user.current.data, own, chances);
}

void BayesDetector::Observe(const LearnStep& step) {
  ContinueTrial(step);
  FilterState& state = FilterState::Of(step.user);
  double log_predictive = 0;
  filtered_ = IsPlaced(step.user);
  if (filtered_) {
    pool_.RefreshVarianceShares();
    assignment_.PriorChances(step.id, &step.user, prior_chances_);
    log_predictive =
        filter_.Update(pool_, hyper_.noise(), hyper_.change_rate().hazard(), prior_chances_,
                       state.window, step.x, step.reward, state.belief, step.memo, step.item);
    WeighFashion();
  } else {
    log_predictive =
        LogPredictive(ModelOf(step.user), hyper_.noise(), step.x, step.reward, step.item);
  }
  state.window.SetLong(hyper_.noise().clicks() && filtered_ &&
                       ChanceOfOwnModel(step.user) < kSuspicious);
  state.window.Push(step.x, step.reward, log_predictive, step.item.taken);
}

// Other rewards than clicks tell of a user's change before many others can. A partition sees the
// rewards of its own users alone.
void BayesDetector::WeighFashion() {
  if (!hyper_.noise().clicks()) return hyper_.change_rate().EndFashion();
  std::uint64_t users = 0;
  for (std::size_t k = 0; k < pool_.size(); ++k) users += pool_.model(k).own_users();
  hyper_.change_rate().Weigh(filter_.change_ratio(), users);
}

bool BayesDetector::Reassign(const LearnStep& step) {
  const std::uint64_t length = step.user.current.data.m();
  if (filtered_) {
    const Verdict verdict = FollowBelief(step.user);
    if (verdict != Verdict::kStays) return verdict == Verdict::kChanged;
    // Doubt that lasts comes from models that are alike, which a review tells apart.
    if (length < step.user.next_review + LongestDoubt(step.user) && MayHaveChanged(step))
      return false;
  }
  if (ReviewDue(step.user, length)) Review(step);
  return false;
}

void BayesDetector::ContinueTrial(const LearnStep& step) {
  Trial& trial = FilterState::Of(step.user).trial;
  ChangeRate& change_rate = hyper_.change_rate();
  if (trial.left == 0) return;
  const auto old_model = pool_.IndexOf(trial.old_model);
  if (!old_model) {
    trial.left = 0;  // nothing to compare with
    return;
  }
  if (trial.old_model == step.user.current.model) {
    trial.left = 0;
    Refute(trial);  // the user is back
    return;
  }
  const RewardNoise& noise = hyper_.noise();
  trial.evidence += LogPredictive(ModelOf(step.user), noise, step.x, step.reward, step.item) -
                    LogPredictive(pool_.model(*old_model), noise, step.x, step.reward, step.item);
  if (--trial.left > 0) return;
  if (trial.evidence > 0) {
    change_rate.Confirm(trial.verdicts);
  } else if (!assignment_.HasLeft(step.id, step.user, *old_model, change_rate.hazard())) {
    Refute(trial);  // else they have left, if for another model than was told
  }
}

// Gibbs steps: for this user and, while their period is young, for others too.
void BayesDetector::Review(const LearnStep& step) {
  RandomStream random = StreamFor(step.key, DrawPurpose::kModel);
  Gibbs(step.id, step.user, random, step.memo);
  const std::uint64_t length = step.user.current.data.m();
  if (length < young()) {
    step.user.next_review = static_cast<std::uint32_t>(length + length / kYoungGrowth + 1);
    assignment_.young_users().Note(step.id, pool_.clock().now);
    ResampleOthers(step);
    return;
  }
  if (length == young()) assignment_.LearnPrior(step.id, step.user);
  step.user.next_review = static_cast<std::uint32_t>(length + length / 2);
}

void BayesDetector::ResampleOthers(const LearnStep& step) {
  RandomStream random = StreamFor(step.key, DrawPurpose::kOthers);
  const std::size_t count = pool_.OwnShare(PoolIsForming() ? kFormingTimes * resample_ : resample_);
  YoungUsers& young_users = assignment_.young_users();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t place = young_users.Draw(random);
    const UserId id = young_users.user(place);
    if (id == step.id) continue;
    UserRecord* user = assignment_.FindNeighbour(id, step.memo);
    if (user == nullptr || !IsUnsettled(*user)) {
      young_users.Drop(place);  // until their next review
      continue;
    }
    Gibbs(id, *user, random, step.memo);
  }
}

void BayesDetector::Gibbs(UserId id, UserRecord& user, RandomStream& random, LearnMemo* memo) {
  FilterState& state = FilterState::Of(user);
  const ModelId before = user.current.model;
  const std::span<double> chances = assignment_.Resample(id, user, random, memo);
  const std::size_t own = pool_.IndexOf(user.current.model).value();
  TakeNewAsOwn(chances, own);
  const bool known = chances[own] >= kKnown;
  if (user.current.model != before) {
    state.window.KeepNewest(0);  // its densities are those of another model
  } else if (known && IsPlaced(user)) {
    KeepSuspicion(user, chances);
  }
  state.belief.Assign(pool_, chances);
  // On a model that others have taught: of one that is the user's own more is to be found out than
  // whether they are on it. Who has raised false alarms is not believed so soon.
  const bool shared = pool_.model(own).posterior.stats().m() >= 2 * user.current.data.m();
  const Verdicts& verdicts = state.trial.verdicts;
  state.trial.placed = known && shared && verdicts.refuted <= verdicts.confirmed;
}

// The period as a whole knows nothing of a change; what the filter has found towards one stays.
void BayesDetector::KeepSuspicion(const UserRecord& user, std::span<double> chances) const {
  const Belief& filtered = FilterState::Of(user).belief;
  const double stayed = ChanceOfOwnModel(user);
  if (stayed < kDoubtful) return;
  for (double& chance : chances) chance *= stayed;
  for (std::size_t i = 0; i < filtered.size(); ++i) {
    const auto other = pool_.IndexOf(filtered.model(i));
    if (other && filtered.model(i) != user.current.model) chances[*other] += filtered.chance(i);
  }
  chances.back() = filtered.fresh();
}

// If the filter says that the user is on another model by now, finds out since when and moves the
// observations since. The user may as well have been misplaced before: then all of them move.
BayesDetector::Verdict BayesDetector::FollowBelief(UserRecord& user) {
  const Belief& belief = FilterState::Of(user).belief;
  const bool fresh = belief.fresh() > kLikely;
  if (!fresh && (belief.size() == 0 || belief.chance(0) <= kLikely ||
                 belief.model(0) == user.current.model)) {
    return Verdict::kStays;
  }
  const PoolModel* target = fresh ? nullptr : &pool_.model(pool_.IndexOf(belief.model(0)).value());
  const std::size_t after = FindChange(user, target);
  const bool changed = !WholePeriodFits(user, target, after);
  const double chance = fresh ? belief.fresh() : belief.chance(0);
  if (changed && chance <= hyper_.noise().sure_of_change()) return Verdict::kStays;
  const ModelId to = target == nullptr ? pool_.Create() : target->id;
  if (changed) {
    Split(user, after, to);
  } else {
    ledger_.Move(user, to);
  }
  Settle(user);
  return changed ? Verdict::kChanged : Verdict::kMisplaced;
}

// The user is on the model of their period for sure. A young period is reviewed with the next
// reward, another one once it has grown by half. What is in the window has been said: as evidence
// against the model that the user was on it would count once more.
void BayesDetector::Settle(UserRecord& user) {
  FilterState& state = FilterState::Of(user);
  state.belief.Settle(user.current.model);
  state.window.KeepNewest(0);
  state.trial.placed = false;
  const std::uint64_t length = user.current.data.m();
  user.next_review = static_cast<std::uint32_t>(
      length < young() ? length + 1 : std::max<std::uint64_t>(length + length / 2, young()));
}

// How many of the newest observations are after the change: where the new model explains what came
// after and the old one, learned from what came before alone, what came before. `target` is
// nullptr for a fresh parameter (the filter has its densities), before which there is something.
std::size_t BayesDetector::FindChange(const UserRecord& user, const PoolModel* target) {
  const ChangeWindow& window = FilterState::Of(user).window;
  reduced_ = ModelOf(user).posterior;
  std::size_t limit =
      std::min<std::uint64_t>(window.size(), user.current.data.m() - (target == nullptr));
  if (target == nullptr) limit = std::min(limit, filter_.fresh_log_densities().size());
  FeatureVector x(pool_.prior().dim());
  double score = 0;
  double best = -std::numeric_limits<double>::infinity();
  std::size_t after = 1;
  for (std::size_t age = 0; age < limit; ++age) {
    window.ReadFeatures(age, x.values());
    const double reward = window.reward(age);
    reduced_.Remove(x, reward);
    score -= LogPredictive(reduced_, hyper_.noise(), x, reward, window.offset(age));
    if (target != nullptr) {
      score += LogPredictive(target->posterior, hyper_.noise(), x, reward, window.offset(age));
    }
    const double total = score + (target == nullptr ? filter_.fresh_log_densities()[age] : 0);
    if (total > best) {
      best = total;
      after = age + 1;
    }
  }
  return after;
}

// Whether the observations before the change are better explained by the new model too: then there
// was none. `target` is nullptr for a fresh parameter.
bool BayesDetector::WholePeriodFits(const UserRecord& user, const PoolModel* target,
                                    std::size_t after) {
  const std::uint64_t length = user.current.data.m();
  if (after >= length) return true;
  const ChangeWindow& window = FilterState::Of(user).window;
  const PoolModel& own = ModelOf(user);
  const double concentration = assignment_.concentration();
  // A user alone on their model would get it again.
  if (target == nullptr && (own.periods == 1 || length > young())) return false;
  reduced_ = own.posterior;
  before_ = user.current.data;
  FeatureVector x(pool_.prior().dim());
  moved_.Clear();
  for (std::size_t age = 0; age < after; ++age) {
    window.ReadFeatures(age, x.values());
    before_.Remove(x, window.reward(age));
    reduced_.Remove(x, window.reward(age));
    moved_.Add(x, window.reward(age));
  }
  const linalg::JointLikelihood::Model stays = {.posterior = &reduced_, .contains_data = true};
  const linalg::JointLikelihood::Model moves = {
      .posterior = target == nullptr ? &pool_.prior() : &target->posterior, .contains_data = false};
  std::array<double, 2> densities;
  joint_.LogDensities(before_, {&stays, 1}, {&densities[1], 1});
  // Given those after the change, which the new model learns from first.
  double after_alone = 0;
  joint_.LogDensities(moved_, {&moves, 1}, {&after_alone, 1});
  joint_.LogDensities(user.current.data, {&moves, 1}, {densities.data(), 1});
  densities[0] -= after_alone;
  const double others = own.periods > 1 ? static_cast<double>(own.periods - 1) : concentration;
  const double there = target == nullptr ? concentration : static_cast<double>(target->periods);
  const double share = there / (static_cast<double>(pool_.total_periods()) + concentration);
  const double moved = densities[0] + std::log(there);
  // A change, at any observation of the window.
  const double dates = static_cast<double>(std::min<std::uint64_t>(before_.m(), window.size()));
  const double hazard = hyper_.change_rate().hazard();
  const double stayed = densities[1] + std::log(others) + std::log(hazard * share * dates);
  return moved > stayed;
}

// Closes the period before its `after` newest observations, with which a new one begins on `to`.
void BayesDetector::Split(UserRecord& user, std::size_t after, ModelId to) {
  FilterState& state = FilterState::Of(user);
  Period& period = user.current;
  const ModelId from = period.model;
  FeatureVector x(pool_.prior().dim());
  moved_.Clear();
  for (std::size_t age = after; age-- > 0;) {
    state.window.ReadFeatures(age, x.values());
    const double reward = state.window.reward(age);
    pool_.Withdraw(from, x, reward);
    period.data.Remove(x, reward);
    moved_.Add(x, reward);
  }
  ledger_.TakeOutItems(user, after - 1);  // the newest has not come to its item
  pool_.AddPeriods(to, 1, moved_);        // first: closing may drop a model that nobody is on
  ledger_.Close(user);
  period.data = moved_;
  ledger_.Rename(user, to);
  // A change on trial, over before its end, is judged by what there was.
  if (state.trial.left > 0 && !(state.trial.evidence > 0)) {
    Refute(state.trial);
  }
  state.trial.Start(from, hyper_.change_rate().in_fashion());
}

}  // namespace

std::unique_ptr<ChangeDetector> MakeBayesDetector(const DetectorContext& context) {
  return std::make_unique<BayesDetector>(context);
}

}  // namespace codband
