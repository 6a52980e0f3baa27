#include "codband/policy/codband/codband.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "codband/linalg/kernels.h"
#include "codband/policy/codband/change_window.h"
#include "codband/policy/codband/codband_policy.h"
#include "codband/policy/codband/parts.h"
#include "codband/policy/scoring.h"
#include "codband/policy/streams.h"

namespace codband {
namespace {

// The index of the arm with the largest sum; `added` is empty for none.
std::uint32_t BestOf(std::span<const double> means, std::span<const double> added) {
  std::uint32_t best = 0;
  double most = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < means.size(); ++i) {
    const double sum = means[i] + (added.empty() ? 0 : added[i]);
    if (!(sum > most)) continue;
    best = static_cast<std::uint32_t>(i);
    most = sum;
  }
  return best;
}

}  // namespace

// Lines are those of the paper's Algorithm 1: choosing is its ARM SELECTION, learning its MODEL
// UPDATE and CHANGE DETECTION. The presets and the default go the same way through it; where they
// differ, another part is plugged in.

Propensity CoDBand::DoChoose(UserId user, ArmsView given, EventKey key, Decision& decision) const {
  ChooseWorkspace& work = ChooseWorkspace::OfThisThread();
  const ArmsView arms = See(given, work);
  // Lines 2-15: who the user may be. Nothing is changed yet: the draw is counted with its reward.
  const Outlook outlook = LookAt(user, arms, work);
  std::size_t model = outlook.likeliest;
  FeatureVector mean(inner_dim());
  FeatureVector drawn(inner_dim());
  const bool draw = outlook.draw_chance == 1 ||
                    (outlook.draw_chance > 0 &&
                     StreamFor(key, DrawPurpose::kExplore).Uniform() < outlook.draw_chance);
  if (draw) {
    // Line 9: z. Line 16: θ̃ ~ N(μ_z, v²Σ_z).
    if (outlook.chances[model] < 1) {
      RandomStream random = StreamFor(key, DrawPurpose::kFirstModel);
      model = DrawModel(outlook.chances, random);
    }
    outlook.MeanOn(model, mean.values());
    RandomStream random = StreamFor(key, DrawPurpose::kParameter);
    outlook.DrawOn(model, options_.v, random, drawn.values());
  } else {
    std::ranges::copy(outlook.expected, mean.values().begin());
  }
  // Line 17: the arm with the largest xᵀθ̃.
  const std::span<const double> theta = draw ? drawn : mean;
  decision.arm = draw ? BestArm(theta.first(dim()), outlook.added, arms)
                      : BestOf(outlook.means, outlook.added);
  const std::span<const double> x = arms.arm(decision.arm);
  decision.period = outlook.period;
  decision.model = outlook.IdOf(model);
  decision.score = Score(x, theta) + outlook.Added(decision.arm);
  decision.mean = Score(x, mean) + outlook.ItemMean(decision.arm);
  const double variance = model == outlook.likeliest && !outlook.variances.empty()
                              ? outlook.variances[decision.arm]
                              : outlook.Posterior(model).Variance(Extend(x));
  decision.width = std::sqrt(variance + outlook.ItemVariance(decision.arm));
  return outlook.draw_chance > 0 ? Propensity::Sampled() : Propensity::Certain();
}

