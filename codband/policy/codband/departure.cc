#include "codband/policy/codband/departure.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "codband/base/check.h"
#include "codband/linalg/kernels.h"
#include "codband/linalg/packed.h"

namespace codband {
namespace {

constexpr double kLeast = 1e-100;  // a variance whose inverse is of use

// out = Sx, S packed.
void Multiply(std::span<const double> S, std::span<const double> x, std::span<double> out) {
  const std::size_t d = x.size();
  std::ranges::fill(out, 0.0);
  for (std::size_t j = 0; j < d; ++j) {
    const std::span<const double> column = S.subspan(linalg::PackedColumn(d, j), d - j);
    linalg::Axpy(x[j], column, out.subspan(j));
    out[j] += linalg::Dot(column.subspan(1), x.subspan(j + 1));
  }
}

// out = c - Sμ = Σ e_j x_j, where e are the residuals of the model.
void ResidualSums(const linalg::GaussianPosterior& model, const linalg::SufficientStats& data,
                  std::span<double> out) {
  Multiply(data.S(), model.mean(), out);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = data.c()[i] - out[i];
}

}  // namespace

DepartureEvidence DepartureEvidence::Of(const linalg::GaussianPosterior& model,
                                        const linalg::SufficientStats& data, std::size_t features,
                                        std::span<const double> x, double r) {
  std::array<double, linalg::kMaxDimension> buffer;
  const std::span<double> work(buffer.data(), x.size());
  ResidualSums(model, data, work);
  const double residual = r - linalg::Dot(x, model.mean());
  // The model has learned from this user too, and absorbs as much of the random effect; the share
  // that it leaves is in both residuals.
  const double others = 1 - static_cast<double>(data.m()) / static_cast<double>(model.stats().m());
  DepartureEvidence out{.products = residual *
                                    linalg::Dot(x.first(features), work.first(features)) /
                                    (others * others)};
  // x without the intercept, times S, times x.
  std::array<double, linalg::kMaxDimension> alone;
  const std::span<double> features_of_x(alone.data(), x.size());
  std::ranges::copy(x, features_of_x.begin());
  std::fill(features_of_x.begin() + static_cast<std::ptrdiff_t>(features), features_of_x.end(),
            0.0);
  Multiply(data.S(), features_of_x, work);
  out.squares = linalg::Dot(features_of_x, work);
  return out;
}

double DepartureEvidence::Variance(double noise_variance, double before) const {
  const double worth = noise_variance / before;
  const double variance =
      (products + worth * noise_variance) / (std::max(0.0, squares) + worth * worth);
  return variance > kLeast ? variance : 0;
}

void DepartureEvidence::Save(ByteWriter& out) const {
  out.Double(products);
  out.Double(squares);
}

void DepartureEvidence::Load(ByteReader& in) {
  products = in.Double("products of a departure");
  squares = in.Double("squares of a departure");
}

DepartureSolver::DepartureSolver(std::size_t dim, std::size_t features)
    : features_(features), factor_(dim, 1), diagonal_(dim), residual_(dim) {}

void DepartureSolver::Solve(const linalg::GaussianPosterior& model,
                            const linalg::SufficientStats& data, double variance,
                            std::span<double> out) {
  CODBAND_DCHECK(out.size() == features_);
  const double noise = model.noise_variance();
  std::ranges::fill(diagonal_, 1 / variance);
  // The variance of intercepts within a model is that between models.
  std::ranges::copy(model.prior_precision().subspan(features_),
                    diagonal_.begin() + static_cast<std::ptrdiff_t>(features_));
  std::ranges::fill(out, 0.0);
  if (!factor_.Factorize(diagonal_, 1 / noise, data.S())) return;
  ResidualSums(model, data, residual_);
  for (double& value : residual_) value /= noise;
  factor_.SolveLower(residual_);
  factor_.SolveTransposed(residual_);
  std::ranges::copy(std::span(residual_).first(features_), out.begin());
}

}  // namespace codband
