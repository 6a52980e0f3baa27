#include "codband/data/pca.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <span>

#include "codband/data/top_eigenpairs.h"

namespace codband::data {
namespace {

double Sum(std::span<const double> x) { return std::accumulate(x.begin(), x.end(), 0.0); }

double Dot(std::span<const double> x, std::span<const double> y) {
  return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
}

// A − 1 meanᵀ, never formed explicitly.
class Centred {
 public:
  explicit Centred(const SparseMatrix& matrix) : matrix_(matrix), mean_(matrix.cols) {
    for (std::size_t e = 0; e < matrix.value.size(); ++e)
      mean_[matrix.column[e]] += matrix.value[e];
    for (double& value : mean_) value /= static_cast<double>(matrix.rows());
  }

  void Multiply(std::span<const double> x, std::span<double> y) const {
    matrix_.Multiply(x, y);
    const double shift = Dot(mean_, x);
    for (double& value : y) value -= shift;
  }
  void MultiplyTransposed(std::span<const double> x, std::span<double> y) const {
    matrix_.MultiplyTransposed(x, y);
    const double sum = Sum(x);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] -= sum * mean_[i];
  }
  // The sum of all squares.
  double Squares() const {
    return Dot(matrix_.value, matrix_.value) -
           static_cast<double>(matrix_.rows()) * Dot(mean_, mean_);
  }
  const std::vector<double>& mean() const { return mean_; }

 private:
  const SparseMatrix& matrix_;
  std::vector<double> mean_;
};

void SettleSign(std::span<double> component) {
  double largest = 0;
  for (const double value : component) largest = std::max(largest, std::abs(value));
  for (const double value : component) {
    if (std::abs(value) < largest * (1 - 1e-9)) continue;
    if (value < 0) {
      for (double& entry : component) entry = -entry;
    }
    return;
  }
}

}  // namespace

Result<PrincipalComponents> Pca(const SparseMatrix& rows, std::size_t dim) {
  const std::size_t n = rows.rows();
  if (dim == 0 || dim >= n || dim > rows.cols) {
    return Status::InvalidArgument(fmt::format(
        "{} components of {} rows and {} columns, expected 1 to one less than there are rows, and "
        "no more than columns",
        dim, n, rows.cols));
  }
  const Centred centred(rows);
  const bool by_rows = n < rows.cols;
  std::vector<double> other(by_rows ? rows.cols : n);
  const auto product = [&](std::span<const double> x, std::span<double> y) {
    if (by_rows) {
      centred.MultiplyTransposed(x, other);
      centred.Multiply(other, y);
    } else {
      centred.Multiply(x, other);
      centred.MultiplyTransposed(other, y);
    }
  };
  const auto pairs = TopEigenpairs(by_rows ? n : rows.cols, dim, product);
  if (!pairs.ok()) return pairs.status();

  PrincipalComponents result{.dim = dim,
                             .scores = std::vector<double>(n * dim),
                             .components = std::vector<double>(dim * rows.cols),
                             .mean = centred.mean(),
                             .variance = {},
                             .total_variance = centred.Squares() / static_cast<double>(n - 1)};
  std::vector<double> score(n);
  for (std::size_t i = 0; i < dim; ++i) {
    const double square = pairs.value().values[i];
    if (!(square > 1e-12 * centred.Squares())) {
      return Status::InvalidArgument(
          fmt::format("{} components, but the rows vary in {} directions only", dim, i));
    }
    const std::span<double> component =
        std::span(result.components).subspan(i * rows.cols, rows.cols);
    const std::span<const double> found = pairs.value().vector(i);
    if (by_rows) {
      centred.MultiplyTransposed(found, component);
      for (double& value : component) value /= std::sqrt(square);
    } else {
      std::copy(found.begin(), found.end(), component.begin());
    }
    SettleSign(component);
    centred.Multiply(component, score);
    for (std::size_t row = 0; row < n; ++row) result.scores[row * dim + i] = score[row];
    result.variance.push_back(square / static_cast<double>(n - 1));
  }
  return result;
}

void Standardise(std::vector<double>& values, std::size_t dim) {
  const std::size_t n = values.size() / dim;
  for (std::size_t i = 0; i < dim; ++i) {
    double mean = 0;
    for (std::size_t row = 0; row < n; ++row) mean += values[row * dim + i];
    mean /= static_cast<double>(n);
    double squares = 0;
    for (std::size_t row = 0; row < n; ++row) {
      const double deviation = values[row * dim + i] - mean;
      squares += deviation * deviation;
    }
    const double sd = std::sqrt(squares / static_cast<double>(n));
    for (std::size_t row = 0; row < n; ++row) {
      double& value = values[row * dim + i];
      value = sd > 0 ? (value - mean) / sd : 0;
    }
  }
}

}  // namespace codband::data
