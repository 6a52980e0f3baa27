#pragma once

#include <cstddef>
#include <span>

#include "codband/base/check.h"

namespace codband::linalg {

// Small kernels with a fixed order of operations: bit-identical results whatever the vector width
// of the processor. None allocates.

// Σ a[i]·b[i]. Four partial sums, added in a fixed order. Precondition: equal sizes.
inline double Dot(std::span<const double> a, std::span<const double> b) {
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

// out[i] = x · row i, of as many rows as `out` has entries; bit-identical to Dot.
void MultiplyRows(std::span<const double> rows, std::span<const double> x, std::span<double> out);

// Σ w[i]·x[i]²; without weights Dot(x, x). Precondition: equal sizes, or no weights.
double WeightedSquare(std::span<const double> x, std::span<const double> weights);

// y += scale · x. Preconditions: equal sizes, no overlap.
inline void Axpy(double scale, std::span<const double> x, std::span<double> y) {
  CODBAND_DCHECK(x.size() == y.size());
  const double* __restrict in = x.data();
  double* __restrict out = y.data();
  for (std::size_t i = 0; i < x.size(); ++i) out[i] += scale * in[i];
}

// a += scale · x xᵀ, `a` packed.
void AddOuter(double scale, std::span<const double> x, std::span<double> a);

// out = Ax, A symmetric and packed. No overlap.
void Multiply(std::span<const double> a, std::span<const double> x, std::span<double> out);

// Whether every |value| ≤ limit; false for NaN.
bool AllWithin(std::span<const double> values, double limit);

// The logarithm of a long product of positive numbers with a single call of log: powers of two are
// split off as needed, so that the product neither overflows nor underflows if the factors are
// between 1e-200 and 1e200.
class LogProduct {
 public:
  void Multiply(double factor) {
    product_ *= factor;
    if (product_ < 1e-100 || product_ > 1e100) SplitOffPowersOfTwo();
  }
  double Log() const;

 private:
  void SplitOffPowersOfTwo();

  double product_ = 1;
  int exponent_ = 0;
};

}  // namespace codband::linalg
