#include "codband/policy/codband/window_detector.h"

#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <numbers>

#include "codband/linalg/kernels.h"

namespace codband {

WindowDetector::WindowDetector(const WindowDetectorOptions& options)
    : options_(options),
      epsilon_(std::numbers::sqrt2 * options.sigma * boost::math::erf_inv(1 - options.delta)) {}

double WindowDetector::Alpha(const Period& period) const {
  if (options_.fixed_alpha) return options_.alpha;
  const auto d = static_cast<double>(period.own_regression.dim());
  const auto m = static_cast<double>(period.data().m());
  return options_.sigma * std::sqrt(d * std::log1p(m / (d * options_.ridge)) +
                                    2 * std::log(1 / options_.delta1)) +
         std::sqrt(options_.ridge);
}

bool WindowDetector::IsBad(const Period& period, std::span<const double> x, double r) const {
  const double error = std::abs(Dot(x, period.own_regression.mean()) - r);
  if (error <= epsilon_) return false;  // whatever the width
  return error > Alpha(period) * std::sqrt(period.own_regression.Variance(x)) + epsilon_;
}

bool WindowDetector::Fires(const FlagWindow& badness) const {
  if (badness.size() == 0) return false;
  const auto window = static_cast<double>(badness.size());
  const double mean = static_cast<double>(badness.raised()) / window;
  return mean > options_.delta1 + std::sqrt(std::log(1 / options_.delta2) / (2 * window));
}

}  // namespace codband
