#include <fmt/format.h>

#include <map>

#include "codband/policy/codband/codband_policy.h"

namespace codband {
namespace {

// What users' records say of the models of the pool.
class PoolTally {
 public:
  explicit PoolTally(const ModelPool& pool) : pool_(pool) {}

  void Add(const UserRecord& user) {
    if (user.has_period()) {
      Counts& counts = counts_[pool_.Resolve(user.current.model)];
      ++counts.periods;
      ++counts.users;
      counts.observations += user.current.data.m();
    }
    for (const PastPeriods::Entry& entry : user.past.entries()) {
      Counts& counts = counts_[pool_.Resolve(entry.model)];
      counts.periods += user.past.PeriodsOn(entry.model);
      counts.observations += entry.data.m();
    }
  }

  // kCorruption says what does not fit.
  Status Compare() const {
    std::size_t known = 0;
    for (std::size_t k = 0; k < pool_.size(); ++k) {
      const PoolModel& model = pool_.model(k);
      const auto found = counts_.find(model.id);
      if (found != counts_.end()) ++known;
      const Counts counts = found == counts_.end() ? Counts{} : found->second;
      const Counts said{model.own_periods(), model.own_users(), model.own_data().m()};
      if (counts == said) continue;
      return Status::Corruption(
          fmt::format("model {} has {} periods, {} users and {} observations; its users have {}, "
                      "{} and {}",
                      model.id, said.periods, said.users, said.observations, counts.periods,
                      counts.users, counts.observations));
    }
    if (known < counts_.size()) {
      return Status::Corruption("users are on models that do not exist");
    }
    return {};
  }

 private:
  struct Counts {
    std::uint64_t periods = 0;
    std::uint64_t users = 0;
    std::uint64_t observations = 0;

    bool operator==(const Counts&) const = default;
  };

  const ModelPool& pool_;
  std::map<ModelId, Counts> counts_;
};

}  // namespace

bool CoDBand::Forget(UserId id) {
  const UserRecord* user = users_.Find(id);
  if (user == nullptr) return false;
  if (pool_.is_partition()) ++erasures_;
  ledger_.Forget(*user);
  if (user->items != nullptr) items_.Forget(*user->items);
  assignment_.Forget(id);
  const std::optional<RestorePoint::Point> before = restore_point_.Take(id);
  if (!before || !Restore(*before)) hyper_.Forget(pool_, *user);
  users_.Erase(id);
  return true;
}

void CoDBand::SetRestorePoint(UserId user) {
  ByteWriter state;
  hyper_.SaveGroups(state);
  assignment_.SaveConcentration(state);
  hyper_.Save(state);
  hyper_.SaveLimits(state);
  items_.SaveEstimates(state);
  hyper_.change_rate().SaveFashion(state);
  hyper_.SaveSizes(state);
  restore_point_.Set(user, dim(), state.bytes());
}

bool CoDBand::Restore(const RestorePoint::Point& before) {
  ByteReader in(before.state);
  hyper_.LoadGroups(in);
  assignment_.LoadConcentration(in);
  hyper_.Load(in, before.dim);
  hyper_.LoadLimits(in);
  if (in.remaining() > 0) items_.LoadEstimates(in, true);
  if (in.ok() && in.remaining() > 0) hyper_.change_rate().LoadFashion(in);
  if (in.ok() && in.remaining() > 0) hyper_.LoadSizes(in);
  if (!in.ok()) return false;
  pool_.SetPrior(hyper_.prior());
  return true;
}

void CoDBand::DoGrow(std::size_t dim) {
  hyper_.Grow(dim);
  pool_.Grow(hyper_.prior(), options_.intercept);
  assignment_.Grow(inner_dim());
  detector_->Grow(dim);
  integral_ = ThompsonIntegral(inner_dim(), options_.v);
  users_.ForEach([&](UserId, UserRecord& user) { user.Grow(inner_dim()); });
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
                   .intercept = (options_.intercept ? mean.back() : 0) +
                                hyper_.scales().ShiftedIntercept(mean)});
  }
  return out;
}

std::optional<UserDescription> CoDBand::DescribeUser(UserId id) const {
  std::optional<UserRecord> scratch;
  const UserRecord* user = users_.Peek(id, scratch);
  if (user == nullptr) return std::nullopt;
  return UserDescription{.model = user->current.model,
                         .chance = detector_->ChanceOfOwnModel(*user),
                         .observations = user->current.data.m()};
}

