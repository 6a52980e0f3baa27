#include "codband/linalg/kernels.h"

#include <cmath>
#include <numbers>

#include "codband/base/check.h"
#include "codband/linalg/lanes.h"
#include "codband/linalg/packed.h"
#include "codband/linalg/vector_clones.h"

namespace codband::linalg {

CODBAND_VECTOR_CLONES void AddOuter(double scale, std::span<const double> x, std::span<double> a) {
  const std::size_t dim = x.size();
  CODBAND_DCHECK(a.size() == PackedSize(dim));
  for (std::size_t j = 0; j < dim; ++j) {
    if (x[j] == 0) continue;  // adds nothing
    Axpy(scale * x[j], x.subspan(j), a.subspan(PackedColumn(dim, j), dim - j));
  }
}

CODBAND_VECTOR_CLONES void Multiply(std::span<const double> a, std::span<const double> x,
                                    std::span<double> out) {
  const std::size_t dim = x.size();
  CODBAND_DCHECK(a.size() == PackedSize(dim) && out.size() == dim);
  for (double& value : out) value = 0;
  for (std::size_t j = 0; j < dim; ++j) {
    const std::span<const double> column = a.subspan(PackedColumn(dim, j), dim - j);
    Axpy(x[j], column, out.subspan(j));
    out[j] += Dot(column.subspan(1), x.subspan(j + 1));
  }
}

CODBAND_VECTOR_CLONES void MultiplyRows(std::span<const double> rows, std::span<const double> x,
                                        std::span<double> out) {
  const std::size_t dim = x.size();
  CODBAND_DCHECK(rows.size() == out.size() * dim);
  const std::size_t whole = dim / kLanes * kLanes;
  const double* row = rows.data();
  for (double& product : out) {
    Lanes sums{};
    for (std::size_t i = 0; i < whole; i += kLanes) {
      sums += *AsLanes(row + i) * *AsLanes(x.data() + i);
    }
    double tail = 0;
    for (std::size_t i = whole; i < dim; ++i) tail += row[i] * x[i];
    product = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + tail;
    row += dim;
  }
}

double WeightedSquare(std::span<const double> x, std::span<const double> weights) {
  if (weights.empty()) return Dot(x, x);
  CODBAND_DCHECK(x.size() == weights.size());
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += weights[i] * x[i] * x[i];
  return sum;
}

CODBAND_VECTOR_CLONES bool AllWithin(std::span<const double> values, double limit) {
  std::size_t outside = 0;
  for (const double value : values) outside += !(std::abs(value) <= limit);
  return outside == 0;
}

void LogProduct::SplitOffPowersOfTwo() {
  int exponent = 0;
  product_ = std::frexp(product_, &exponent);
  exponent_ += exponent;
}

double LogProduct::Log() const { return std::log(product_) + exponent_ * std::numbers::ln2; }

}  // namespace codband::linalg
