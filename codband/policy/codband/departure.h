#pragma once

#include <span>
#include <vector>

#include "codband/base/bytes.h"
#include "codband/linalg/cholesky.h"
#include "codband/linalg/gaussian_posterior.h"
#include "codband/linalg/sufficient_stats.h"

namespace codband {

// Users as random effects: the parameter of a user is that of the model plus a departure
// δ ~ N(0, τ² W) over the features; W = I unless columns differ in their units (column_scales.h),
// and x_iᵀx_j below is x_iᵀW x_j then. Weights are a number for each feature, or none. A user's
// estimate is thus partially pooled: shrunk towards the model by as much as users of a model are
// seen to be alike. With τ = 0 they are all alike (complete pooling).
//
// The variance τ² is estimated by the method of moments, from residuals e = r - xᵀμ. If users are
// alike, two residuals of one user are uncorrelated; else
//   E[e_i e_j] = τ² x_iᵀx_j,   so that   τ² = Σ e_i e_j x_iᵀx_j / Σ (x_iᵀx_j)²
// over pairs of observations of one user, with a standard error of σ² / √(the sum below).
struct DepartureEvidence {
  double products = 0;  // Σ e_i e_j x_iᵀx_j
  double squares = 0;   // Σ (x_iᵀx_j)²
  static constexpr double kMost = 1e250;

  // The pairs of an observation that is about to come to a user's period `data`, assigned to
  // `model`, with the observations that are there, in O(k²) for the k columns of `data`. The first
  // `features` places count, not an intercept. Precondition: the model has learned from `data`, and
  // from others.
  static DepartureEvidence Of(const linalg::GaussianPosterior& model,
                              const linalg::SufficientStats& data, std::size_t features,
                              std::span<const double> x, double r,
                              std::span<const double> weights = {});
  // False if the products would overflow a double.
  bool Counts() const { return std::abs(products) < kMost && squares < kMost; }
  void Add(const DepartureEvidence& other) {
    products += other.products;
    squares += other.squares;
  }
  void Remove(const DepartureEvidence& other) {
    products -= other.products;
    squares -= other.squares;
  }
  // τ²: its posterior mean, if the prior has the mean and the standard deviation `before`; 0 if
  // that is negative.
  double Variance(double noise_variance, double before) const;

  void Save(ByteWriter& out) const;
  void Load(ByteReader& in);
};

// Predicts the random effect of a user. Owns its scratch memory: calls do not allocate once it has
// served as many columns. Not thread-safe.
class DepartureSolver {
 public:
  // Whether the last system that was solved is kept. One with the same matrix is then not
  // factorised again. The same system, as when a reward follows its choice at once, is not solved
  // again.
  void KeepSystem(bool keep) { keeps_system_ = keep; }

  // δ, its posterior mean given the user's period (the best linear unbiased predictor), into `out`,
  // a number for each feature, which is 0 for those that are no columns of `data`:
  //   δ = (S/σ² + I/τ²)⁻¹ (c - Sμ)/σ².
  // Exact in O(k³/6) for up to 64 columns; beyond, sixteen steps of conjugate gradients at most,
  // each O(k²). Precondition: variance > 0.
  void Solve(const linalg::GaussianPosterior& model, const linalg::SufficientStats& data,
             double variance, std::span<double> out, std::span<const double> weights = {});

 private:
  // Solves for `residual_`, in place.
  void Iterate(const linalg::SufficientStats& data, double noise);
  // The same exactly; false if that cannot be.
  bool SolveExactly(const linalg::SufficientStats& data, double noise);
  // Brings the factor up to date; false if there is none.
  bool Factorize(const linalg::SufficientStats& data, double noise);

  linalg::CholeskyFactor factor_{1, 1};
  std::vector<double> diagonal_;
  std::vector<double> residual_;
  std::vector<double> scale_;
  std::vector<double> rest_;
  std::vector<double> direction_;
  std::vector<double> product_;

  bool keeps_system_ = false;
  std::vector<double> matrix_;  // all that the factor follows from; empty: not kept
  std::vector<double> right_;   // of the system that was solved, with its solution; empty: not kept
  std::vector<double> solution_;
};

}  // namespace codband
