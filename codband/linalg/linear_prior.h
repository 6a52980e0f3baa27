#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace codband::linalg {

// Parameters beyond this are the rounding errors of sums that doubles cannot carry: their products
// with features may be no numbers.
inline constexpr double kLargestParameter = 1e150;

// The prior of a linear model r = xᵀθ + noise: independent θ_i ~ N(mean_i, 1/precision_i), and
// noise ~ N(0, noise_variance).
// Invariants: equal sizes, all finite, precisions and the variance positive.
struct LinearPrior {
  std::vector<double> precision;
  std::vector<double> mean;
  double noise_variance = 1;

  std::size_t dim() const { return precision.size(); }

  // Whether the invariants hold.
  bool IsValid() const {
    const auto positive = [](double number) { return std::isfinite(number) && number > 0; };
    const auto finite = [](double number) { return std::isfinite(number); };
    return precision.size() == mean.size() && positive(noise_variance) &&
           std::ranges::all_of(precision, positive) && std::ranges::all_of(mean, finite);
  }

  // There are `dim` features from now on; the new ones, before the last one if that is an
  // intercept, have the given precision and mean 0.
  void Grow(std::size_t dim, bool intercept, double new_precision) {
    const std::size_t more = dim - precision.size();
    const auto at = static_cast<std::ptrdiff_t>(precision.size() - (intercept ? 1 : 0));
    precision.insert(precision.begin() + at, more, new_precision);
    mean.insert(mean.begin() + at, more, 0.0);
  }

  // θ ~ N(0, I/precision).
  static LinearPrior Isotropic(std::size_t dim, double precision, double noise_variance) {
    return {.precision = std::vector<double>(dim, precision),
            .mean = std::vector<double>(dim, 0.0),
            .noise_variance = noise_variance};
  }
};

}  // namespace codband::linalg
