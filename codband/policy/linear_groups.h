#pragma once

#include <memory>

#include "codband/policy/params.h"
#include "codband/policy/policy.h"

namespace codband {

// Policies whose users share linear models in groups that are given, not learned.
//
// uniform-linucb: everybody in one group; LinUCB (linucb.h) on all data. The other extreme to one
//   model for each user.
// oracle-linucb: the users who have the same true parameter at the moment form a group; LinUCB with
//     α = σ² sqrt(d ln(1 + n/(dλ)) + 2 ln(1/δ1)) + sqrt(λ),   n observations in the group.
//   The paper's yardstick: the regret that is left when changes and groups are known.
// oracle-greedy: the same groups; Bayesian model θ ~ N(0, I/λ) with λ = d, the prior under which
//   θ has norm about 1; arm by the posterior mean. The cost of learning the parameters alone.
//
// Paper: Li, Wu & Wang, "When and whom to collaborate with in a changing environment", SIGIR 2021,
// §4 (oracle-LinUCB; its α from Abbasi-Yadkori et al. 2011, Theorem 2). uniform-linucb and
// oracle-greedy are ours.
// Where we differ: α carries σ², not σ; this is what reproduces the paper's oracle column.
// Parameters: uniform-linucb alpha, lambda; oracle-linucb lambda, delta1, sigma; oracle-greedy
// lambda, sigma.
// Cost: as LinUCB; O(n d + d²) for oracle-greedy. Learning keeps a ledger for Forget, O(d²).
// Persisted: each group's posterior, and what each user contributed to it.
PolicyInfo UniformLinUcbInfo();
PolicyInfo OracleLinUcbInfo();
PolicyInfo OracleGreedyInfo();

// Precondition for the oracles: context.truth is set.
std::unique_ptr<Policy> MakeUniformLinUcb(const ParamValues& params, const PolicyContext& context);
std::unique_ptr<Policy> MakeOracleLinUcb(const ParamValues& params, const PolicyContext& context);
std::unique_ptr<Policy> MakeOracleGreedy(const ParamValues& params, const PolicyContext& context);

}  // namespace codband
