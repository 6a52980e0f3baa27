#include "codband/policy/codband/model_pool.h"

#include <algorithm>

#include "codband/base/check.h"

namespace codband {

std::optional<std::size_t> ModelPool::IndexOf(ModelId id) const {
  const auto found = std::ranges::lower_bound(models_, id, {}, &PoolModel::id);
  if (found == models_.end() || found->id != id) return std::nullopt;
  return static_cast<std::size_t>(found - models_.begin());
}

PoolModel& ModelPool::Get(ModelId id) {
  const auto index = IndexOf(id);
  CODBAND_CHECK(index.has_value());
  return models_[*index];
}

ModelId ModelPool::Create() {
  models_.push_back({.id = next_id_, .periods = 0, .users = 0, .posterior = prior_});
  return next_id_++;
}

std::uint64_t ModelPool::observations() const {
  std::uint64_t sum = 0;
  for (const PoolModel& model : models_) sum += model.posterior.stats().m();
  return sum;
}

void ModelPool::SetPrior(const linalg::LinearPrior& prior) {
  prior_.SetPrior(prior);
  for (PoolModel& model : models_) model.posterior.SetPrior(prior);
}

void ModelPool::RefreshVarianceShares() {
  if (models_.size() <= kFewModels) return;
  for (PoolModel& model : models_) {
    if (model.posterior.VarianceShareIsOld()) model.posterior.RefreshVarianceShare();
  }
}

void ModelPool::Grow(const linalg::LinearPrior& prior, bool intercept) {
  prior_.Grow(prior, intercept);
  for (PoolModel& model : models_) model.posterior.Grow(prior, intercept);
}

void ModelPool::Observe(ModelId id, std::span<const double> x, double r) {
  ++clock_.now;
  Get(id).posterior.Add(x, r);
}

void ModelPool::Withdraw(ModelId id, std::span<const double> x, double r) {
  Get(id).posterior.Remove(x, r);
}

void ModelPool::AddRecency(ModelId id, const Recency& recency) {
  Get(id).recency.Add(clock_, recency);
}

void ModelPool::RemoveRecency(ModelId id, const Recency& recency) {
  Get(id).recency.Remove(clock_, recency);
}

void ModelPool::CountUser(ModelId id, int change) {
  PoolModel& model = Get(id);
  CODBAND_CHECK(change > 0 || model.users > 0);
  model.users = change > 0 ? model.users + 1 : model.users - 1;
}

void ModelPool::Correct(ModelId id, const linalg::SufficientStats& from,
                        const linalg::SufficientStats& to) {
  Get(id).posterior.Correct(from, to);
}

void ModelPool::AddPeriods(ModelId id, std::uint64_t periods, const linalg::SufficientStats& data) {
  PoolModel& model = Get(id);
  model.periods += periods;
  total_periods_ += periods;
  if (data.m() > 0) model.posterior.Add(data);
}

void ModelPool::RemovePeriods(ModelId id, std::uint64_t periods,
                              const linalg::SufficientStats& data) {
  PoolModel& model = Get(id);
  CODBAND_CHECK(model.periods >= periods);
  model.periods -= periods;
  total_periods_ -= periods;
  if (model.periods == 0) {
    models_.erase(models_.begin() + (&model - models_.data()));
  } else if (data.m() > 0) {
    model.posterior.Remove(data);
  }
}

void ModelPool::Save(ByteWriter& out) const {
  out.U64(clock_.now);
  out.U64(next_id_);
  out.U64(models_.size());
  for (const PoolModel& model : models_) {
    out.U64(model.id);
    out.U64(model.periods);
    out.U64(model.users);
    model.posterior.Save(out);
    model.recency.Save(out);
  }
}

void ModelPool::Load(ByteReader& in) {
  clock_.now = in.U64("number of observations");
  next_id_ = in.U64("next model id");
  const std::size_t count =
      in.Count("number of models", linalg::GaussianPosterior::SavedBytes(prior_.dim()));
  models_.clear();
  total_periods_ = 0;
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    PoolModel model{.id = in.U64("model id"),
                    .periods = in.U64("model periods"),
                    .users = in.U64("model users"),
                    .posterior = prior_};
    model.posterior.Load(in);
    model.recency.Load(in);
    if (model.id >= next_id_ || (!models_.empty() && model.id <= models_.back().id)) {
      in.Fail("model id", "is out of order");
    }
    total_periods_ += model.periods;
    models_.push_back(std::move(model));
  }
}

}  // namespace codband