LearnOutcome CoDBand::DoLearn(const Decision& decision, double reward, EventKey key,
                              LearnMemo* memo) {
  const ModelPool::Memory memory(pool_, memo);
  UserRecord& user = users_.FindOrMake(decision.user);  // lines 3-6
  restore_point_.Observe(decision.user);
  if (!user.has_period() && user.past.closed_count() == 0) SetRestorePoint(decision.user);
  const ModelId before = user.current.model;
  const LearnOutcome as_before{.before = before, .after = before};
  const bool late = decision.period < user.past.closed_count();  // its period has been closed since
  if (late && user.past.ModelOf(decision.period) == kNoModel) return as_before;  // and forgotten
  if (hyper_.ObserveColumns(pool_, user, decision.features)) restore_point_.End();
  FeatureVector x = See(decision.features);
  const bool beyond = hyper_.LimitInfluence(pool_, user, x.values(), reward);
  if ((beyond || hyper_.DampsLengths()) && traits_.rounds_features) RoundFeatures(x.values());
  // What the item is to everybody, or to the group, says nothing of the user: all that follows
  // learns from the rest. What it is to this user does: it stays in.
  ItemPart part = FindItemPart(decision, user, x, reward, memo);
  const double taken = part.effect.mean - part.effect.own;
  reward -= taken;
  if (late) {
    ledger_.ObserveLate(user, decision.period, x, reward);
    ObserveItem(decision, user, user.past.ModelOf(decision.period), part);
    return as_before;
  }
  const bool has_item = item_effects_ && decision.item != kNoItem;
  const ItemOffset item{.taken = taken, .item = has_item ? &part.item : nullptr};
  const LearnStep step{decision.user, user, x, reward, item, beyond, key, memo};
  if (user.has_period() && detector_->IsOutlier(step)) return as_before;
  hyper_.Observe(pool_, x, reward);                          // σ, λ and the prior mean
  if (!user.has_period()) StartPeriod(user, decision, key);  // lines 8-15

  detector_->Observe(step);  // line 19
  // One that was brought within limits is no longer what the user has sent: it says nothing of how
  // users depart from their model.
  if (random_effects_ && decision.user != kNobody && !beyond) {
    hyper_.WeighDeparture(pool_, user, detector_->ChanceOfOwnModel(user), x, reward, memo);
  }
  user.current.Observe(x, reward);               // line 20
  pool_.Observe(user.current.model, x, reward);  // line 21
  assignment_.CountObservation(user.current);
  if (decision.user == kNobody) {  // who stays where they are
    ObserveItem(decision, user, user.current.model, part);
    assignment_.ResampleConcentration(key);
    pool_.RefreshCovariance(user.current.model);
    return {.before = before, .after = user.current.model};
  }
  bool changed = detector_->Reassign(step);  // line 22: Algorithm 2
  // The reward that showed the change is what the model that they left was off by.
  if (changed) part.telling = false;
  ObserveItem(decision, user, user.current.model, part);
  assignment_.ResampleConcentration(key);  // line 23
  if (detector_->Alarm(user)) {            // lines 25-27
    ledger_.Close(user);
    changed = true;
  }
  // At most one a reward: their next choice needs it.
  if (user.has_period()) pool_.RefreshCovariance(user.current.model);
  return {.change_detected = changed, .before = before, .after = user.current.model};
}

// Lines 8-15. The model drawn at the visit may be gone by now; then another is drawn.
void CoDBand::StartPeriod(UserRecord& user, const Decision& decision, EventKey key) {
  if (decision.user == kNobody) return ledger_.Start(user, pool_.Create());
  ModelId model = pool_.Resolve(decision.model);
  if (traits_.redraws_first_model || (model != kNoModel && !pool_.IndexOf(model))) {
    model = assignment_.DrawFirst(decision.user, key);
  }
  ledger_.Start(user, model == kNoModel ? pool_.Create() : model);
}

Outlook CoDBand::LookAt(UserId user, ArmsView arms, ChooseWorkspace& work) const {
  std::optional<UserRecord> scratch;
  const UserRecord* record = users_.Peek(user, scratch);
  const bool has_items = item_effects_ && !arms.items.empty();
  work.departure_solver.KeepSystem(has_items);  // FindItemPart asks for it
  Outlook outlook = Believe(user, record, work, true);
  outlook.draw_chance = exploration_.draw_chance;
  if (has_items || exploration_.add_worth != nullptr) {
    work.added.assign(arms.count(), 0.0);
    outlook.added = work.added;
  }
  if (has_items) {
    LookAtItems(arms, record == nullptr ? nullptr : record->items.get(), work, outlook);
  }
  if (outlook.draw_chance < 1 || exploration_.add_worth != nullptr) FindMeans(arms, work, outlook);
  if (exploration_.add_worth != nullptr) AddWorth(user, record, arms, work, outlook);
  return outlook;
}

