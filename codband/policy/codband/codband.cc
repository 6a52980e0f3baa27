#include "codband/policy/codband/codband.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "codband/base/check.h"
#include "codband/policy/codband/crp.h"
#include "codband/policy/codband/likelihood.h"
#include "codband/policy/codband/model_pool.h"
#include "codband/policy/codband/period.h"
#include "codband/policy/contributions.h"
#include "codband/policy/scoring.h"
#include "codband/policy/streams.h"
#include "codband/policy/user_table.h"

namespace codband {
namespace {

// All that is kept of one user.
struct UserRecord {
  Period current;
  // The models that closed periods ended on, by period number. The current period's number is the
  // length of this list.
  std::vector<ModelId> closed;
  Contributions past;

  bool has_period() const { return current.model != kNoModel; }
  std::uint32_t period_number() const { return static_cast<std::uint32_t>(closed.size()); }

  void Save(ByteWriter& out) const {
    current.Save(out);
    out.U64(closed.size());
    for (const ModelId model : closed) out.U64(model);
    past.Save(out);
  }
  void Load(ByteReader& in) {
    current.Load(in);
    closed.resize(in.Count("closed periods", sizeof(ModelId)));
    for (ModelId& model : closed) model = in.U64("model of a closed period");
    past.Load(in);
  }
};

class CoDBand final : public Policy {
 public:
  CoDBand(std::size_t dim, const CoDBandOptions& options)
      : Policy(dim),
        options_(options),
        likelihood_(options.likelihood == LikelihoodKind::kJoint ? MakeJointLikelihood(dim)
                                                                 : MakeProductLikelihood(dim)),
        detector_(options.window),
        pool_(dim, options.lambda, options.sigma * options.sigma),
        concentration_(options.a / options.b) {}

  bool Forget(UserId user) override;
  std::size_t model_count() const override { return pool_.size(); }
  void SaveState(ByteWriter& out) const override;
  void LoadState(ByteReader& in) override;

 private:
  void DoChoose(UserId user, ArmsView arms, EventKey key, Decision& decision) const override;
  LearnOutcome DoLearn(const Decision& decision, double reward, EventKey key) override;

  UserRecord NewUser() const;
  ModelId DrawFirstModel(EventKey key) const;
  void LearnLate(UserRecord& user, const Decision& decision, double reward);
  void ResampleModel(Period& period, EventKey key);
  void ClosePeriod(UserRecord& user);
  void CheckLoadedState(ByteReader& in) const;

