#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "codband/policy/codband/model_pool.h"
#include "codband/policy/codband/period.h"

namespace codband {

struct CoDBandOptions;

// The marginal likelihood of a user's current period D under each model of the pool.
class Likelihood {
 public:
  virtual ~Likelihood() = default;

  // How many recent observations of a period it needs beside the sums (Period::recent).
  virtual std::size_t memory() const { return 0; }

  // Models have `dim` features from now on.
  virtual void Grow(std::size_t dim) = 0;

  // Adds ln p(D | model k) to weights[k] for every model of the pool, the user's own (index `own`,
  // which contains D) as if D had been taken out; and ln p(D | a new model) to the last weight.
  // A weight that is sure to be below e⁻⁵⁰ of the largest may become -infinity instead.
  // Precondition: weights holds the log prior weights, pool.size() + 1 of them; D is not empty.
  // Not thread-safe: owns scratch memory, so that calls do not allocate once the pool has stopped
  // growing.
  virtual void AddLogDensities(const ModelPool& pool, const Period& period, std::size_t own,
                               std::span<double> weights) = 0;
};

// likelihood=joint. Exact: the rewards of D together, from sufficient statistics
// (linalg/joint_likelihood.h). O(K d³), independent of the length of D.
std::unique_ptr<Likelihood> MakeJointLikelihood(std::size_t dim, const CoDBandOptions& options);

// likelihood=product. As in the paper (Eq. 5): each of the recent observations as if it were alone,
//   Σ_i ln N(r_i | x_iᵀμ_k, σ² + x_iᵀΣ_k x_i),
// over what period.recent holds; for a new model their joint density under the prior.
// O(K w d²) for w recent observations, O(K w d) where a bound rules most models out, and O(d³) for
// the user's own model. The paper prints Σ_k⁻¹ in the variance, a slip, and scores all of D instead
// of the recent part of it.
std::unique_ptr<Likelihood> MakeProductLikelihood(std::size_t dim, const CoDBandOptions& options);

}  // namespace codband
