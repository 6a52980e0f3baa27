#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "codband/base/bytes.h"
#include "codband/linalg/gaussian_posterior.h"
#include "codband/linalg/linear_prior.h"
#include "codband/linalg/sufficient_stats.h"
#include "codband/policy/codband/recency.h"
#include "codband/policy/policy.h"

namespace codband {

// One model of the pool, shared by all users whose period is, or was, assigned to it.
struct PoolModel {
  ModelId id;
  std::uint64_t periods;  // n_k: how many stationary periods, current or past, are on it
  std::uint64_t users;    // how many of them are current: the taste group
  linalg::GaussianPosterior posterior;  // from the observations of all those periods
  Recency recency = {};                 // of the observations
};

// The models that users share, G in the paper. A model is created for its first period and dropped
// with its last; ids are never used again. Models are ordered by id, that is by age.
// Not thread-safe for writing; const functions may run concurrently.
class ModelPool {
 public:
  // Preconditions: as for GaussianPosterior.
  explicit ModelPool(const linalg::LinearPrior& prior, const RecencyClock& clock = {})
      : prior_(prior), clock_(clock) {}

  std::size_t size() const { return models_.size(); }
  const PoolModel& model(std::size_t index) const { return models_[index]; }
  std::optional<std::size_t> IndexOf(ModelId id) const;

  // A model without observations: what a new one would be.
  const linalg::GaussianPosterior& prior() const { return prior_; }

  // Σ n_k.
  std::uint64_t total_periods() const { return total_periods_; }

  // Of all models, O(K).
  std::uint64_t observations() const;

  // The time of recency: how many observations there have been.
  const RecencyClock& clock() const { return clock_; }

  // Another prior for all models there are and will be, O(K d³).
  void SetPrior(const linalg::LinearPrior& prior);

  // `prior` has more features than the models; the new ones, before the last one if that is an
  // intercept, were 0 so far. Exact (GaussianPosterior::Grow). O(K d²).
  void Grow(const linalg::LinearPrior& prior, bool intercept);

  // Brings the bounds on the variances of all models (GaussianPosterior::variance_share) up to
  // date. Does nothing up to kFewModels: bounds cost more than they save there. Amortised O(K),
  // beside a small share of what the changes of the models cost.
  void RefreshVarianceShares();
  static constexpr std::size_t kFewModels = 16;

  // A model for a first period, which the caller adds at once. Returns its id.
  ModelId Create();

  // One observation for a period that is on the model, O(d²). Precondition: the model exists.
  void Observe(ModelId id, std::span<const double> x, double r);
  // One observation of a period leaves the model, O(d²). Precondition: it is one of the model's.
  void Withdraw(ModelId id, std::span<const double> x, double r);

  // Periods with all their observations come to a model or leave it, O(d³) unless `data` is empty.
  // A model without periods is dropped. Precondition: the model exists.
  void AddPeriods(ModelId id, std::uint64_t periods, const linalg::SufficientStats& data);
  void RemovePeriods(ModelId id, std::uint64_t periods, const linalg::SufficientStats& data);
  // A user's current period comes to a model (1) or leaves it (-1): for descriptions.
  void CountUser(ModelId id, int change);
  // Periods that brought `recency` come or leave.
  void AddRecency(ModelId id, const Recency& recency);
  void RemoveRecency(ModelId id, const Recency& recency);
  // `from`, a part of the model's data, is `to` after rounding. O(d²).
  void Correct(ModelId id, const linalg::SufficientStats& from, const linalg::SufficientStats& to);

  void Save(ByteWriter& out) const;
  void Load(ByteReader& in);

 private:
  PoolModel& Get(ModelId id);

  linalg::GaussianPosterior prior_;
  RecencyClock clock_;
  std::vector<PoolModel> models_;
  ModelId next_id_ = 0;
  std::uint64_t total_periods_ = 0;
};

}  // namespace codband
