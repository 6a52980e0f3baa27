#pragma once

#include <memory>

#include "codband/policy/params.h"
#include "codband/policy/policy.h"

namespace codband {

// oracle-filter: knows the true parameters, the noise and how often users change, but not who has
// which parameter. For each user a forward filter over the parameters: before each reward the
// chance of each moves by the hazard h,
//   p_k ← (1 - h) p_k + h (1 - p_k) / (K - 1),
// then it is multiplied by N(r | xᵀθ_k, σ²) and normalised; the arm is the best under Σ p_k θ_k.
// What it pays is the cost of finding out who changed to what.
//
// Ours; a yardstick. oracle-greedy + oracle-filter is called the limit: a learner must find out
// both the parameters and who has which.
// Parameters: sigma > 0 (the noise of the simulation).
// Cost: O(K d + n d) to choose, O(K d) to learn. Persisted: each user's K chances.
PolicyInfo OracleFilterInfo();

// Precondition: context.truth is set.
std::unique_ptr<Policy> MakeOracleFilter(const ParamValues& params, const PolicyContext& context);

}  // namespace codband