  CoDBandOptions options_;
  std::unique_ptr<Likelihood> likelihood_;
  WindowDetector detector_;
  ModelPool pool_;
  double concentration_;
  UserTable<UserRecord> users_;
  std::vector<double> log_weights_;  // scratch of ResampleModel
};

UserRecord CoDBand::NewUser() const {
  const std::size_t memory = options_.likelihood == LikelihoodKind::kProduct ? options_.memory : 0;
  return {.current = {.own_regression = GaussianPosterior(dim(), options_.window.ridge, 1),
                      .recent = RecentObservations(dim(), memory),
                      .badness = FlagWindow(options_.window.tau)},
          .closed = {},
          .past = Contributions(dim())};
}

// The model of a user without observations; kNoModel stands for a new one.
ModelId CoDBand::DrawFirstModel(EventKey key) const {
  RandomStream random = StreamFor(key, DrawPurpose::kFirstModel);
  const auto index = DrawFromCrp(pool_, concentration_, random);
  return index ? pool_.model(*index).id : kNoModel;
}

void CoDBand::DoChoose(UserId user, ArmsView arms, EventKey key, Decision& decision) const {
  const UserRecord* record = users_.Find(user);
  if (record != nullptr) decision.period = record->period_number();
  decision.model =
      record != nullptr && record->has_period() ? record->current.model : DrawFirstModel(key);
  const auto index = pool_.IndexOf(decision.model);
  RandomStream random = StreamFor(key, DrawPurpose::kParameter);
  ChooseByThompsonSampling(index ? pool_.model(*index).posterior : pool_.prior(), options_.v,
                           random, arms, decision);
}

LearnOutcome CoDBand::DoLearn(const Decision& decision, double reward, EventKey key) {
  UserRecord& user = users_.FindOrMake(decision.user, [&] { return NewUser(); });
  if (decision.period < user.period_number()) {
    LearnLate(user, decision, reward);
    return {};
  }

  Period& period = user.current;
  if (!user.has_period()) {
    // The model drawn at the visit may be gone by now; then another is drawn.
    period.model = decision.model;
    if (period.model != kNoModel && !pool_.IndexOf(period.model))
      period.model = DrawFirstModel(key);
    if (period.model == kNoModel) period.model = pool_.Create();
    pool_.AddPeriods(period.model, 1, period.data());  // no data yet: this counts the period
  }

  const bool detect = options_.detector == DetectorKind::kWindow;
  if (detect) period.badness.Push(detector_.IsBad(period, decision.features, reward));
  period.Observe(decision.features, reward);
  pool_.Observe(period.model, decision.features, reward);

  ResampleModel(period, key);
  RandomStream random = StreamFor(key, DrawPurpose::kConcentration);
  concentration_ = ResampleConcentration(concentration_, pool_.size(), pool_.total_periods(),
                                         options_.a, options_.b, random);

  if (!detect || !detector_.Fires(period.badness)) return {};
  ClosePeriod(user);
  return {.change_detected = true};
}

void CoDBand::LearnLate(UserRecord& user, const Decision& decision, double reward) {
  const ModelId model = user.closed[decision.period];
  pool_.Observe(model, decision.features, reward);
  user.past.Add(model, decision.features, reward);
}

// The collapsed Gibbs sampler (Algorithm 2). Staying costs nothing; only a move touches the pool.
void CoDBand::ResampleModel(Period& period, EventKey key) {
  const auto own = pool_.IndexOf(period.model);
  CODBAND_CHECK(own.has_value());
  // Both score the user's own model as if D had been taken out; the pool itself changes on a move
  // only.
  log_weights_.assign(pool_.size() + 1, 0.0);
  AddCrpLogWeights(pool_, concentration_, *own, log_weights_);
  likelihood_->AddLogDensities(pool_, period, *own, log_weights_);
  RandomStream random = StreamFor(key, DrawPurpose::kModel);
  const std::size_t drawn = random.CategoricalFromLog(log_weights_);
  const bool is_new = drawn == pool_.size();

  // A user alone on a model who draws a new one would get the same model under another name.
  const bool alone = pool_.model(*own).periods == 1;
  if (drawn == *own || (is_new && alone)) return;

  const ModelId from = period.model;
  period.model = is_new ? pool_.Create() : pool_.model(drawn).id;
  pool_.AddPeriods(period.model, 1, period.data());
  pool_.RemovePeriods(from, 1, period.data());
}

// The observations stay in the pool, and n_k goes on counting the period.
void CoDBand::ClosePeriod(UserRecord& user) {
  user.past.AddPeriod(user.current.model, user.current.data());
  user.closed.push_back(user.current.model);
  user.current.Clear();
  user.current.model = kNoModel;
}

bool CoDBand::Forget(UserId user) {
  const UserRecord* record = users_.Find(user);
  if (record == nullptr) return false;
  if (record->has_period()) {
    pool_.RemovePeriods(record->current.model, 1, record->current.data());
  }
  for (const Contributions::Entry& entry : record->past.entries()) {
    pool_.RemovePeriods(entry.model, entry.periods, entry.stats);
  }
  return users_.Erase(user);
}

void CoDBand::SaveState(ByteWriter& out) const {
  out.Double(concentration_);
  pool_.Save(out);
  users_.Save(out);
}

void CoDBand::LoadState(ByteReader& in) {
  concentration_ = in.Double("concentration");
  if (!(concentration_ > 0)) {
    in.Fail("concentration", fmt::format("is {}, expected > 0", concentration_));
  }
  pool_.Load(in);
  users_.Load(in, [&] { return NewUser(); });
  if (in.ok()) CheckLoadedState(in);
}

// What users say of the models they are and were on must add up to what the pool says.
void CoDBand::CheckLoadedState(ByteReader& in) const {
  struct Tally {
    std::uint64_t periods = 0;
    std::uint64_t observations = 0;
  };
  std::map<ModelId, Tally> tallies;
  users_.ForEach([&](UserId, const UserRecord& user) {
    const auto count = [&](ModelId model, std::uint64_t periods, std::uint64_t observations) {
      tallies[model].periods += periods;
      tallies[model].observations += observations;
    };
    const std::uint64_t m = user.current.data().m();
    if (user.has_period()) count(user.current.model, 1, m);
    if (user.has_period() == (m == 0) || user.current.badness.size() > m ||
        user.current.recent.size() != std::min<std::uint64_t>(user.current.recent.capacity(), m)) {
      in.Fail("current period",
              fmt::format("has {} observations, {} flags and {} recent ones", m,
                          user.current.badness.size(), user.current.recent.size()));
    }
    std::map<ModelId, std::uint64_t> closed;
    for (const ModelId model : user.closed) ++closed[model];
    for (const Contributions::Entry& entry : user.past.entries()) {
      count(entry.model, entry.periods, entry.stats.m());
      if (entry.periods == 0 || closed[entry.model] != entry.periods) {
        in.Fail("closed periods", fmt::format("on model {} do not add up", entry.model));
      }
      closed.erase(entry.model);
    }
    if (!closed.empty()) in.Fail("closed periods", "lack their observations");
  });
  for (std::size_t k = 0; k < pool_.size(); ++k) {
    const PoolModel& model = pool_.model(k);
    const Tally tally = tallies[model.id];
    if (tally.periods != model.periods || tally.observations != model.posterior.stats().m()) {
      in.Fail("model", fmt::format("{} has {} periods and {} observations, its users {} and {}",
                                   model.id, model.periods, model.posterior.stats().m(),
                                   tally.periods, tally.observations));
    }
  }
  if (tallies.size() != pool_.size()) in.Fail("users", "are on models that do not exist");
}

}  // namespace

std::unique_ptr<Policy> MakeCoDBand(std::size_t dim, const CoDBandOptions& options) {
  CoDBandOptions complete = options;
  complete.window.sigma = options.sigma;
  return std::make_unique<CoDBand>(dim, complete);
}

}  // namespace codband
