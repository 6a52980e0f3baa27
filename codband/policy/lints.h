#pragma once

#include <memory>

#include "codband/policy/params.h"
#include "codband/policy/policy.h"

namespace codband {

// lints: one Bayesian linear model for each user, Thompson sampling: draw
//   θ̃ ~ N(μ, v²Λ⁻¹),   Λ = λI + Σ x xᵀ/σ²,   μ = Λ⁻¹ Σ r x/σ²,
// and take the arm with the largest xᵀθ̃. Assumes that a user never changes and shares nothing.
//
// Paper: Agrawal & Goyal, "Thompson sampling for contextual bandits with linear payoffs", ICML
// 2013, Algorithm 1.
// Where we differ: prior precision λ and noise σ are parameters (the paper has λ = 1 and folds σ
// into v); the parameter belongs to the user.
// Parameters: v ≥ 0 (1), scale of the draw; lambda > 0 (0.1); sigma > 0 (the noise if known).
// Cost: O(n d + d²) to choose among n arms, O(d²) to learn; no allocation.
// Persisted: sums and Cholesky factor of each user.
struct LinTsOptions {
  double v = 1;
  double lambda = 0.1;
  double sigma = 0.1;
};

PolicyInfo LinTsInfo();
std::unique_ptr<Policy> MakeLinTs(std::size_t dim, LinTsOptions options);
std::unique_ptr<Policy> MakeLinTs(const ParamValues& params, const PolicyContext& context);

// The parameters v and sigma, for policies that draw as LinTS does.
ParamInfo DrawScaleParam(double default_value);
ParamInfo SigmaParam();

}  // namespace codband