void CoDBand::FindMeans(ArmsView arms, ChooseWorkspace& work, Outlook& outlook) const {
  work.theta.resize(inner_dim());
  outlook.Mean(work.theta);
  outlook.expected = work.theta;
  work.means.resize(arms.count());
  linalg::MultiplyRows(arms.features, outlook.expected.first(dim()), work.means);
  outlook.means = work.means;
}

void CoDBand::AddWorth(UserId user, const UserRecord* record, ArmsView arms, ChooseWorkspace& work,
                       Outlook& outlook) const {
  Uncertainty uncertainty = FindVariances(arms, work, outlook);
  uncertainty.best = BestOf(outlook.means, outlook.item_means);
  if (user != kNobody) {  // who is somebody else each time
    uncertainty.disagreement = FindDisagreement(outlook, outlook.expected, arms, work.disagreement);
  }
  const std::uint64_t rewards = record == nullptr ? 0 : record->current.data.m();
  uncertainty.period_visits = static_cast<double>(rewards + 1);
  exploration_.add_worth(uncertainty, work.added);
}

Uncertainty CoDBand::FindVariances(ArmsView arms, ChooseWorkspace& work, Outlook& outlook) const {
  const Uncertainty uncertainty =
      FindUncertainty(outlook.Posterior(outlook.likeliest), outlook.CovarianceOf(outlook.likeliest),
                      arms, options_.intercept, work.variances, work.prior_variances);
  outlook.variances = uncertainty.variances;
  return uncertainty;
}

Outlook CoDBand::Believe(UserId id, const UserRecord* user, ChooseWorkspace& work,
                         bool renew) const {
  // A record from the archive may be newer than the models.
  const std::optional<std::size_t> own =
      user != nullptr ? pool_.IndexOf(user->current.model) : std::nullopt;
  work.chances_scratch.means.Clear();
  Outlook outlook{.pool = pool_, .given = &work.chances_scratch.means};
  if (user != nullptr) outlook.period = user->past.closed_count();
  if (own && id == kNobody) {
    assignment_.PriorChances(id, user, work.chances);
    CountVisitsOfNobody(*own, user->current.data.m(), work.chances);
  } else if (own) {
    work.chances.resize(pool_.size() + 1);
    detector_->ModelChances(id, *user, renew, work.chances_scratch, work.chances);
  } else {
    assignment_.PriorChances(id, user, work.chances);
  }
  outlook.chances = work.chances;
  outlook.likeliest =
      static_cast<std::size_t>(std::ranges::max_element(work.chances) - work.chances.begin());
  if (own && random_effects_ && id != kNobody) {
    outlook.own = *own;
    outlook.departure = FindDeparture(outlook, *user, work);
  }
  return outlook;
}

// Each of their visits counts like a period of somebody else.
void CoDBand::CountVisitsOfNobody(std::size_t own, std::uint64_t visits,
                                  std::span<double> chances) const {
  const double theirs = static_cast<double>(visits);
  const double others =
      static_cast<double>(pool_.total_periods() - 1) + assignment_.concentration();
  const double share = theirs / (theirs + others);
  for (double& chance : chances) chance *= 1 - share;
  chances[own] += share;
}

std::span<const double> CoDBand::FindDeparture(const Outlook& outlook, const UserRecord& user,
                                               ChooseWorkspace& work) const {
  const double variance = hyper_.DepartureVariance();
  if (variance == 0) return {};
  work.departure.resize(dim());
  work.departure_solver.Solve(outlook.Posterior(outlook.own), user.current.data, variance,
                              work.departure, hyper_.scales().weights());
  return work.departure;
}

