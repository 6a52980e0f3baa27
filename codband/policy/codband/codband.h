#pragma once

#include <memory>

#include "codband/policy/codband/model_prior.h"
#include "codband/policy/codband/window_detector.h"
#include "codband/policy/params.h"
#include "codband/policy/policy.h"
#include "codband/policy/user_graph.h"

namespace codband {

// codband: the collaborative dynamic bandit. A pool of Bayesian linear models is shared by all
// users. Each user is, in the current stationary period, on one of them; which one is inferred
// from how well the model explains the user's observations of this period and from how popular it
// is (a Dirichlet process prior). What a user brings thus teaches the model for everybody on it,
// and a user who has changed is served by a model that others have trained.
//
// The default is described in docs/algorithms.md, the parts in the files beside this one:
//   detector=bayes     change_filter.h, belief.h, change_rate.h
//   hyper=learned      prior_learner.h, change_rate.h
//   prior=crp|hawkes|friends   model_prior.h
//   explore=adaptive   exploration.h
//   departure=learned  departure.h
//
// The presets `paper` and `paper-product` are Li, Wu & Wang, "When and whom to collaborate with in
// a changing environment: a collaborative dynamic bandit solution", SIGIR 2021, Algorithms 1 and 2.
// On a visit: draw θ̃ ~ N(μ_z, v²Σ_z) from the user's model z and take the arm with the largest
// xᵀθ̃. A user without observations in this period draws z from the prior first.
// On a reward: (1) the observation is bad if a regression over this user's current period alone
// (not model z) did not expect it; (2) add it to the period and to model z; (3) Gibbs step: take
// the period out of its model, draw the model anew with weight n_k p(D | k), or α0 p(D | prior) for
// a new one, and add the period to it; (4) draw α0 anew; (5) if too many recent observations are
// bad, the user has changed: the period is closed, its observations stay with its model, and the
// next visit starts a new one.
//
// Where the presets differ from the paper and why:
// - The prior's draw of a model is counted (n_z += 1) with the first reward of a period, not with
//   the visit: choosing then changes nothing. With a reward for every visit it is the same; several
//   visits before the first reward each draw a model, and the first one rewarded counts.
// - Thompson sampling draws by the Cholesky factor of Λ_z, and scales it by v.
// - α0 starts at its prior mean a/b instead of a draw from its prior; step (4) draws it anyway.
// - A reward that arrives after its period was closed goes to the model of that period, and starts
//   neither a Gibbs step nor a detection.
// - A decision of a period that the user has not come to (the user was forgotten, or an older state
//   restored) counts for the current period.
// - The sums of closed periods are rounded to single precision.
// - Slips of the paper put right: window_detector.h (ε, the Hoeffding bound), likelihood.h (Σ_k).
// - likelihood=product scores the last `memory` observations of a period, not all of it.
// - likelihood=joint, the default also of the preset `paper`, scores the whole period exactly, from
//   sums. The paper's product over the last 70 observations (preset `paper-product`) cannot take
//   two tastes apart once they share a model: a new model costs about 100 nats there, more than 70
//   observations of a taste not far from the other can bring. docs/evaluation.md has the numbers.
//
// Symbols: d features; model k has precision Λ_k, mean μ_k, covariance Σ_k = Λ_k⁻¹ and counter n_k;
// D is a user's current period with m observations; z the user's model; α0 the concentration; a, b
// its Gamma prior; v the scale of the draw.
//
// Cost: docs/algorithms.md; of the presets O(n d + d²) to choose among n arms and to learn O(K d³)
// with likelihood=joint, O(K·memory·d²) with product, for K models. No allocation but for new
// users, models, and a user's change. Persisted: the pool, all that is learned beside it, each
// user's current period with its belief and last observations, and the sums of past periods by
// model (so that a user can be forgotten).
enum class LikelihoodKind { kJoint, kProduct };
enum class DetectorKind { kBayes, kWindow, kNone };
enum class HyperKind { kLearned, kFixed };
enum class ExploreKind { kAdaptive, kThompson };
enum class DepartureKind { kLearned, kNone };

struct CoDBandOptions {
  LikelihoodKind likelihood = LikelihoodKind::kJoint;
  DetectorKind detector = DetectorKind::kBayes;
  HyperKind hyper = HyperKind::kLearned;
  ModelPriorKind model_prior = ModelPriorKind::kCrp;
  ExploreKind explore = ExploreKind::kAdaptive;
  DepartureKind departure = DepartureKind::kLearned;
  bool intercept = true;
  double v = 1;
  double lambda = 25;  // hyper=fixed; in the registry d, the precision of a random θ of norm 1
  double sigma = 0.1;  // hyper=fixed
  double lambda0 = 0;  // hyper=learned: to begin with; 0: from the first reward
  double sigma0 = 0;
  double hazard = 0.001;  // hyper=learned: to begin with
  double decay = 0;       // model_prior=hawkes: time constant; 0: learned
  double a = 7.5;
  double b = 1;
  std::size_t window = 8;    // detector=bayes: how far back a change can be found
  std::size_t resample = 2;  // detector=bayes: Gibbs steps of other young users at each step
  std::size_t history = 1;   // how many closed periods of a user are remembered; 0: all
  std::size_t memory = 70;   // product only: how many recent observations are scored
  WindowDetectorOptions window_detector = {};
  const UserGraph* friends = nullptr;  // model_prior=friends; outlives the policy
};

PolicyInfo CoDBandInfo();
std::unique_ptr<Policy> MakeCoDBand(std::size_t dim, const CoDBandOptions& options);
std::unique_ptr<Policy> MakeCoDBand(const ParamValues& params, const PolicyContext& context);
// Whether the parameters go together and what they need is there.
Status CheckCoDBand(const ParamValues& params, const PolicyContext& context);

}  // namespace codband
