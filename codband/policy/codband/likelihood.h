#pragma once

#include <memory>
#include <span>

#include "codband/policy/codband/model_pool.h"
#include "codband/policy/codband/period.h"

namespace codband {

// How well each model of the pool explains a user's current period D.
class Likelihood {
 public:
  virtual ~Likelihood() = default;

  // out[k] = ln p(D | model k) for every model of the pool, the user's own (index `own`, which
  // contains D) with D taken out first; out[pool.size()] = ln p(D | a new model).
  // Precondition: out.size() == pool.size() + 1, D is not empty. Not thread-safe: owns scratch
  // memory, so that calls do not allocate once the pool has stopped growing.
  virtual void LogDensities(const ModelPool& pool, const Period& period, std::size_t own,
                            std::span<double> out) = 0;
};

// Exact: the rewards of D together, from sufficient statistics (linalg/joint_likelihood.h).
// O(K d³), independent of the length of D.
std::unique_ptr<Likelihood> MakeJointLikelihood(std::size_t dim);

// As in the paper (Eq. 5): each of the recent observations as if it were alone,
//   Σ_i ln N(r_i | x_iᵀμ_k, σ² + x_iᵀΣ_k x_i),
// over what period.recent remembers; for a new model their joint density under the prior.
// O(K w d²) for w recent observations. The paper prints Σ_k⁻¹ in the variance, a slip.
std::unique_ptr<Likelihood> MakeProductLikelihood(std::size_t dim);

}  // namespace codband
