#pragma once

#include <memory>

#include "codband/policy/params.h"
#include "codband/policy/policy.h"

namespace codband {

// oracle-filter: knows the true parameters, the noise and the hazard, but not which user has which
// parameter. For each user it runs the forward filter of a hidden Markov model whose states are the
// parameters: before each reward p_k ← (1 - h) p_k + h (1 - p_k) / (K - 1), then p_k is multiplied
// by the likelihood N(r | xᵀθ_k, σ²), and all are normalised. Chooses the best arm under Σ p_k θ_k.
// Its regret is the cost of finding out who changed to what.
//
// Paper: ours; a yardstick. The sum of the regrets of oracle-greedy and oracle-filter is called the
// limit: a learner has to find out both the parameters and who has which.
// Symbols: p_k, the probability that the user has parameter θ_k, one of K; h, the hazard; σ, the
// standard deviation of the noise.
// Parameters: sigma > 0 (the noise of the simulation).
// Cost: O(K d + n d) to choose among n arms, O(K d) to learn.
// Persisted: each user's K probabilities.
PolicyInfo OracleFilterInfo();

// Precondition: context.truth is set.
std::unique_ptr<Policy> MakeOracleFilter(const ParamValues& params, const PolicyContext& context);

}  // namespace codband
