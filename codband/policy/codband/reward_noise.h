#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

namespace codband {

// The noise model by which models are told apart. Rewards that have been nothing but 0 and 1 so far
// are clicks, that is Bernoulli: the expected reward is then the chance of a 1, and an unlikely
// click is as surprising as its chance says, where a Gaussian would call it impossible. All other
// rewards are Gaussian.
class RewardNoise {
 public:
  bool clicks() const { return clicks_; }
  void set_clicks(bool clicks) { clicks_ = clicks; }

  void Watch(double r) { clicks_ = clicks_ && (r == 0 || r == 1); }

  // ln p(r) where r is expected to be `mean`, with that variance (noise included).
  double LogDensity(double r, double mean, double variance) const {
    if (clicks_) {
      // A linear model is no probability: never quite sure.
      const double chance = std::clamp(mean, kLeastChance, 1 - kLeastChance);
      return std::log(r == 1 ? chance : 1 - chance);
    }
    const double residual = r - mean;
    return -0.5 * (residual * residual / variance + std::log(2 * std::numbers::pi * variance));
  }

  // The exponent of a tempered Gaussian likelihood of clicks, where a click has this chance on
  // average. A rare one is far more surprising to a Gaussian with the variance of clicks,
  // (1 - p)² / 2p(1 - p) nats, than its chance says, -ln p: users would be told apart by luck. The
  // exponent makes it as surprising as its chance says, and never more.
  static double TrustInGaussian(double chance) {
    const double p = std::clamp(chance, kRarest, 1 - kRarest);
    return std::min(1.0, -2 * p * std::log(p) / (1 - p));
  }

 private:
  static constexpr double kLeastChance = 0.02;
  static constexpr double kRarest = 1e-3;

  bool clicks_ = true;
};

}  // namespace codband
