#pragma once

#include <span>
#include <string_view>

#include "codband/base/bytes.h"
#include "codband/linalg/linear_prior.h"
#include "codband/policy/codband/change_rate.h"
#include "codband/policy/codband/column_scales.h"
#include "codband/policy/codband/departure.h"
#include "codband/policy/codband/hyper_evidence.h"
#include "codband/policy/codband/model_pool.h"
#include "codband/policy/codband/observation_limits.h"
#include "codband/policy/codband/prior_learner.h"
#include "codband/policy/codband/reward_noise.h"
#include "codband/policy/codband/user_record.h"

namespace codband {

struct CoDBandOptions;

// What all models and users have in common beside the pool: the prior of a model and the noise
// (prior_learner.h), whether rewards are clicks (reward_noise.h), the hazard (change_rate.h) and
// the variance of the users' random effects (departure.h). With hyper=fixed prior, noise and hazard
// stay as they were given. Not thread-safe for writing.
class HyperParameters {
 public:
  HyperParameters(std::size_t dim, const CoDBandOptions& options);

  const linalg::LinearPrior& prior() const { return prior_; }
  const RewardNoise& noise() const { return noise_; }
  const ChangeRate& change_rate() const { return change_rate_; }
  ChangeRate& change_rate() { return change_rate_; }

  const ColumnScales& scales() const { return scales_; }

  // The features of an observation of the user, as they were given: every observation comes here
  // first. Returns whether columns weigh otherwise from now on; the pool has another prior then.
  bool ObserveColumns(ModelPool& pool, const UserRecord& user, std::span<const double> features);

  // Whether models see vectors shortened: of clicks it is their direction that says most. Not where
  // it is told which features belong together: of names the length says how many an item has.
  bool DampsLengths() const { return damped_ && noise_.clicks() && learner_.groups().empty(); }
  // What the features of an arm, in the units of the models, are multiplied by then: |x|^-1/2.
  double LengthFactor(std::span<const double> features) const;
  // What states from before vectors were shortened lack: in these they stay as they are.
  void SaveLengths(ByteWriter& out) const { out.U8(damped_ ? 1 : 0); }
  void LoadLengths(ByteReader& in) {
    damped_ = in.remaining() > 0 && in.U8("whether lengths are damped") != 0;
  }

  // Brings an observation of the user, one of those in the pool, within bounds, in place, and of
  // clicks damps its length. Every observation goes through here once, before it comes anywhere
  // else. Returns whether it was beyond them.
  bool LimitInfluence(const ModelPool& pool, UserRecord& user, std::span<double> x, double& r);

  // An observation is about to come to the pool. If it is time for another prior, the pool gets it.
  void Observe(ModelPool& pool, std::span<const double> x, double r);

  // An observation that is about to come to the user's period tells how far users depart from their
  // models. `sure`: how likely it is that the user is on the model of that period.
  void WeighDeparture(const ModelPool& pool, UserRecord& user, double sure,
                      std::span<const double> x, double r, LearnMemo* memo);
  // τ², the variance of the users' random effects; 0: none.
  double DepartureVariance() const;
  // xᵀx, features by their weights.
  double SquaredLength(std::span<const double> x) const;

  // The user has left the pool. If it is empty, everything starts over.
  void Forget(ModelPool& pool, const UserRecord& user);

  // GroupedFeatures::SetGroups.
  void SetGroups(std::span<const std::uint32_t> groups) { learner_.groups().Set(groups); }
  // What states from before there were groups lack.
  void SaveGroups(ByteWriter& out) const { learner_.groups().Save(out); }
  void LoadGroups(ByteReader& in) { learner_.groups().Load(in); }

  // Partitions (shared_pool.h): what they have learned from, without the credits of the model
  // prior, and what others have. Columns, prior and groups are those of the pool; from now on the
  // prior is learned there alone.
  void BePartition() { scales_.BePartition(); }
  HyperEvidence OwnEvidence() const;
  struct Common {
    std::span<const ColumnScales::Proposal> columns;
    const linalg::LinearPrior& prior;  // of as many features, or fewer
    std::string_view groups;           // as SaveGroups gives them
  };
  void Import(const HyperEvidence& others, const Common& common);
  // Makes this a partition's, of which that is the own evidence, and which sees columns as now.
  void BePartition(const HyperEvidence& own);
  // Partitions become one, this one, whose pool is the newest: that is the evidence of all.
  void BeWhole(const ModelPool& pool, const HyperEvidence& all,
               std::span<const HyperParameters* const> partitions);
  // What Save leaves out: of partitions alone.
  void SavePartition(ByteWriter& out) const;
  void LoadPartition(ByteReader& in);

  // Arms have `dim` features from now on; the new ones are like the others, and were 0 so far.
  void Grow(std::size_t dim);

  void Save(ByteWriter& out) const;
  // What was saved when arms had `dim` features, no more than now.
  void Load(ByteReader& in, std::size_t dim);
  // What state format 3 lacks.
  void SaveLimits(ByteWriter& out) const;
  void LoadLimits(ByteReader& in);
  // What older states lack; without them rewards that were not clicks stay Gaussian.
  void SaveSizes(ByteWriter& out) const { noise_.SaveSizes(out); }
  void LoadSizes(ByteReader& in) { noise_.LoadSizes(in); }
  void ForgetSizes() { noise_.ForgetSizes(); }
  // What format 4 lacks.
  void SaveScales(ByteWriter& out) const { scales_.Save(out); }
  void LoadScales(ByteReader& in);

 private:
  struct Start {
    linalg::LinearPrior prior;
    ChangeRate change_rate;
  };

  void GrowPrior(linalg::LinearPrior& prior, std::size_t dim) const;
  ColumnScales::Judged JudgedColumns() const;
  // How many observations of the user count for what is usual.
  static std::uint64_t Seen(const UserRecord& user);
  // What a click is worth; 0 where rewards are none.
  double Click() const { return noise_.clicks() ? noise_.click() : 0; }
  // λ, of a column of weight 1.
  double Precision(const linalg::LinearPrior& prior) const;

  std::size_t features_;  // of an arm, without the intercept
  bool intercept_;
  bool learned_;
  Start start_;
  linalg::LinearPrior prior_;
  ColumnScales scales_;
  bool limited_;
  bool damped_;
  ObservationLimits limits_;
  PriorLearner learner_;
  ChangeRate change_rate_;
  RewardNoise noise_;
  DepartureEvidence departure_evidence_;
  DepartureEvidence others_departures_;
  bool prior_is_imported_ = false;
};

}  // namespace codband
