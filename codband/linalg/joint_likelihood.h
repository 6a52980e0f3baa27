#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "codband/linalg/gaussian_posterior.h"
#include "codband/linalg/lanes.h"
#include "codband/linalg/low_rank.h"
#include "codband/linalg/sufficient_stats.h"

namespace codband::linalg {

// The joint marginal likelihood of a set of observations D under linear Gaussian models, the
// parameter integrated out, computed from sufficient statistics alone:
//
//   ln p(D | k) = -(m/2) ln(2πσ²) - ½[ln|Λ'| - ln|Λ|] - ½[q/σ² + bᵀΛ⁻¹b - b'ᵀΛ'⁻¹b'],
//   Λ' = Λ + S/σ²,  b' = b + c/σ²,
//
// where Λ and b are model k without D and Λ', b' with it. It equals the Gaussian density
// N(r | Xμ, σ²I + XΛ⁻¹Xᵀ) of all rewards, and the product of one-step predictive densities.
//
// One Cholesky factorisation per model, O(d³), independent of m; kLanes models at a time. Of more
// than Covariance::kNarrow features, models whose covariance is known are scored by the directions
// that D spans (low_rank.h), unless these are too many.
// Owns its scratch memory: calls do not allocate; one object per thread.
class JointLikelihood {
 public:
  struct Model {
    const GaussianPosterior* posterior;
    bool contains_data;                      // the model was learned from D too: D is removed first
    const Covariance* covariance = nullptr;  // of the posterior; nullptr: not at hand
  };

  explicit JointLikelihood(std::size_t dim);

  // out[i] = ln p(data | models[i]). `data` may be over some of the columns. Preconditions: all
  // dimensions agree, all models have the same
  // noise variance; models.size() == out.size().
  void LogDensities(const SufficientStats& data, std::span<const Model> models,
                    std::span<double> out);

  // E[θ | data, models[i]], a row of `out` for each model, none of which has learned from the data.
  // Preconditions: as above; out.size() == models.size() * dim.
  void Means(const SufficientStats& data, std::span<const Model> models, std::span<double> out);

 private:
  const SufficientStats& OverAllColumns(const SufficientStats& data);
  void FindByDirections(const SufficientStats& data, std::span<const Model> models,
                        std::span<double> out);
  void FactorLanes(const SufficientStats& data, std::span<const Model> models);

  std::size_t dim_;
  LowRank low_rank_;
  // The models that are left to factor, and their places among all.
  std::vector<Model> dense_;
  std::vector<std::size_t> dense_places_;
  SufficientStats all_columns_;  // the data, if it is over some of the columns
  // For kLanes interleaved models (lanes.h): the packed precision, overwritten by its Cholesky
  // factor; b, overwritten by L⁻¹b.
  LaneBuffer matrix_;
  LaneBuffer information_;
  double log_determinant_[kLanes] = {};
  double explained_[kLanes] = {};
};

}  // namespace codband::linalg
