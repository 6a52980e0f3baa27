#pragma once

#include <memory>

#include "codband/policy/params.h"
#include "codband/policy/policy.h"

namespace codband {

// linucb: one linear model for each user; the arm with the largest upper confidence bound
//   xᵀθ̂ + α sqrt(xᵀA⁻¹x),   A = λI + Σ x xᵀ,   θ̂ = A⁻¹ Σ r x.
// Assumes that a user never changes and shares nothing between users.
//
// Paper: Li, Chu, Langford & Schapire, "A contextual-bandit approach to personalized news article
// recommendation", WWW 2010, Algorithm 1.
// Where we differ: the parameter belongs to the user and the features to the arm (the paper's
// Algorithm 1 has a parameter for each arm and the features of the user); ridge λ instead of 1.
// Parameters: alpha ≥ 0 (0.6), how much uncertainty attracts; lambda > 0 (0.1), the ridge.
// Cost: O(n d²) to choose among n arms, O(d²) to learn; no allocation.
// Persisted: sums and Cholesky factor of each user.
struct LinUcbOptions {
  double alpha = 0.6;
  double lambda = 0.1;
};

PolicyInfo LinUcbInfo();
std::unique_ptr<Policy> MakeLinUcb(std::size_t dim, LinUcbOptions options);
std::unique_ptr<Policy> MakeLinUcb(const ParamValues& params, const PolicyContext& context);

// The parameters alpha and lambda, for policies that choose as LinUCB does.
ParamInfo AlphaParam(double default_value);
ParamInfo LambdaParam(double default_value);

}  // namespace codband