void CoDBand::DoSaveState(ByteWriter& out) const {
  SavePool(out);
  users_.Save(out);
  SaveRest(out);
  users_.SaveRest(out);
  SaveTail(out);
}

void CoDBand::DoLoadState(ByteReader& in) {
  LoadPool(in);
  users_.Load(in);
  LoadRest(in);
  if (in.ok() && in.remaining() > 0) users_.LoadRest(in);
  LoadTail(in);
  if (!in.ok()) return;
  const Status sound = CheckRecords([&](const VisitUser& visit) {
    users_.ForEach(visit);
    return Status();
  });
  if (!sound.ok()) in.Fail("state", sound.message());
}

void CoDBand::SaveShared(ByteWriter& out) const {
  SaveDim(out);
  SavePool(out);
  SaveRest(out);
  SaveTail(out);
}

void CoDBand::LoadShared(ByteReader& in) {
  static_cast<void>(LoadDim(in));
  if (!in.ok()) return;
  LoadPool(in);
  LoadRest(in);
  LoadTail(in);
}

// Behind all else; older states have none of it. Of few features there are no covariances.
void CoDBand::SaveTail(ByteWriter& out) const {
  hyper_.change_rate().SaveFashion(out);
  if (inner_dim() > linalg::Covariance::kNarrow) pool_.SaveCovariances(out);
  hyper_.SaveSizes(out);
  hyper_.SaveLengths(out);
}

void CoDBand::LoadTail(ByteReader& in) {
  hyper_.change_rate().EndFashion();
  hyper_.ForgetSizes();
  if (in.ok() && in.remaining() > 0) {
    hyper_.change_rate().LoadFashion(in);
    if (inner_dim() > linalg::Covariance::kNarrow) pool_.LoadCovariances(in);
  }
  if (in.ok() && in.remaining() > 0) hyper_.LoadSizes(in);
  hyper_.LoadLengths(in);
}

void CoDBand::SaveRest(ByteWriter& out) const {
  hyper_.SaveLimits(out);
  restore_point_.Save(out);
  out.U32(static_cast<std::uint32_t>(dim_before_columns_));
  hyper_.SaveScales(out);
  items_.Save(out);
  hyper_.SaveGroups(out);
  SavePartition(out);
}

void CoDBand::LoadRest(ByteReader& in) {
  restore_point_ = {};
  dim_before_columns_ = inner_dim();
  items_.Clear();
  if (in.remaining() == 0) return;
  hyper_.LoadLimits(in);
  restore_point_.Load(in, dim());
  if (in.remaining() == 0) return;
  dim_before_columns_ = in.U32("features of old records");
  hyper_.LoadScales(in);
  // Not in all states of format 5.
  if (in.ok() && in.remaining() > 0) items_.Load(in);
  hyper_.LoadGroups(in);
  LoadPartition(in);
}

void CoDBand::SavePool(ByteWriter& out) const {
  assignment_.SaveConcentration(out);
  hyper_.Save(out);
  assignment_.Save(out);
  pool_.Save(out);
  detector_->SaveShared(out);
}

void CoDBand::LoadPool(ByteReader& in) {
  assignment_.LoadConcentration(in);
  hyper_.Load(in, dim());
  if (!in.ok()) return;
  assignment_.Load(in);
  pool_.SetPrior(hyper_.prior());  // models are loaded under the prior they were saved with
  pool_.Load(in);
  detector_->LoadShared(in);
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

// What users' records say of the models that they are and were on must add up to what the pool
// says.
Status CoDBand::CheckRecords(const std::function<Status(const VisitUser&)>& all) const {
  PoolTally tally(pool_);
  ItemEffects::Tally item_tally(items_);
  Status wrong;
  CODBAND_RETURN_IF_ERROR(all([&](UserId id, const UserRecord& user) {
    tally.Add(user);
    if (user.items != nullptr) item_tally.Add(*user.items);
    const std::string fault = user.Fault();
    if (!fault.empty() && wrong.ok()) {
      wrong = Status::Corruption(fmt::format("user {:016x}: {}", id, fault));
    }
  }));
  CODBAND_RETURN_IF_ERROR(wrong);
  CODBAND_RETURN_IF_ERROR(tally.Compare());
  const std::string fault = item_tally.Fault();
  return fault.empty() ? Status() : Status::Corruption(fault);
}

}  // namespace codband
