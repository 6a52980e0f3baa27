#include "codband/policy/codband/window_detector.h"

#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <numbers>

#include "codband/linalg/kernels.h"

namespace codband {

WindowDetector::WindowDetector(const WindowDetectorOptions& options)
    : options_(options), epsilon_(std::numbers::sqrt2 * boost::math::erf_inv(1 - options.delta)) {}

double WindowDetector::Alpha(const Period& period, double sigma) const {
  if (options_.fixed_alpha) return options_.alpha;
  const auto d = static_cast<double>(period.data.dim());
  const auto m = static_cast<double>(period.data.m());
  return sigma * std::sqrt(d * std::log1p(m / (d * options_.ridge)) +
                           2 * std::log(1 / options_.delta1)) +
         std::sqrt(options_.ridge);
}

bool WindowDetector::IsBad(const Period& period, std::span<const double> x, double r,
                           double sigma) const {
  const double error = std::abs(linalg::Dot(x, period.paper->own_regression.mean()) - r);
  if (error <= epsilon_ * sigma) return false;  // whatever the width
  return error > Alpha(period, sigma) * std::sqrt(period.paper->own_regression.Variance(x)) +
                     epsilon_ * sigma;
}

bool WindowDetector::Fires(const Period& period) const {
  const FlagWindow& badness = period.paper->badness;
  if (badness.size() == 0) return false;
  const auto window = static_cast<double>(badness.size());
  const double mean = static_cast<double>(badness.raised()) / window;
  return mean > options_.delta1 + std::sqrt(std::log(1 / options_.delta2) / (2 * window));
}

}  // namespace codband
