#pragma once

#include <span>
#include <vector>

#include "codband/base/bytes.h"
#include "codband/linalg/cholesky.h"
#include "codband/linalg/gaussian_posterior.h"
#include "codband/linalg/sufficient_stats.h"

namespace codband {

// How far users of one model are apart: each has a taste of their own, that of the model plus a
// departure δ ~ N(0, τ² I) over the features. With τ = 0 they are all alike.
//
// τ² comes from what is left over of rewards once the model has had its say. If users are alike,
// what is left over of two rewards of one user has nothing in common; else
//   E[e_i e_j] = τ² x_iᵀx_j,   so that   τ² = Σ e_i e_j x_iᵀx_j / Σ (x_iᵀx_j)²
// over pairs of observations of one user, up to σ² / √(the sum below).
struct DepartureEvidence {
  double products = 0;  // Σ e_i e_j x_iᵀx_j
  double squares = 0;   // Σ (x_iᵀx_j)²

  // An observation that is about to come to a user's period `data`, whose model is `model`: its
  // pairs with those that are there, in O(d²). The first `features` places count, not an intercept.
  // Precondition: the model has learned from `data`, and from others.
  static DepartureEvidence Of(const linalg::GaussianPosterior& model,
                              const linalg::SufficientStats& data, std::size_t features,
                              std::span<const double> x, double r);
  void Add(const DepartureEvidence& other) {
    products += other.products;
    squares += other.squares;
  }
  void Remove(const DepartureEvidence& other) {
    products -= other.products;
    squares -= other.squares;
  }
  // τ²: the mean of it given the evidence, if before it was thought to be `before`, give or take as
  // much; 0 if that is negative.
  double Variance(double noise_variance, double before) const;

  void Save(ByteWriter& out) const;
  void Load(ByteReader& in);
};

// Computes departures. Owns its scratch memory: calls do not allocate. Not thread-safe.
class DepartureSolver {
 public:
  DepartureSolver(std::size_t dim, std::size_t features);

  std::size_t dim() const { return factor_.dim(); }

  // δ, the most likely one given the user's period, into `out`, a number for each feature:
  //   δ = (S/σ² + I/τ²)⁻¹ (c - Sμ)/σ².
  // Precondition: variance > 0.
  void Solve(const linalg::GaussianPosterior& model, const linalg::SufficientStats& data,
             double variance, std::span<double> out);

 private:
  std::size_t features_;
  linalg::CholeskyFactor factor_;
  std::vector<double> diagonal_;
  std::vector<double> residual_;
};

}  // namespace codband
