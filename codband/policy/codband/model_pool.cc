#include "codband/policy/codband/model_pool.h"

#include <algorithm>

#include "codband/base/check.h"

namespace codband {

std::optional<std::size_t> ModelPool::IndexOf(ModelId id) const {
  id = aliases_.Resolve(id);
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
  Insert(next_id_);
  return next_id_++;
}

PoolModel& ModelPool::Insert(ModelId id) {
  PoolModel model{.id = id, .periods = 0, .users = 0, .posterior = prior_};
  model.covariance.SetInverse(prior_.prior_precision());
  if (is_partition()) {
    model.own = {.data = prior_.stats(), .published = prior_.log_determinant()};
  }
  return *models_.insert(std::ranges::lower_bound(models_, id, {}, &PoolModel::id),
                         std::move(model));
}

std::uint64_t ModelPool::users() const {
  std::uint64_t sum = 0;
  for (const PoolModel& model : models_) sum += model.users;
  return sum;
}

std::uint64_t ModelPool::observations() const {
  std::uint64_t sum = 0;
  for (const PoolModel& model : models_) sum += model.posterior.stats().m();
  return sum;
}

void ModelPool::SetPrior(const linalg::LinearPrior& prior) {
  prior_.SetPrior(prior);
  for (PoolModel& model : models_) {
    model.posterior.SetPrior(prior);
    const bool known = model.covariance.known();
    model.covariance.Forget();
    if (known) model.covariance.Refresh(model.posterior.factor());
  }
}

void ModelPool::RefreshVarianceShares() {
  if (models_.size() <= kFewModels) return;
  for (PoolModel& model : models_) {
    if (model.posterior.VarianceShareIsOld())
      model.posterior.RefreshVarianceShare(&model.covariance);
  }
}

void ModelPool::Grow(const linalg::LinearPrior& prior, bool intercept) {
  prior_.Grow(prior, intercept);
  for (PoolModel& model : models_) {
    model.posterior.Grow(prior, intercept);
    model.covariance.Grow(prior.precision, intercept);
    if (model.own) model.own->data.Grow(prior.dim(), intercept);
  }
}

void ModelPool::RefreshCovariance(ModelId id) { RefreshCovariance(Get(id)); }

void ModelPool::RefreshCovariances() {
  for (PoolModel& model : models_) RefreshCovariance(model);
}

void ModelPool::RefreshCovariance(PoolModel& model) {
  if (model.covariance.known()) return;
  Follow(model, [&] { model.covariance.Refresh(model.posterior.factor()); });
}

void ModelPool::Observe(ModelId id, std::span<const double> x, double r) {
  ++clock_.now;
  PoolModel& model = Get(id);
  model.covariance.Change(model.posterior.factor(), x, 1 / prior_.noise_variance());
  model.posterior.Add(x, r);
  if (model.own) model.own->data.Add(x, r);
}

void ModelPool::Withdraw(ModelId id, std::span<const double> x, double r) {
  PoolModel& model = Get(id);
  model.covariance.Change(model.posterior.factor(), x, -1 / prior_.noise_variance());
  model.posterior.Remove(x, r);
  if (model.own) model.own->data.Remove(x, r);
}

void ModelPool::AddRecency(ModelId id, const Recency& recency) {
  Get(id).recency.Add(clock_, recency);
}

void ModelPool::RemoveRecency(ModelId id, const Recency& recency) {
  Get(id).recency.Remove(clock_, recency);
}

void ModelPool::CountUser(ModelId id, int change) {
  PoolModel& model = Get(id);
  CODBAND_CHECK(change > 0 || model.own_users() > 0);
  model.users = change > 0 ? model.users + 1 : model.users - 1;
}

void ModelPool::Correct(ModelId id, const linalg::SufficientStats& from,
                        const linalg::SufficientStats& to) {
  PoolModel& model = Get(id);
  model.posterior.Correct(from, to);
  if (model.own) model.own->data.Correct(from, to);
}

// A posterior with its covariance.
struct ModelPool::Fitted {
  std::optional<linalg::GaussianPosterior> posterior;
  linalg::Covariance covariance;
};

template <typename Change>
void ModelPool::Follow(PoolModel& model, const Change& change) {
  if (prior_.dim() <= linalg::Covariance::kNarrow) return change();
  LearnMemo::Follow<Fitted>(
      memo_, model.posterior.HeapBytes() * 3 / 2, change,
      [&](Fitted& out) {
        out.posterior = model.posterior;
        out.covariance = model.covariance;
      },
      [&](const Fitted& fitted) {
        model.posterior = *fitted.posterior;
        model.covariance = fitted.covariance;
      });
}

const linalg::LowRank* ModelPool::FollowWithCovariance(PoolModel& model,
                                                       const linalg::SufficientStats& data,
                                                       int sign) {
  if (prior_.dim() <= linalg::Covariance::kNarrow) return nullptr;
  low_rank_.Decompose(data, prior_.dim());
  if (model.covariance.known() && low_rank_.Pays()) {
    low_rank_.Change(model.covariance, prior_.noise_variance(), sign);
  } else {
    model.covariance.Forget();
  }
  return &low_rank_;
}

void ModelPool::AddPeriods(ModelId id, std::uint64_t periods, const linalg::SufficientStats& data) {
  PoolModel& model = Get(id);
  model.periods += periods;
  total_periods_ += periods;
  restructured_ = true;
  if (data.m() == 0) return;
  Follow(model, [&] { model.posterior.Add(data, FollowWithCovariance(model, data, 1)); });
  if (model.own) model.own->data.Add(data);
}

void ModelPool::RemovePeriods(ModelId id, std::uint64_t periods,
                              const linalg::SufficientStats& data) {
  PoolModel& model = Get(id);
  CODBAND_CHECK(model.own_periods() >= periods);
  restructured_ = true;
  model.periods -= periods;
  total_periods_ -= periods;
  if (model.periods == 0) {
    models_.erase(models_.begin() + (&model - models_.data()));
  } else if (data.m() > 0) {
    Follow(model, [&] { model.posterior.Remove(data, FollowWithCovariance(model, data, -1)); });
    if (model.own) model.own->data.Remove(data);
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
    const bool own_id = model.id >> kCounterBits == next_id_ >> kCounterBits;
    if ((own_id && model.id >= next_id_) || (!models_.empty() && model.id <= models_.back().id)) {
      in.Fail("model id", "is out of order");
    }
    total_periods_ += model.periods;
    models_.push_back(std::move(model));
  }
  partition_.reset();
  aliases_ = {};
}

void ModelPool::SaveCovariances(ByteWriter& out) const {
  for (const PoolModel& model : models_) model.covariance.Save(out);
}

void ModelPool::LoadCovariances(ByteReader& in) {
  for (PoolModel& model : models_) {
    if (!in.ok()) return;
    model.covariance.Load(in, prior_.dim());
  }
}

}  // namespace codband
