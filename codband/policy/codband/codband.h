#pragma once

#include <memory>

#include "codband/policy/codband/codband_options.h"
#include "codband/policy/params.h"
#include "codband/policy/policy.h"

namespace codband {

// codband: the collaborative dynamic bandit. A pool of Bayesian linear models is shared by all
// users. Each user is, in the current stationary period, assigned to one of them; which one is
// inferred from the marginal likelihood of the user's observations of this period and from how
// popular the model is (a Dirichlet process prior). What a user brings thus teaches the model for
// the whole taste group, and a user who has changed is served by a model that others have trained.
//
// The algorithm is that of Li, Wu & Wang, "When and whom to collaborate with in a changing
// environment: a collaborative dynamic bandit solution", SIGIR 2021. codband.cc follows its
// Algorithm 1 line by line; what is done in each line is up to the parts, which parts.cc lists:
//   pool             model_pool.h
//   period           period.h, past_periods.h, period_ledger.h, user_record.h
//   assignment       assignment.h (Algorithm 2), likelihood.h, model_prior.h, recency.h
//   change detector  change_detector.h, window_detector.h, bayes_detector.h (change_filter.h,
//                    belief.h, change_window.h)
//   hyper-parameters hyper_parameters.h, prior_learner.h, reward_noise.h, change_rate.h,
//                    departure.h
//   exploration      outlook.h, exploration.h, thompson_integral.h
// docs/adding_a_part.md shows how to add one. The default and what each of its parts does is
// described in docs/algorithms.md.
//
// The presets `paper` and `paper-product` are the paper's Algorithms 1 and 2. On a visit: draw
// θ̃ ~ N(μ_z, v²Σ_z) from the user's model z and take the arm with the largest xᵀθ̃. A user without
// observations in this period draws z from the prior first.
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
// - Errors of the paper corrected: window_detector.h (ε, the Hoeffding bound), likelihood.h (Σ_k).
// - Algorithm 2 takes D out of its model and adds it again; here a draw of the same model does not
//   touch the pool.
// - likelihood=product scores the last `memory` observations of a period, not all of it.
// - likelihood=joint, the default also of the preset `paper`, scores the whole period exactly, from
//   sums. The paper's product over the last 70 observations (preset `paper-product`) cannot
//   separate two parameters once they share a model: a new model costs about 100 nats there, more
//   than 70 observations of a parameter not far from the other can bring. docs/evaluation.md has
//   the numbers.
//
// Symbols: d features; model k has precision Λ_k, mean μ_k, covariance Σ_k = Λ_k⁻¹ and counter n_k;
// D is a user's current period with m observations; z the user's model; α0 the concentration; a, b
// its Gamma prior; v the scale of the draw.
//
// Cost: docs/algorithms.md; of the presets O(n d + d²) to choose among n arms and to learn O(K d³)
// with likelihood=joint, O(K·memory·d²) with product, for K models. No allocation but for new
// users, models, and a user's change. Persisted: the pool, the hyper-parameters, each user's
// current period with the state of its detector, and the sums of past periods by model (so that a
// user can be forgotten).
PolicyInfo CoDBandInfo();
std::unique_ptr<Policy> MakeCoDBand(std::size_t dim, const CoDBandOptions& options);
std::unique_ptr<Policy> MakeCoDBand(const ParamValues& params, const PolicyContext& context);
// Validates combinations of parameters and what they need.
Status CheckCoDBand(const ParamValues& params, const PolicyContext& context);

}  // namespace codband
