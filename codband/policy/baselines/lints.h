#pragma once

#include <memory>

#include "codband/policy/params.h"
#include "codband/policy/policy.h"

namespace codband {

// lints: one Bayesian linear regression for each user, Thompson sampling: draws θ̃ ~ N(μ, v²Λ⁻¹) and
// chooses the arm with the largest xᵀθ̃. Assumes that users never change, and shares nothing between
// them.
//
// Paper: Agrawal & Goyal, "Thompson sampling for contextual bandits with linear payoffs", ICML
// 2013, Algorithm 1.
// Where we differ:
// - Prior precision λ and noise σ are parameters. The paper has λ = 1 and folds σ into v.
// - The parameter belongs to the user.
// Symbols: Λ = λI + Σ x xᵀ/σ², the posterior precision; μ = Λ⁻¹ Σ r x/σ², the posterior mean.
// Parameters: v ≥ 0 (1), the scale of the draw; lambda > 0 (0.1), the prior precision; sigma > 0
// (the noise if known, else 0.1).
// Cost: O(n d + d²) to choose among n arms, O(d²) to learn; no allocation.
// Persisted: each user's sufficient statistics and Cholesky factor.
struct LinTsOptions {
  double v = 1;
  double lambda = 0.1;
  double sigma = 0.1;
};

PolicyInfo LinTsInfo();
std::unique_ptr<Policy> MakeLinTs(std::size_t dim, LinTsOptions options);
std::unique_ptr<Policy> MakeLinTs(const ParamValues& params, const PolicyContext& context);

}  // namespace codband
