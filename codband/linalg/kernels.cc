#include "codband/linalg/kernels.h"

#include <cmath>
#include <numbers>

#include "codband/base/check.h"
#include "codband/linalg/packed.h"

namespace codband {

double Dot(std::span<const double> a, std::span<const double> b) {
  CODBAND_DCHECK(a.size() == b.size());
  double sums[4] = {};
  const std::size_t whole = a.size() / 4 * 4;
  for (std::size_t i = 0; i < whole; i += 4) {
    for (std::size_t lane = 0; lane < 4; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  double tail = 0;
  for (std::size_t i = whole; i < a.size(); ++i) tail += a[i] * b[i];
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + tail;
}

void Axpy(double scale, std::span<const double> x, std::span<double> y) {
  CODBAND_DCHECK(x.size() == y.size());
  const double* __restrict in = x.data();
  double* __restrict out = y.data();
  for (std::size_t i = 0; i < x.size(); ++i) out[i] += scale * in[i];
}

void AddOuter(double scale, std::span<const double> x, std::span<double> a) {
  const std::size_t dim = x.size();
  CODBAND_DCHECK(a.size() == PackedSize(dim));
  for (std::size_t j = 0; j < dim; ++j) {
    Axpy(scale * x[j], x.subspan(j), a.subspan(PackedColumn(dim, j), dim - j));
  }
}

bool AllWithin(std::span<const double> values, double limit) {
  std::size_t outside = 0;
  for (const double value : values) outside += !(std::abs(value) <= limit);
  return outside == 0;
}

void LogProduct::Multiply(double factor) {
  product_ *= factor;
  if (product_ < 1e-100 || product_ > 1e100) {
    int exponent = 0;
    product_ = std::frexp(product_, &exponent);
    exponent_ += exponent;
  }
}

double LogProduct::Log() const { return std::log(product_) + exponent_ * std::numbers::ln2; }

}  // namespace codband
