#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "codband/linalg/gaussian_posterior.h"
#include "codband/linalg/lanes.h"
#include "codband/linalg/sufficient_stats.h"

namespace codband::linalg {

// The density of a whole set of observations D under linear Gaussian models whose parameter is
// integrated out, from sufficient statistics alone:
//
//   ln p(D | k) = -(m/2) ln(2πσ²) - ½[ln|Λ'| - ln|Λ|] - ½[q/σ² + bᵀΛ⁻¹b - b'ᵀΛ'⁻¹b'],
//   Λ' = Λ + S/σ²,  b' = b + c/σ²,
//
// where Λ and b are model k without D and Λ', b' with it. It equals the Gaussian density
// N(r | Xμ, σ²I + XΛ⁻¹Xᵀ) of all rewards together, and the product of one-step predictives.
//
// One Cholesky factorisation a model, O(d³), independent of m; kLanes models at a time.
// Owns its scratch memory: calls do not allocate; one object per thread.
class JointLikelihood {
 public:
  struct Model {
    const GaussianPosterior* posterior;
    bool contains_data;  // D is one of the things this model was learned from: take it out first
  };

  explicit JointLikelihood(std::size_t dim);

  // out[i] = ln p(data | models[i]). Preconditions: all dimensions agree, all models have the same
  // noise variance; models.size() == out.size().
  void LogDensities(const SufficientStats& data, std::span<const Model> models,
                    std::span<double> out);

 private:
  void FactorLanes(const SufficientStats& data, std::span<const Model> models);

  std::size_t dim_;
  // Of kLanes models side by side (lanes.h): the packed precision, then its Cholesky factor; b,
  // then L⁻¹b.
  std::vector<double> matrix_;
  std::vector<double> information_;
  double log_determinant_[kLanes] = {};
  double explained_[kLanes] = {};
};

}  // namespace codband::linalg
