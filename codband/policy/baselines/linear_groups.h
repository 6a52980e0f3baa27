#pragma once

#include <memory>

#include "codband/policy/params.h"
#include "codband/policy/policy.h"

namespace codband {

// Policies whose users share linear models in groups that are given, not learned.
//
// uniform-linucb: one group of all users; LinUCB (linucb.h) on all data. The opposite extreme to
// one
//   model for each user.
// oracle-linucb: users who have the same true parameter at the moment form a group; LinUCB with
//     α = σ² sqrt(d ln(1 + m/(dλ)) + 2 ln(1/δ1)) + sqrt(λ).
//   The paper's yardstick: the regret that is left when changes and groups are known.
// oracle-greedy: the same groups, a Bayesian linear regression with prior θ ~ N(0, I/λ) for each,
//   and the arm with the largest posterior mean. With λ = d, the default, θ has norm about 1. Its
//   regret is the cost of learning the parameters alone.
//
// Paper: Li, Wu & Wang, "When and whom to collaborate with in a changing environment", SIGIR 2021,
// §4 (oracle-LinUCB; its α is from Abbasi-Yadkori et al. 2011, Theorem 2). uniform-linucb and
// oracle-greedy are ours.
// Where we differ: α has the factor σ², not σ; this reproduces the paper's oracle column.
// Symbols: m, the observations of the group; d, the number of features; σ, the standard deviation
// of the noise; δ1, the probability that the confidence bound fails. Parameters: uniform-linucb
// alpha ≥ 0 (0.6), lambda > 0 (0.1); oracle-linucb lambda > 0 (0.1), delta1 in (0, 1] (0.1), sigma
// > 0 (the noise); oracle-greedy lambda > 0 (d), sigma > 0 (the noise). Cost: as LinUCB; O(n d +
// d²) to choose for oracle-greedy. Learning also updates the ledger that Forget needs, O(d²).
// Persisted: each group's posterior, and what each user contributed to it.
PolicyInfo UniformLinUcbInfo();
PolicyInfo OracleLinUcbInfo();
PolicyInfo OracleGreedyInfo();

// Precondition for the oracles: context.truth is set.
std::unique_ptr<Policy> MakeUniformLinUcb(const ParamValues& params, const PolicyContext& context);
std::unique_ptr<Policy> MakeOracleLinUcb(const ParamValues& params, const PolicyContext& context);
std::unique_ptr<Policy> MakeOracleGreedy(const ParamValues& params, const PolicyContext& context);

}  // namespace codband
