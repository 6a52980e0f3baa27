#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "codband/linalg/covariance.h"
#include "codband/linalg/gaussian_posterior.h"
#include "codband/linalg/lanes.h"
#include "codband/linalg/sufficient_stats.h"

namespace codband::linalg {

// A set D of observations by the directions that it spans: S = L Lᵀ, where L has a row for each of
// the u columns that occur and r ≤ min(m, u) columns (Cholesky factorisation with pivots, up to
// rounding), and y with L y = c. A few visits of a user, or many with the same few items, span few
// directions of many columns. With G = LᵀΣL and f = y - Lᵀμ
//
//   ln p(D | N(μ, Σ)) = -½[m ln 2πσ² + ln|I + G/σ²| + (q - yᵀy)/σ² + fᵀ(σ²I + G)⁻¹f],
//
// the same as JointLikelihood, in O(u²r + ur²) beside O(u r²) once for all models. Of a model that
// was learned from D too, whose Σ' and μ' therefore know it,
//
//   ln|I + G/σ²| = -ln|I - G'/σ²|,   fᵀ(σ²I + G)⁻¹f = f'ᵀ(σ²I - G')⁻¹f'.
//
// Owns its scratch memory: calls do not allocate once there have been as many columns.
class LowRank {
 public:
  // From now on about `data`, whose vectors have `dim` features.
  void Decompose(const SufficientStats& data, std::size_t dim);

  std::size_t rank() const { return rank_; }
  // Whether a density costs less than a factorisation of a model.
  bool Pays() const { return 2 * rank_ * columns_ * (columns_ + 2 * rank_) < dim_ * dim_ * dim_; }

  // ln p(data | model); `covariance` is the model's. Nothing if it would lose too many digits,
  // which only a model that contains the data can. Precondition: the covariance is known, or the
  // model knows nothing else than the prior, or than the data.
  std::optional<double> LogDensity(const GaussianPosterior& model, const Covariance* covariance,
                                   bool contains_data);

  // x = the i-th column of L, times `scale`, as a vector of features.
  void ReadDirection(std::size_t i, double scale, std::span<double> x) const;

  // The data come to a model with this covariance (`sign` 1) or leave it (-1), O(d u r + d² r) by
  // Woodbury's formula. It is forgotten if too many digits would be lost. Precondition: it is
  // known.
  void Change(Covariance& covariance, double noise_variance, int sign);

 private:
  // I + scale · (A + Aᵀ), A in inner_, to matrix_.
  void AddToIdentity(double scale);
  void FindProduct(const Covariance& covariance);
  void FindProduct(std::span<const double> prior_precision);

  std::size_t dim_ = 0;
  std::size_t columns_ = 0;
  std::size_t rank_ = 0;
  std::size_t stride_ = 0;  // of L: the rank at most, in whole blocks
  std::size_t width_ = 0;   // the rank, in whole blocks
  double observations_ = 0;
  double rest_ = 0;  // q - yᵀy

  std::vector<std::uint16_t> places_;
  LaneBuffer directions_;         // L by rows
  std::vector<double> rewards_;   // y
  std::vector<double> left_;      // of the diagonal of S
  std::vector<double> half_;      // Σ at the columns, packed, with half the diagonal
  LaneBuffer product_;            // half_ · L
  LaneBuffer inner_;              // Lᵀ half_ L
  LaneBuffer rows_;               // Σ, its rows at the columns
  LaneBuffer outer_;              // LᵀΣ
  std::vector<double> matrix_;    // I ± G/σ² by rows, and its factor
  std::vector<double> residual_;  // f
};

}  // namespace codband::linalg