ArmsView CoDBand::See(ArmsView arms, ChooseWorkspace& work) const {
  const bool damps = hyper_.DampsLengths();
  if (!hyper_.scales().shifts() && !damps) return arms;
  work.seen.assign(arms.features.begin(), arms.features.end());
  for (std::size_t i = 0; i < arms.count(); ++i) {
    const std::span<double> arm = std::span(work.seen).subspan(i * arms.dim, arms.dim);
    hyper_.scales().Shift(arm);
    if (!damps) continue;
    const double factor = hyper_.LengthFactor(arm);
    for (double& value : arm) value *= factor;
  }
  return {.features = work.seen, .dim = arms.dim, .items = arms.items};
}

FeatureVector CoDBand::See(std::span<const double> features) const {
  FeatureVector x(inner_dim());
  std::ranges::copy(features, x.values().begin());
  hyper_.scales().Shift(x.values().first(dim()));
  Extend(x.values().first(dim()), x.values());
  return x;
}

void CoDBand::Extend(std::span<const double> features, std::span<double> x) const {
  if (features.data() != x.data()) std::ranges::copy(features, x.begin());
  if (options_.intercept) x.back() = 1;
  if (traits_.rounds_features) RoundFeatures(x.first(features.size()));
}

FeatureVector CoDBand::Extend(std::span<const double> features) const {
  FeatureVector x(inner_dim());
  Extend(features, x.values());
  return x;
}

double CoDBand::Score(std::span<const double> arm, std::span<const double> theta) const {
  return linalg::Dot(arm, theta.first(dim())) + (options_.intercept ? theta[dim()] : 0);
}

namespace {

RecencyClock StartClock(const CoDBandOptions& options) {
  RecencyClock clock;
  if (options.decay > 0) clock.constants[0] = options.decay;
  return clock;
}

ItemEffects MakeItemEffects(const CoDBandOptions& options) {
  const auto make = FindPart<ItemEffectsFactory>("items", options.items);
  return make != nullptr ? make(options) : ItemEffects(true);
}

}  // namespace

CoDBand::CoDBand(std::size_t dim, const CoDBandOptions& options)
    : Policy(dim),
      options_(options),
      hyper_(dim, options),
      items_(MakeItemEffects(options)),
      pool_(hyper_.prior(), StartClock(options)),
      users_([this] { return NewUser(); },
             [this](UserRecord& user, ByteReader& in) {
               user.Load(in, dim_before_columns_, inner_dim());
               user.Translate(pool_.aliases());
             }),
      ledger_(pool_, items_, options.history, options.intercept),
      assignment_(options, pool_, ledger_, users_),
      detector_(FindPart<DetectorFactory>("detector",
                                          options.detector)({.options = options_,
                                                             .dim = dim,
                                                             .likelihood = assignment_.likelihood(),
                                                             .pool = pool_,
                                                             .ledger = ledger_,
                                                             .hyper = hyper_,
                                                             .assignment = assignment_})),
      traits_(detector_->traits()),
      dim_before_columns_(pool_.prior().dim()),
      random_effects_(FindPart<bool>("departure", options.departure) &&
                      traits_.supports_random_effects),
      item_effects_(FindPart<ItemEffectsFactory>("items", options.items) != nullptr),
      exploration_(FindPart<Exploration>("explore", options.explore)),
      integral_(inner_dim(), options.v) {
  if (traits_.tempers_clicks) assignment_.TemperClicks(&hyper_.noise());
}

UserRecord CoDBand::NewUser() const {
  UserRecord user{.current = {.data = linalg::SufficientStats::OfColumns(options_.intercept)},
                  .detector = detector_->NewState()};
  if (assignment_.model_prior().uses_recency()) user.current.recency = std::make_unique<Recency>();
  if (const std::size_t memory = assignment_.likelihood().memory(); memory > 0) {
    user.current.recent = std::make_unique<RecentObservations>(inner_dim(), memory);
  }
  return user;
}

std::unique_ptr<Policy> MakeCoDBand(std::size_t dim, const CoDBandOptions& options) {
  return std::make_unique<CoDBand>(dim, options);
}

}  // namespace codband
