#pragma once

#include <memory>

#include "codband/policy/params.h"
#include "codband/policy/policy.h"

namespace codband {

// linucb: one ridge regression for each user; chooses the arm with the largest upper confidence
// bound xᵀθ̂ + α sqrt(xᵀA⁻¹x). Assumes that users never change, and shares nothing between them.
//
// Paper: Li, Chu, Langford & Schapire, "A contextual-bandit approach to personalized news article
// recommendation", WWW 2010, Algorithm 1.
// Where we differ:
// - The parameter belongs to the user and the features to the arm. In the paper each arm has a
//   parameter, and the features are those of the user.
// - The ridge is λ instead of 1.
// Symbols: A = λI + Σ x xᵀ, the precision; θ̂ = A⁻¹ Σ r x, the ridge estimate.
// Parameters: alpha ≥ 0 (0.6), the width of the confidence bound; lambda > 0 (0.1), the ridge;
// items (no), whether items have effects of their own (baseline_items.h).
// Cost: O(n d²) to choose among n arms, O(d²) to learn; no allocation.
// Persisted: each user's sufficient statistics and Cholesky factor.
struct LinUcbOptions {
  double alpha = 0.6;
  double lambda = 0.1;
  bool items = false;
};

PolicyInfo LinUcbInfo();
std::unique_ptr<Policy> MakeLinUcb(std::size_t dim, LinUcbOptions options);
std::unique_ptr<Policy> MakeLinUcb(const ParamValues& params, const PolicyContext& context);

}  // namespace codband
