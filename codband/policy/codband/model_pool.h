#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "codband/base/bytes.h"
#include "codband/linalg/covariance.h"
#include "codband/linalg/gaussian_posterior.h"
#include "codband/linalg/linear_prior.h"
#include "codband/linalg/low_rank.h"
#include "codband/linalg/sufficient_stats.h"
#include "codband/policy/codband/recency.h"
#include "codband/policy/learn_memo.h"
#include "codband/policy/model_aliases.h"
#include "codband/policy/policy.h"

namespace codband {

// The sums of a model: of one partition, or of several (shared_pool.h).
struct ModelSums {
  ModelId id;
  std::uint64_t periods = 0;
  std::uint64_t users = 0;
  linalg::SufficientStats data;
};

// What of a model is this partition's own. All else comes from others.
struct OwnPart {
  linalg::SufficientStats data;
  std::uint64_t others_periods = 0;
  std::uint64_t others_users = 0;
  double published = 0;  // ln|Λ| at the last register, without what others have brought since
};

// One model of the pool, shared by all users whose period is, or was, assigned to it.
struct PoolModel {
  ModelId id;
  std::uint64_t periods;  // n_k: how many stationary periods, current or past, are on it
  std::uint64_t users;    // how many of them are current: the taste group
  linalg::GaussianPosterior posterior;  // from the observations of all those periods
  Recency recency = {};                 // of the observations
  linalg::Covariance covariance = {};   // of the posterior; not known after a period came or left
  std::optional<OwnPart> own = {};      // of a partition; elsewhere all is its own

  std::uint64_t own_periods() const { return periods - (own ? own->others_periods : 0); }
  std::uint64_t own_users() const { return users - (own ? own->others_users : 0); }
  const linalg::SufficientStats& own_data() const { return own ? own->data : posterior.stats(); }
};

// The models that users share, G in the paper. A model is created for its first period and dropped
// with its last; ids are never used again. Models are ordered by id, that is by age; in a partition
// (shared_pool.h) by the partition that created them, and then by age. A model that was joined into
// another is found there.
// Not thread-safe for writing; const functions may run concurrently.
class ModelPool {
 public:
  // Preconditions: as for GaussianPosterior.
  explicit ModelPool(const linalg::LinearPrior& prior, const RecencyClock& clock = {})
      : prior_(prior), clock_(clock) {}

  std::size_t size() const { return models_.size(); }
  const PoolModel& model(std::size_t index) const { return models_[index]; }
  std::optional<std::size_t> IndexOf(ModelId id) const;
  // The name that a model goes by since it was joined into another.
  ModelId Resolve(ModelId id) const { return aliases_.Resolve(id); }

  // A model without observations: what a new one would be.
  const linalg::GaussianPosterior& prior() const { return prior_; }

  // Σ n_k.
  std::uint64_t total_periods() const { return total_periods_; }

  // How many models have periods of this partition, and how many these are; elsewhere all do.
  std::size_t own_size() const;
  std::uint64_t own_periods() const;
  // Who is on the models now, O(K).
  std::uint64_t users() const;
  // Of all models, and of them the partition's own, O(K).
  std::uint64_t observations() const;
  std::uint64_t own_observations() const;

  // Of so many Gibbs steps those that a partition takes, by its part in what the pool knows: where
  // others move theirs has not been heard of yet, and if all moved all that they have on what was
  // known a while ago, they would go the same way together and back again.
  std::size_t OwnShare(std::size_t steps) const;

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

  // Changes of wide models are recorded by the memo, or replayed from it, while this lives.
  class Memory {
   public:
    Memory(ModelPool& pool, LearnMemo* memo) : pool_(pool) { pool_.memo_ = memo; }
    ~Memory() { pool_.memo_ = nullptr; }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

   private:
    ModelPool& pool_;
  };

  // Finds the covariance of a model, if it is not known: O(d³), and nothing up to
  // Covariance::kNarrow features. Precondition: the model exists.
  void RefreshCovariance(ModelId id);
  void RefreshCovariances();  // of all models

  // A model for a first period, which the caller adds at once. Returns its id.
  ModelId Create();

  // One observation for a period that is on the model, O(d²). Precondition: the model exists.
  void Observe(ModelId id, std::span<const double> x, double r);
  // One observation of a period leaves the model, O(d²). Precondition: it is one of the model's.
  void Withdraw(ModelId id, std::span<const double> x, double r);

  // Periods with all their observations come to a model or leave it, O(d³) unless `data` is empty;
  // beyond Covariance::kNarrow features O(d²) for each direction that they span, if these are few.
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

  // Partitions (shared_pool.h)
  // ---------------------------------------------------------------------

  // Ids are (partition, counter), so that no two partitions use the same.
  static ModelId FirstId(std::uint32_t partition) { return ModelId{partition} << kCounterBits; }
  // Precondition: there have been no models.
  void BePartition(std::uint32_t partition);
  bool is_partition() const { return partition_.has_value(); }
  std::uint32_t partition() const { return partition_.value_or(0); }

  // The own sums of every model that has any.
  std::vector<ModelSums> OwnSums() const;
  // Whether they tell others something new: a model has come, gone, or gained or lost a period, or
  // the volume of one is smaller by a third.
  bool HasNews() const;
  // OwnSums() are known to the others.
  void MarkPublished();
  // What others have, in the order of ids, which replaces what they had; all models have another
  // prior and go by other names. From scratch: O(K d³).
  void Import(std::span<const ModelSums> others, const ModelAliases& aliases,
              const linalg::LinearPrior& prior);
  const ModelAliases& aliases() const { return aliases_; }

  // All models there are have these sums, in the order of ids, which are the own ones of this
  // partition from now on; nothing: of a pool that is none. New ones are counted from `counter` on.
  void Hold(std::span<const ModelSums> own, const linalg::LinearPrior& prior,
            std::optional<std::uint32_t> partition, std::uint64_t counter);
  // How many ids were given out, whatever partition it is.
  std::uint64_t counter() const { return next_id_ - FirstId(partition()); }
  static bool IsOfPartition(ModelId id) { return id != kNoModel && id >> kCounterBits > 0; }

  // What Save leaves out: of partitions alone.
  void SavePartition(ByteWriter& out) const;
  void LoadPartition(ByteReader& in);

  void Save(ByteWriter& out) const;
  void Load(ByteReader& in);
  // Covariances that are known, which differ in the last bits from those that would be found anew.
  void SaveCovariances(ByteWriter& out) const;
  void LoadCovariances(ByteReader& in);

 private:
  static constexpr int kCounterBits = 44;  // with the 8 of a partition exact as a double

  struct Fitted;

  PoolModel& Get(ModelId id);
  void RefreshCovariance(PoolModel& model);
  // Runs `change`, which changes posterior and covariance of the model, or takes what became of
  // them from the memo.
  template <typename Change>
  void Follow(PoolModel& model, const Change& change);
  PoolModel& Insert(ModelId id);
  // The directions that the data span, if that is of use for a change of the model; nullptr if not.
  const linalg::LowRank* FollowWithCovariance(PoolModel& model, const linalg::SufficientStats& data,
                                              int sign);
  void JoinOwn(const ModelAliases& aliases);

  linalg::GaussianPosterior prior_;
  RecencyClock clock_;
  std::vector<PoolModel> models_;
  ModelId next_id_ = 0;
  std::uint64_t total_periods_ = 0;
  std::optional<std::uint32_t> partition_;
  ModelAliases aliases_;
  bool restructured_ = false;  // since MarkPublished
  linalg::LowRank low_rank_;   // scratch
  LearnMemo* memo_ = nullptr;
};

}  // namespace codband
