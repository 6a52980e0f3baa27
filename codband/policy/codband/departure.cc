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

using Buffer = std::array<double, linalg::kMaxDimension>;

// The values of x at the columns of the data.
std::span<double> AtColumns(const linalg::SufficientStats& data, std::span<const double> x,
                            Buffer& buffer) {
  for (std::size_t i = 0; i < data.dim(); ++i) buffer[i] = x[data.Place(i, x.size())];
  return {buffer.data(), data.dim()};
}

// How many columns of the data are among the first `features` of `dim`.
std::size_t CountFeatures(const linalg::SufficientStats& data, std::size_t features,
                          std::size_t dim) {
  std::size_t count = data.dim();
  while (count > 0 && data.Place(count - 1, dim) >= features) --count;
  return count;
}

// out = c - Sμ = Σ e_j x_j, where e are the residuals of the model, at the columns of the data.
void ResidualSums(const linalg::GaussianPosterior& model, const linalg::SufficientStats& data,
                  std::span<double> out) {
  Buffer mean;
  Multiply(data.S(), AtColumns(data, model.mean(), mean), out);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = data.c()[i] - out[i];
}

}  // namespace

DepartureEvidence DepartureEvidence::Of(const linalg::GaussianPosterior& model,
                                        const linalg::SufficientStats& data, std::size_t features,
                                        std::span<const double> x, double r) {
  // All is 0 at other columns than those of the data.
  const std::size_t counted = CountFeatures(data, features, x.size());
  Buffer buffer;
  const std::span<double> work(buffer.data(), data.dim());
  ResidualSums(model, data, work);
  Buffer alone;
  const std::span<double> here = AtColumns(data, x, alone);
  const double residual = r - linalg::Dot(x, model.mean());
  // The model has learned from this user too, and absorbs as much of the random effect; the share
  // that it leaves is in both residuals.
  const double others = 1 - static_cast<double>(data.m()) / static_cast<double>(model.stats().m());
  DepartureEvidence out{.products = residual *
                                    linalg::Dot(here.first(counted), work.first(counted)) /
                                    (others * others)};
  // x without the intercept, times S, times x.
  std::ranges::fill(here.subspan(counted), 0.0);
  Multiply(data.S(), here, work);
  out.squares = linalg::Dot(here, work);
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

void DepartureSolver::Solve(const linalg::GaussianPosterior& model,
                            const linalg::SufficientStats& data, double variance,
                            std::span<double> out) {
  const std::size_t counted = CountFeatures(data, out.size(), model.dim());
  const double noise = model.noise_variance();
  factor_.Resize(data.dim());
  residual_.resize(data.dim());
  diagonal_.assign(data.dim(), 1 / variance);
  // The variance of intercepts within a model is that between models.
  for (std::size_t i = counted; i < data.dim(); ++i) {
    diagonal_[i] = model.prior_precision()[data.Place(i, model.dim())];
  }
  std::ranges::fill(out, 0.0);
  if (!factor_.Factorize(diagonal_, 1 / noise, data.S())) return;
  ResidualSums(model, data, residual_);
  for (double& value : residual_) value /= noise;
  factor_.SolveLower(residual_);
  factor_.SolveTransposed(residual_);
  for (std::size_t i = 0; i < counted; ++i) out[data.Place(i, model.dim())] = residual_[i];
}

}  // namespace codband
