#pragma once

#include <memory>
#include <span>
#include <vector>

#include "codband/base/random.h"
#include "codband/policy/codband/change_filter.h"
#include "codband/policy/codband/detector_state.h"
#include "codband/policy/codband/given_means.h"
#include "codband/policy/codband/likelihood.h"
#include "codband/policy/codband/user_record.h"
#include "codband/policy/learn_memo.h"
#include "codband/policy/policy.h"

namespace codband {

class Assignment;
class HyperParameters;
class ModelPool;
class PeriodLedger;
struct CoDBandOptions;

// One reward that is being learned from.
struct LearnStep {
  UserId id;
  UserRecord& user;
  std::span<const double> x;  // as the models see it
  double reward;
  ItemOffset item;     // what was taken from it as the item's own
  bool beyond_limits;  // it had to be limited (observation_limits.h)
  EventKey key;
  LearnMemo* memo;
};

// The memory that ModelChances works in. One serves policies of all dimensions in turn.
struct ChancesScratch {
  std::vector<double> prior;
  std::unique_ptr<Likelihood> likelihood;
  std::size_t dim = 0;  // of the likelihood
  GivenMeans means;     // what models alone say counts for the rest

  // Makes a likelihood of models with so many features, unless it is there.
  void Prepare(std::size_t models_dim, const CoDBandOptions& options);
};

// Services that a detector requires of the rest of CoDBand; the paper's needs none.
struct DetectorTraits {
  // Features are rounded to single precision: the detector keeps observations that way.
  bool rounds_features = false;
  // The model of a new period is drawn with its first reward; else the draw of the visit counts.
  bool redraws_first_model = false;
  // Likelihoods of clicks are tempered (reward_noise.h): clicks are not Gaussian to this detector.
  bool tempers_clicks = false;
  // It has a posterior over a user's models, so that users' random effects can be estimated from
  // those whose model is known.
  bool supports_random_effects = false;
};

// The parts that a detector works with; all outlive it.
struct DetectorContext {
  const CoDBandOptions& options;
  std::size_t dim;  // features of an arm, without the intercept
  const Likelihood& likelihood;
  ModelPool& pool;
  PeriodLedger& ledger;
  HyperParameters& hyper;
  Assignment& assignment;
};

// Notices that a user's preference has changed, and says which model the user is on meanwhile.
// CoDBand calls Observe, Reassign and Alarm once for each reward, in this order (codband.cc); the
// names of lines are those of the paper's Algorithm 1. Implementations keep one state a user, which
// they make here. Not thread-safe, but for const functions.
class ChangeDetector {
 public:
  explicit ChangeDetector(const DetectorContext& context) : context_(context) {}
  virtual ~ChangeDetector() = default;

  virtual DetectorTraits traits() const { return {}; }

  // The state of a new user.
  virtual std::unique_ptr<DetectorState> NewState() const = 0;

  // Whether the observation is to be left out: no model explains it. Precondition: the user has a
  // period.
  virtual bool IsOutlier(const LearnStep&) { return false; }

  // Line 19: an observation that is not yet part of D, nor of the model.
  virtual void Observe(const LearnStep& step) = 0;

  // Line 22: D has grown by the observation. Draws the user's model anew, here by Algorithm 2;
  // returns whether the user has changed.
  virtual bool Reassign(const LearnStep& step);

  // Line 25: whether the user's period ends here.
  virtual bool Alarm(const UserRecord&) const { return false; }

  // The posterior over z of a user whose period is on a model of the pool: the chance of each model
  // and, last, of a new one, here all on the model of the last Gibbs step. `renew`: what the models
  // have learned from others since counts, where it may matter.
  // Precondition: chances.size() == pool.size() + 1.
  virtual void ModelChances(UserId id, const UserRecord& user, bool renew, ChancesScratch& scratch,
                            std::span<double> chances) const;
  // The same for the user's own model alone; 0 for a user without a period.
  virtual double ChanceOfOwnModel(const UserRecord& user) const {
    return user.has_period() ? 1 : 0;
  }

  // The pool has grown (Policy::Grow), and with it what arms have: `dim` features, without the
  // intercept. Users' states grow by themselves.
  virtual void Grow(std::size_t) {}

  // What it keeps beside its users' states; nothing of the detectors there are.
  virtual void SaveShared(ByteWriter&) const {}
  virtual void LoadShared(ByteReader&) {}

 protected:
  const DetectorContext& context() const { return context_; }

 private:
  DetectorContext context_;
};

// In place of the filter's state in the records of detectors that format 3 knows to have none.
void SaveEmptyFilterState(ByteWriter& out);
void LoadEmptyFilterState(ByteReader& in, const RecordLayout& layout);

// detector=none: nobody ever changes.
std::unique_ptr<ChangeDetector> MakeNoDetector(const DetectorContext& context);

}  // namespace codband
