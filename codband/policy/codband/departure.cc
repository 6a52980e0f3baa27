#include "codband/policy/codband/departure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "codband/base/check.h"
#include "codband/linalg/kernels.h"
#include "codband/linalg/packed.h"

namespace codband {
namespace {

constexpr double kLeast = 1e-100;  // a variance whose inverse is of use
// Beyond so many columns the system is solved by iteration.
constexpr std::size_t kFewColumns = 64;
constexpr std::size_t kMostSteps = 16;
constexpr double kTolerance = 1e-6;

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
  linalg::Multiply(data.S(), AtColumns(data, model.mean(), mean), out);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = data.c()[i] - out[i];
}

bool SameBits(std::span<const double> a, std::span<const double> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

}  // namespace

DepartureEvidence DepartureEvidence::Of(const linalg::GaussianPosterior& model,
                                        const linalg::SufficientStats& data, std::size_t features,
                                        std::span<const double> x, double r,
                                        std::span<const double> weights) {
  // All is 0 at other columns than those of the data.
  const std::size_t counted = CountFeatures(data, features, x.size());
  Buffer buffer;
  const std::span<double> work(buffer.data(), data.dim());
  ResidualSums(model, data, work);
  Buffer alone;
  const std::span<double> here = AtColumns(data, x, alone);
  for (std::size_t i = 0; !weights.empty() && i < counted; ++i) {
    here[i] *= weights[data.Place(i, x.size())];
  }
  const double residual = r - linalg::Dot(x, model.mean());
  // The model has learned from this user too, and absorbs as much of the random effect; the share
  // that it leaves is in both residuals.
  const double others = 1 - static_cast<double>(data.m()) / static_cast<double>(model.stats().m());
  DepartureEvidence out{.products = residual *
                                    linalg::Dot(here.first(counted), work.first(counted)) /
                                    (others * others)};
  // Wx without the intercept, times S, times Wx.
  std::ranges::fill(here.subspan(counted), 0.0);
  linalg::Multiply(data.S(), here, work);
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

// Conjugate gradients, preconditioned by the diagonal (Golub & Van Loan, §11.5). Directions that
// the data determine best come first; what a few steps leave out is what the data say least of.
void DepartureSolver::Iterate(const linalg::SufficientStats& data, double noise) {
  const std::size_t k = data.dim();
  scale_.resize(k);
  for (std::size_t i = 0; i < k; ++i) {
    scale_[i] = 1 / (diagonal_[i] + data.S()[linalg::PackedColumn(k, i)] / noise);
  }
  rest_.assign(residual_.begin(), residual_.end());
  residual_.assign(k, 0.0);
  direction_.assign(k, 0.0);
  product_.resize(k);
  double before = 0;
  double goal = 0;
  for (std::size_t step = 0; step < kMostSteps; ++step) {
    double square = 0;  // of the rest, as the preconditioner measures it
    for (std::size_t i = 0; i < k; ++i) square += scale_[i] * rest_[i] * rest_[i];
    if (step == 0) goal = kTolerance * kTolerance * square;
    if (!(square > goal)) return;
    const double turn = step == 0 ? 0 : square / before;
    for (std::size_t i = 0; i < k; ++i) {
      direction_[i] = scale_[i] * rest_[i] + turn * direction_[i];
    }
    linalg::Multiply(data.S(), direction_, product_);
    for (std::size_t i = 0; i < k; ++i) {
      product_[i] = product_[i] / noise + diagonal_[i] * direction_[i];
    }
    const double length = square / linalg::Dot(direction_, product_);
    linalg::Axpy(length, direction_, residual_);
    linalg::Axpy(-length, product_, rest_);
    before = square;
  }
}

// The matrix is kept as what it is made of: S, the diagonal and the noise.
bool DepartureSolver::Factorize(const linalg::SufficientStats& data, double noise) {
  const std::span<const double> sums = data.S();
  const std::size_t k = data.dim();
  const std::span<const double> kept(matrix_);
  if (kept.size() == sums.size() + k + 1 && kept.back() == noise &&
      SameBits(kept.first(sums.size()), sums) &&
      SameBits(kept.subspan(sums.size(), k), diagonal_)) {
    return true;
  }
  matrix_.clear();
  right_.clear();
  factor_.Resize(k);
  if (!factor_.Factorize(diagonal_, 1 / noise, sums)) return false;
  if (!keeps_system_) return true;
  matrix_.assign(sums.begin(), sums.end());
  matrix_.insert(matrix_.end(), diagonal_.begin(), diagonal_.end());
  matrix_.push_back(noise);
  return true;
}

bool DepartureSolver::SolveExactly(const linalg::SufficientStats& data, double noise) {
  if (!Factorize(data, noise)) return false;
  if (!right_.empty() && SameBits(right_, residual_)) {
    residual_.assign(solution_.begin(), solution_.end());
    return true;
  }
  if (keeps_system_) right_.assign(residual_.begin(), residual_.end());
  factor_.SolveLower(residual_);
  factor_.SolveTransposed(residual_);
  if (keeps_system_) solution_.assign(residual_.begin(), residual_.end());
  return true;
}

void DepartureSolver::Solve(const linalg::GaussianPosterior& model,
                            const linalg::SufficientStats& data, double variance,
                            std::span<double> out, std::span<const double> weights) {
  const std::size_t counted = CountFeatures(data, out.size(), model.dim());
  const double noise = model.noise_variance();
  residual_.resize(data.dim());
  diagonal_.assign(data.dim(), 1 / variance);
  for (std::size_t i = 0; !weights.empty() && i < counted; ++i) {
    diagonal_[i] /= weights[data.Place(i, model.dim())];
  }
  // The variance of intercepts within a model is that between models.
  for (std::size_t i = counted; i < data.dim(); ++i) {
    diagonal_[i] = model.prior_precision()[data.Place(i, model.dim())];
  }
  std::ranges::fill(out, 0.0);
  ResidualSums(model, data, residual_);
  for (double& value : residual_) value /= noise;
  if (data.dim() > kFewColumns) {
    Iterate(data, noise);
  } else {
    if (!SolveExactly(data, noise)) return;
  }
  if (!linalg::AllWithin(residual_, linalg::kLargestParameter)) return;
  for (std::size_t i = 0; i < counted; ++i) out[data.Place(i, model.dim())] = residual_[i];
}

}  // namespace codband
