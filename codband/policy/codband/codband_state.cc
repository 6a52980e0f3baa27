#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "codband/policy/codband/codband_policy.h"

namespace codband {

bool CoDBand::Forget(UserId id) {
  UserRecord* user = users_.Find(id);
  if (user == nullptr) return false;
  if (user->has_period()) {
    pool_.RemoveRecency(user->current.model, user->current.recency);
    pool_.CountUser(user->current.model, -1);
    pool_.RemovePeriods(user->current.model, 1, user->current.data);
  }
  for (const PastPeriods::Entry& entry : user->past.entries()) {
    entry.data.Read(before_);
    pool_.RemoveRecency(entry.model, entry.recency);
    pool_.RemovePeriods(entry.model, user->past.PeriodsOn(entry.model), before_);
  }
  departure_evidence_.Remove(user->departure_evidence);
  users_.Erase(id);
  std::ranges::replace(lately_young_, id, UserId{0});  // as to begin with
  if (pool_.size() == 0) {
    // Nobody is left: as to begin with.
    prior_ = StartPrior(dim(), options_);
    change_rate_ = ChangeRate(options_.hazard, options_.hyper == HyperKind::kLearned);
    model_prior_ = ModelPrior(options_.model_prior, options_.decay == 0);
    noise_ = RewardNoise();
    departure_evidence_ = {};
    concentration_ = options_.a / options_.b;
  }
  if (options_.hyper == HyperKind::kLearned) {
    learner_.Relearn(pool_, noise_.clicks(), prior_);
    pool_.SetPrior(prior_);
  }
  return true;
}

std::vector<ModelDescription> CoDBand::DescribeModels() const {
  std::vector<ModelDescription> out;
  for (std::size_t k = 0; k < pool_.size(); ++k) {
    const PoolModel& model = pool_.model(k);
    const std::span<const double> mean = model.posterior.mean();
    out.push_back({.id = model.id,
                   .periods = model.periods,
                   .users = model.users,
                   .observations = model.posterior.stats().m(),
                   .theta = {mean.begin(), mean.begin() + static_cast<std::ptrdiff_t>(dim())},
                   .intercept = options_.intercept ? mean.back() : 0});
  }
  return out;
}

std::optional<UserDescription> CoDBand::DescribeUser(UserId id) const {
  std::optional<UserRecord> scratch;
  const UserRecord* user = users_.Peek(id, scratch);
  if (user == nullptr) return std::nullopt;
  UserDescription out{.model = user->current.model, .observations = user->current.data.m()};
  if (!bayes()) out.chance = user->has_period() ? 1 : 0;
  for (std::size_t i = 0; i < user->belief.size(); ++i) {
    if (user->belief.model(i) == out.model) out.chance = user->belief.chance(i);
  }
  return out;
}

void CoDBand::SaveState(ByteWriter& out) const {
  SaveShared(out);
  users_.Save(out);
}

void CoDBand::LoadState(ByteReader& in) {
  LoadShared(in);
  users_.Load(in);
  if (!in.ok()) return;
  const Status sound = CheckRecords([&](const VisitUser& visit) {
    users_.ForEach(visit);
    return Status();
  });
  if (!sound.ok()) in.Fail("state", sound.message());
}

void CoDBand::SaveShared(ByteWriter& out) const {
  out.Double(concentration_);
  out.U8(noise_.clicks() ? 1 : 0);
  change_rate_.Save(out);
  departure_evidence_.Save(out);
  learner_.Save(out);
  out.Double(prior_.noise_variance);
  out.Doubles(prior_.precision);
  out.Doubles(prior_.mean);
  model_prior_.Save(out);
  for (const UserId user : lately_young_) out.U64(user);
  pool_.Save(out);
}

void CoDBand::LoadShared(ByteReader& in) {
  concentration_ = in.Double("concentration");
  if (!(concentration_ > 0)) {
    in.Fail("concentration", fmt::format("is {}, expected > 0", concentration_));
  }
  noise_.set_clicks(in.U8("clicks") != 0);
  change_rate_.Load(in);
  departure_evidence_.Load(in);
  learner_.Load(in);
  linalg::LinearPrior prior = prior_;
  prior.noise_variance = in.Double("noise variance");
  in.Doubles("prior precision", prior.precision);
  in.Doubles("prior mean", prior.mean);
  if (!(prior.noise_variance > 0)) in.Fail("noise variance", "is not positive");
  for (const double precision : prior.precision) {
    if (!(precision > 0)) in.Fail("prior precision", "is not positive");
  }
  if (!in.ok()) return;
  prior_ = prior;
  model_prior_.Load(in);
  for (UserId& user : lately_young_) user = in.U64("young user");
  pool_.SetPrior(prior_);  // models are loaded under the prior they were saved with
  pool_.Load(in);
}

Status CoDBand::CheckUsers(const std::function<Status(const VisitRecord&)>& all) const {
  return CheckRecords([&](const VisitUser& visit) {
    Status damaged;
    const Status read = all([&](UserId user, std::string_view bytes) {
      const Result<UserRecord> record = users_.Decode(bytes);
      if (record.ok()) {
        visit(user, record.value());
      } else {
        damaged = record.status();
      }
      return damaged.ok();
    });
    return read.ok() ? damaged : read;
  });
}

// What users say of the models they are and were on must add up to what the pool says.
Status CoDBand::CheckRecords(const std::function<Status(const VisitUser&)>& all) const {
  struct Tally {
    std::uint64_t periods = 0;
    std::uint64_t users = 0;
    std::uint64_t observations = 0;

    bool operator==(const Tally&) const = default;
  };
  std::map<ModelId, Tally> tallies;
  Status wrong;
  const auto fail = [&](UserId id, const std::string& problem) {
    if (wrong.ok()) wrong = Status::Corruption(fmt::format("user {:016x}: {}", id, problem));
  };
  const Status read = all([&](UserId id, const UserRecord& user) {
    const std::uint64_t m = user.current.data.m();
    if (user.has_period()) {
      Tally& tally = tallies[user.current.model];
      ++tally.periods;
      ++tally.users;
      tally.observations += m;
    }
    if (user.has_period() == (m == 0)) {
      fail(id, fmt::format("the current period has {} observations", m));
    }
    if (user.current.paper != nullptr) {
      const PaperRecord& paper = *user.current.paper;
      if (paper.own_regression.stats().m() != m || paper.badness.size() > m ||
          paper.recent.size() != std::min<std::uint64_t>(paper.recent.capacity(), m)) {
        fail(id, fmt::format("the current period has {} observations, {} flags and {} recent ones",
                             m, paper.badness.size(), paper.recent.size()));
      }
    }
    if (user.window.size() > m) {
      fail(id, fmt::format("the window has {} observations, the period {}", user.window.size(), m));
    }
    for (const PastPeriods::Entry& entry : user.past.entries()) {
      const std::uint64_t periods = user.past.PeriodsOn(entry.model);
      tallies[entry.model].periods += periods;
      tallies[entry.model].observations += entry.data.m();
      if (periods == 0) {
        fail(id, fmt::format("closed periods on model {} do not add up", entry.model));
      }
    }
    for (const ModelId model : user.past.models()) {
      if (std::ranges::find(user.past.entries(), model, &PastPeriods::Entry::model) ==
          user.past.entries().end()) {
        fail(id, "closed periods lack their observations");
      }
    }
  });
  CODBAND_RETURN_IF_ERROR(read);
  CODBAND_RETURN_IF_ERROR(wrong);
  for (std::size_t k = 0; k < pool_.size(); ++k) {
    const PoolModel& model = pool_.model(k);
    const Tally tally = tallies[model.id];
    const Tally said{model.periods, model.users, model.posterior.stats().m()};
    if (tally != said) {
      return Status::Corruption(
          fmt::format("model {} has {} periods, {} users and {} observations; its users have {}, "
                      "{} and {}",
                      model.id, said.periods, said.users, said.observations, tally.periods,
                      tally.users, tally.observations));
    }
  }
  if (tallies.size() != pool_.size()) {
    return Status::Corruption("users are on models that do not exist");
  }
  return {};
}

}  // namespace codband
