#pragma once

#include <cmath>
#include <numbers>

namespace codband {

// The Gittins index of a Gaussian arm less its mean, in standard deviations of that mean, by the
// approximation of Brezzi & Lai (2002): Ψ of a Wiener process. `s` is the variance of the mean over
// that of the noise, times the visits ahead. From 0, at s = 0, it grows like √(2 ln s).
inline double GittinsIndex(double s) {
  if (s <= 0.2) return std::sqrt(s / 2);
  if (s > 15) {
    const double log = std::log(s);
    return std::sqrt(2 * log - std::log(log) - std::log(16 * std::numbers::pi));
  }
  const double root = 1 / std::sqrt(s);
  if (s <= 1) return 0.49 - 0.11 * root;
  if (s <= 5) return 0.63 - 0.26 * root;
  return 0.77 - 0.58 * root;
}

}  // namespace codband
