#include "codband/policy/codband/codband.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "codband/base/check.h"
#include "codband/policy/codband/codband_policy.h"
#include "codband/policy/streams.h"

namespace codband {
namespace {

// A period is scored as a whole at every observation while it is young: this many observations, or
// one a feature if that is more. Later each time it has grown by half.
constexpr std::size_t kYoung = 16;

// With this chance on one model a user is taken to be there.
constexpr double kSure = 0.9;

RecencyClock StartClock(const CoDBandOptions& options) {
  RecencyClock clock;
  if (options.decay > 0) clock.constants[0] = options.decay;
  return clock;
}

}  // namespace

linalg::LinearPrior StartPrior(std::size_t dim, const CoDBandOptions& options) {
  return linalg::LinearPrior::Isotropic(dim + (options.intercept ? 1 : 0), options.lambda,
                                        options.sigma * options.sigma);
}

CoDBand::CoDBand(std::size_t dim, const CoDBandOptions& options)
    : Policy(dim),
      options_(options),
      young_(std::max(kYoung, dim)),
      prior_(StartPrior(dim, options)),
      pool_(prior_, StartClock(options)),
      likelihood_(options.likelihood == LikelihoodKind::kJoint
                      ? MakeJointLikelihood(prior_.dim())
                      : MakeProductLikelihood(prior_.dim())),
      detector_(options.window_detector),
      model_prior_(options.model_prior, options.decay == 0),
      learner_(prior_.dim(), options.intercept, options.lambda0, options.sigma0),
      change_rate_(options.hazard, options.hyper == HyperKind::kLearned),
      concentration_(options.a / options.b),
      users_([this] { return NewUser(); }),
      points_(IntegrationPoints(prior_.dim())),
      joint_(prior_.dim()),
      filter_(prior_.dim(), options.window),
      reduced_(prior_),
      before_(prior_.dim()),
      rounded_(prior_.dim()) {}

UserRecord CoDBand::NewUser() const {
  UserRecord user{
      .current = {.data = linalg::SufficientStats(inner_dim())},
      .window = ChangeWindow(inner_dim(), bayes() ? options_.window : 0),
  };
  const bool product = options_.likelihood == LikelihoodKind::kProduct;
  if (options_.detector == DetectorKind::kWindow || product) {
    user.current.paper = std::make_unique<PaperRecord>(PaperRecord{
        .own_regression = linalg::GaussianPosterior(inner_dim(), options_.window_detector.ridge, 1),
        .recent = RecentObservations(inner_dim(), product ? options_.memory : 0),
        .badness = FlagWindow(options_.window_detector.tau)});
  }
  return user;
}

void CoDBand::Extend(std::span<const double> features, std::span<double> x) const {
  std::ranges::copy(features, x.begin());
  if (options_.intercept) x.back() = 1;
  if (bayes()) RoundFeatures(x.first(features.size()));
}

CoDBand::Features CoDBand::Extend(std::span<const double> features) const {
  Features x;
  x.size = inner_dim();
  Extend(features, {x.values.data(), x.size});
  return x;
}

Visitor CoDBand::MakeVisitor(UserId id, const UserRecord* user, FriendModels& buffer) const {
  Visitor visitor;
  if (user != nullptr && user->has_period()) {
    visitor.own = pool_.IndexOf(user->current.model);
    visitor.recency = &user->current.recency;
  }
  if (options_.model_prior == ModelPriorKind::kFriends && options_.friends != nullptr) {
    std::size_t count = 0;
    std::optional<UserRecord> scratch;
    for (const UserId friend_id : options_.friends->FriendsOf(id)) {
      const UserRecord* record = users_.Peek(friend_id, scratch);
      if (record == nullptr || !record->has_period()) continue;
      buffer[count++] = record->current.model;
      if (count == buffer.size()) break;
    }
    visitor.friends = {buffer.data(), count};
  }
  return visitor;
}

void CoDBand::PriorChances(UserId id, const UserRecord* user, std::vector<double>& out) const {
  FriendModels buffer;
  out.resize(pool_.size() + 1);
  model_prior_.Weights(pool_, concentration_, MakeVisitor(id, user, buffer), out);
}

// The model of a user without observations; kNoModel stands for a new one.
ModelId CoDBand::DrawFirstModel(UserId id, EventKey key) const {
  thread_local std::vector<double> chances;
  PriorChances(id, nullptr, chances);
  RandomStream random = StreamFor(key, DrawPurpose::kFirstModel);
  const std::size_t drawn = DrawModel(chances, random);
  return drawn < pool_.size() ? pool_.model(drawn).id : kNoModel;
}

LearnOutcome CoDBand::DoLearn(const Decision& decision, double reward, EventKey key,
                              LearnMemo* memo) {
  UserRecord& user = users_.FindOrMake(decision.user);
  const Features x = Extend(decision.features);
  if (decision.period < user.past.closed_count()) {
    LearnLate(user, decision, x, reward);
    return {.before = user.current.model, .after = user.current.model};
  }

  noise_.Watch(reward);
  change_rate_.Observe();
  if (options_.hyper == HyperKind::kLearned &&
      learner_.Observe(pool_, x, reward, noise_.clicks(), prior_)) {
    pool_.SetPrior(prior_);
  }
  const ModelId before = user.current.model;
  if (!user.has_period()) StartPeriod(user, decision, key);
  Period& period = user.current;
  ContinueTrial(user, x, reward);

  const bool review = ReviewDue(user);
  double log_predictive = 0;
  if (bayes()) {
    if (review) {
      log_predictive = LogPredictive(pool_.model(pool_.IndexOf(period.model).value()).posterior,
                                     noise_, x, reward);
    } else {
      PriorChances(decision.user, &user, weights_);
      log_predictive = filter_.Update(pool_, noise_, change_rate_.hazard(), weights_, user.window,
                                      x, reward, user.belief, memo);
    }
    user.window.Push(x, reward, log_predictive);
  }
  if (departs()) WeighDeparture(user, x, reward);
  const bool window_detector = options_.detector == DetectorKind::kWindow;
  if (window_detector) {
    period.paper->badness.Push(
        detector_.IsBad(period, x, reward, std::sqrt(prior_.noise_variance)));
  }
  period.Observe(x, reward);
  pool_.Observe(period.model, x, reward);
  if (options_.model_prior == ModelPriorKind::kHawkes) {
    Recency one;
    one.Add(pool_.clock(), 1);
    period.recency.Add(pool_.clock(), one);
    pool_.AddRecency(period.model, one);
  }

  bool changed = false;
  if (review) {
    Review(decision.user, user, key, memo);
  } else {
    changed = FollowBelief(user);
  }
  RandomStream random = StreamFor(key, DrawPurpose::kConcentration);
  concentration_ = ResampleConcentration(concentration_, pool_.size(), pool_.total_periods(),
                                         options_.a, options_.b, random);
  if (window_detector && detector_.Fires(period)) {
    ClosePeriod(user);
    changed = true;
  }
  return {.change_detected = changed, .before = before, .after = user.current.model};
}

void CoDBand::StartPeriod(UserRecord& user, const Decision& decision, EventKey key) {
  // The model drawn at the visit may be gone by now; then another is drawn.
  ModelId model = decision.model;
  if (bayes() || (model != kNoModel && !pool_.IndexOf(model))) {
    model = DrawFirstModel(decision.user, key);
  }
  if (model == kNoModel) model = pool_.Create();
  Move(user, model);
  pool_.AddPeriods(model, 1, user.current.data);  // no data yet: this counts the period
}

void CoDBand::Move(UserRecord& user, ModelId model) {
  if (user.has_period()) pool_.CountUser(user.current.model, -1);
  user.current.model = model;
  if (user.has_period()) pool_.CountUser(model, 1);
}

// A reward for a period that was closed in the meantime. If the period is no longer remembered,
// neither is the reward: the period's other observations have been taken out as well.
void CoDBand::LearnLate(UserRecord& user, const Decision& decision, std::span<const double> x,
                        double reward) {
  const ModelId model = user.past.ModelOf(decision.period);
  if (model == kNoModel) return;
  noise_.Watch(reward);
  pool_.Observe(model, x, reward);
  user.past.Read(model, before_);
  before_.Add(x, reward);
  rounded_ = before_;
  rounded_.RoundToFloat();
  user.past.Store(model, rounded_);
  pool_.Correct(model, before_, rounded_);
}

// Whether the whole period, with the observation that has just come, is to be scored.
bool CoDBand::ReviewDue(const UserRecord& user) const {
  const std::uint64_t length = user.current.data.m() + 1;
  return !bayes() || length <= young_ || length >= user.next_review;
}

void CoDBand::ContinueTrial(UserRecord& user, std::span<const double> x, double reward) {
  Trial& trial = user.trial;
  if (trial.left == 0) return;
  const auto old_model = pool_.IndexOf(trial.old_model);
  if (!old_model) {
    trial.left = 0;  // nothing to compare with
    return;
  }
  if (trial.old_model == user.current.model) {
    trial.left = 0;
    change_rate_.Refute();  // the user is back
    return;
  }
  const std::size_t model = pool_.IndexOf(user.current.model).value();
  trial.evidence += LogPredictive(pool_.model(model).posterior, noise_, x, reward) -
                    LogPredictive(pool_.model(*old_model).posterior, noise_, x, reward);
  if (--trial.left > 0) return;
  if (trial.evidence > 0) {
    change_rate_.Confirm();
  } else {
    change_rate_.Refute();
  }
}

// Counts only where it is known which model the user is on, and where it is more than the user's.
void CoDBand::WeighDeparture(UserRecord& user, std::span<const double> x, double reward) {
  const linalg::SufficientStats& data = user.current.data;
  if (data.m() == 0 || user.belief.size() == 0 || user.belief.chance(0) < kSure ||
      user.belief.model(0) != user.current.model) {
    return;
  }
  const linalg::GaussianPosterior& model =
      pool_.model(pool_.IndexOf(user.current.model).value()).posterior;
  if (2 * data.m() > model.stats().m()) return;
  const DepartureEvidence evidence = DepartureEvidence::Of(model, data, dim(), x, reward);
  user.departure_evidence.Add(evidence);
  departure_evidence_.Add(evidence);
}

// Gibbs steps: for this user and, while there are young ones, for others too.
void CoDBand::Review(UserId id, UserRecord& user, EventKey key, LearnMemo* memo) {
  RandomStream random = StreamFor(key, DrawPurpose::kModel);
  ResampleModel(id, user, random, memo);
  if (!bayes()) return;
  const std::uint64_t length = user.current.data.m();
  if (length >= young_) {
    if (length == young_) {
      // Where the user belongs is known by now.
      FriendModels buffer;
      model_prior_.Learn(pool_, MakeVisitor(id, &user, buffer),
                         pool_.IndexOf(user.current.model).value());
    }
    user.next_review = length + length / 2;
    return;
  }
  lately_young_[pool_.clock().now % lately_young_.size()] = id;
  RandomStream others = StreamFor(key, DrawPurpose::kOthers);
  for (std::size_t i = 0; i < options_.resample; ++i) {
    const UserId other_id = lately_young_[others.Below(lately_young_.size())];
    UserRecord* other = users_.Find(other_id);
    if (other == nullptr || other_id == id || !other->has_period()) continue;
    if (other->current.data.m() < young_) ResampleModel(other_id, *other, others, memo);
  }
}

// The exponent of a period's likelihood. All of the pool's rewards say how frequent clicks are.
double CoDBand::LikelihoodTrust() const {
  if (!bayes() || !noise_.clicks()) return 1;
  double clicks = 0;
  double observations = 0;
  for (std::size_t k = 0; k < pool_.size(); ++k) {
    const linalg::SufficientStats& stats = pool_.model(k).posterior.stats();
    clicks += stats.q();
    observations += static_cast<double>(stats.m());
  }
  return RewardNoise::TrustInGaussian(clicks / observations);
}

// The collapsed Gibbs sampler (Algorithm 2). Staying costs nothing; only a move touches the pool.
void CoDBand::ResampleModel(UserId id, UserRecord& user, RandomStream& random, LearnMemo* memo) {
  Period& period = user.current;
  const std::size_t own = pool_.IndexOf(period.model).value();
  // Prior and likelihood both score the user's own model as if D had been taken out; the pool
  // itself changes on a move only.
  chances_.resize(pool_.size() + 1);
  LearnMemo::Fill(memo, chances_, [&] {
    std::ranges::fill(chances_, 0.0);
    likelihood_->AddLogDensities(pool_, period, own, chances_);
    PriorChances(id, &user, weights_);
    const double trust = LikelihoodTrust();
    for (std::size_t k = 0; k < chances_.size(); ++k) {
      chances_[k] = trust * chances_[k] + std::log(weights_[k]);
    }
  });
  const std::size_t drawn = random.CategoricalFromLog(chances_);
  const bool is_new = drawn == pool_.size();

  // A user alone on a model who draws a new one would get the same model under another name.
  const bool alone = pool_.model(own).periods == 1;
  if (drawn != own && !(is_new && alone)) {
    const ModelId from = period.model;
    if (is_new) chances_.push_back(0);  // the new model gets the chance of a new one
    Move(user, is_new ? pool_.Create() : pool_.model(drawn).id);
    pool_.AddPeriods(period.model, 1, period.data);
    pool_.AddRecency(period.model, period.recency);
    if (!alone) pool_.RemoveRecency(from, period.recency);
    pool_.RemovePeriods(from, 1, period.data);
    if (alone) chances_.erase(chances_.begin() + static_cast<std::ptrdiff_t>(own));
  }
  if (!bayes()) return;
  // A new model would know of D alone what the user's own knows as well.
  chances_[pool_.IndexOf(period.model).value()] += chances_.back();
  chances_.back() = 0;
  user.belief.Assign(pool_, chances_);
}

// If the filter says that the user is on another model by now, finds out since when and moves the
// observations since. Returns whether the user has changed, and not only been misplaced before.
bool CoDBand::FollowBelief(UserRecord& user) {
  const Belief& belief = user.belief;
  const bool fresh = belief.fresh() > 0.5;
  if (!fresh &&
      (belief.size() == 0 || belief.chance(0) <= 0.5 || belief.model(0) == user.current.model)) {
    return false;
  }
  const PoolModel* target = fresh ? nullptr : &pool_.model(pool_.IndexOf(belief.model(0)).value());
  const std::size_t after = FindChange(user, target);
  Period& period = user.current;
  const ModelId from = period.model;
  if (target != nullptr && WholePeriodMoved(user, *target, after)) {
    const ModelId to = target->id;
    pool_.AddPeriods(to, 1, period.data);
    pool_.AddRecency(to, period.recency);
    if (pool_.model(pool_.IndexOf(from).value()).periods > 1)
      pool_.RemoveRecency(from, period.recency);
    Settle(user, to);
    pool_.RemovePeriods(from, 1, period.data);
    return false;
  }

  const ModelId to = target == nullptr ? pool_.Create() : target->id;
  Features x;
  x.size = inner_dim();
  const std::span<double> values(x.values.data(), x.size);
  rounded_.Clear();  // the observations after the change
  for (std::size_t age = after; age-- > 0;) {
    user.window.ReadFeatures(age, values);
    const double reward = user.window.reward(age);
    pool_.Withdraw(from, values, reward);
    period.data.Remove(values, reward);
    rounded_.Add(values, reward);
  }
  const linalg::SufficientStats moved = rounded_;
  pool_.AddPeriods(to, 1, moved);  // first: closing may drop a model that nobody is on
  ClosePeriod(user);
  period.data = moved;
  user.window.KeepNewest(after);
  user.trial = {.old_model = from, .left = Trial::kLength};
  Settle(user, to);
  return true;
}

void CoDBand::Settle(UserRecord& user, ModelId model) {
  Move(user, model);
  user.belief.Settle(model);
  const std::uint64_t length = user.current.data.m();
  user.next_review = std::max<std::uint64_t>(length + length / 2, young_);
}

// How many of the newest observations are after the change: where the new model explains what came
// after and the old one, learned from what came before alone, what came before. `target` is
// nullptr for a fresh taste, whose densities the filter has, and before which there is something.
std::size_t CoDBand::FindChange(const UserRecord& user, const PoolModel* target) {
  reduced_ = pool_.model(pool_.IndexOf(user.current.model).value()).posterior;
  const std::size_t limit =
      std::min<std::uint64_t>(user.window.size(), user.current.data.m() - (target == nullptr));
  Features x;
  x.size = inner_dim();
  double score = 0;
  double best = -std::numeric_limits<double>::infinity();
  std::size_t after = 1;
  for (std::size_t age = 0; age < limit; ++age) {
    user.window.ReadFeatures(age, {x.values.data(), x.size});
    const double reward = user.window.reward(age);
    reduced_.Remove(x, reward);
    score -= LogPredictive(reduced_, noise_, x, reward);
    double total = score;
    if (target != nullptr) {
      score += LogPredictive(target->posterior, noise_, x, reward);
      total = score;
    } else {
      total += filter_.fresh_log_densities()[age];
    }
    if (total > best) {
      best = total;
      after = age + 1;
    }
  }
  return after;
}

// Whether the observations before the change are better explained by the new model too: then there
// was none.
bool CoDBand::WholePeriodMoved(const UserRecord& user, const PoolModel& target, std::size_t after) {
  const std::uint64_t length = user.current.data.m();
  if (after >= length) return true;
  const PoolModel& own = pool_.model(pool_.IndexOf(user.current.model).value());
  reduced_ = own.posterior;
  before_ = user.current.data;
  Features x;
  x.size = inner_dim();
  for (std::size_t age = 0; age < after; ++age) {
    user.window.ReadFeatures(age, {x.values.data(), x.size});
    before_.Remove(x, user.window.reward(age));
    reduced_.Remove(x, user.window.reward(age));
  }
  const std::array<linalg::JointLikelihood::Model, 2> models = {
      {{.posterior = &target.posterior, .contains_data = false},
       {.posterior = &reduced_, .contains_data = true}}};
  std::array<double, 2> densities;
  joint_.LogDensities(before_, models, densities);
  const double others = own.periods > 1 ? static_cast<double>(own.periods - 1) : concentration_;
  const double share = static_cast<double>(target.periods) /
                       (static_cast<double>(pool_.total_periods()) + concentration_);
  const double moved = densities[0] + std::log(static_cast<double>(target.periods));
  // A change, at any of the observations before.
  const double stayed = densities[1] + std::log(others) +
                        std::log(change_rate_.hazard() * share * static_cast<double>(before_.m()));
  return moved > stayed;
}

// The observations stay in the pool, and n_k goes on counting the period.
void CoDBand::ClosePeriod(UserRecord& user) {
  // First, so that a user never holds more than is remembered.
  if (options_.history > 0 && user.past.models().size() >= options_.history) ForgetOldest(user);
  Period& period = user.current;
  const ModelId model = period.model;
  user.past.Read(model, before_);
  before_.Add(period.data);
  rounded_ = before_;
  rounded_.RoundToFloat();
  user.past.Store(model, rounded_);
  pool_.Correct(model, before_, rounded_);
  user.past.RecencyOf(model).Add(pool_.clock(), period.recency);
  user.past.Close(model);
  period.Clear();
  Move(user, kNoModel);
}

// Takes the oldest remembered period out of the pool. Where a later one was on the same model, its
// sums include the older one's and stay; n_k no longer counts it.
void CoDBand::ForgetOldest(UserRecord& user) {
  const ModelId model = user.past.models().front();
  user.past.DropOldest();
  if (user.past.PeriodsOn(model) > 0) {
    before_.Clear();
    pool_.RemovePeriods(model, 1, before_);
    return;
  }
  user.past.Read(model, before_);
  pool_.RemoveRecency(model, user.past.RecencyOf(model));
  user.past.Erase(model);
  pool_.RemovePeriods(model, 1, before_);
}

std::unique_ptr<Policy> MakeCoDBand(std::size_t dim, const CoDBandOptions& options) {
  return std::make_unique<CoDBand>(dim, options);
}

}  // namespace codband
