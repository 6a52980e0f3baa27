#pragma once

#include <cstddef>
#include <span>

namespace codband {

// Small kernels with a fixed order of operations: the same bits whatever the width of the
// processor's vectors. None allocates.

// Σ a[i]·b[i]. Four partial sums, added in a fixed order. Precondition: equal sizes.
double Dot(std::span<const double> a, std::span<const double> b);

// y += scale · x. Precondition: equal sizes.
void Axpy(double scale, std::span<const double> x, std::span<double> y);

// a += scale · x xᵀ, `a` packed.
void AddOuter(double scale, std::span<const double> x, std::span<double> a);

// Whether every |value| ≤ limit; NaN is not.
bool AllWithin(std::span<const double> values, double limit);

// The logarithm of a long product of positive numbers with a single call of log: powers of two are
// split off as needed, so that the product neither overflows nor vanishes while the factors lie
// within 1e-200 and 1e200.
class LogProduct {
 public:
  void Multiply(double factor);
  double Log() const;

 private:
  double product_ = 1;
  int exponent_ = 0;
};

}  // namespace codband
