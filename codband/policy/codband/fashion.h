#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "codband/base/bytes.h"

namespace codband {

// Times in which many users change at once: something comes into fashion, or out of it. Clicks tell
// little of a single user, but when a third of all users click no more, a few visits of each show
// it, and then little is needed to see who they are.
//
// A hidden Markov model of the hazard: that of calm times, or one of kLevels. Fashions begin so
// rarely that no more changes are expected of them than of calm times, and last three visits of
// every user on average. The posterior is filtered with every observation; what a change just
// before it would have made of the reward's density is taken from the user's own filter, whose
// belief it is independent of otherwise (assumed density filtering).
class Fashion {
 public:
  static constexpr std::array<double, 3> kLevels = {0.03, 0.1, 0.3};

  // E[h], where the hazard of calm times is `calm`.
  double Hazard(double calm) const {
    double sum = 0;
    double busy = 0;
    for (std::size_t i = 0; i < kLevels.size(); ++i) {
      sum += chances_[i] * kLevels[i];
      busy += chances_[i];
    }
    return busy == 0 ? calm : sum + (1 - busy) * calm;
  }

  // ChangeRate::Weigh.
  void Weigh(double calm, double ratio, std::uint64_t users) {
    if (!(ratio >= 0 && ratio < kLargestRatio)) return;
    const auto density = [&](double hazard) { return 1 - hazard + hazard * ratio; };
    double calmly = density(calm);
    double all = 0;
    for (std::size_t i = 0; i < kLevels.size(); ++i) {
      calmly -= chances_[i] * density(calm);
      chances_[i] *= density(kLevels[i]);
      all += chances_[i];
    }
    all += calmly;
    const double length = kVisits * static_cast<double>(users < 1 ? 1 : users);
    for (std::size_t i = 0; i < kLevels.size(); ++i) {
      const double begins = calm / (length * kLevels[i] * kLevels.size());
      chances_[i] = chances_[i] / all * (1 - 1 / length) + calmly / all * begins;
    }
  }

  void Save(ByteWriter& out) const { out.Doubles(chances_); }
  void Load(ByteReader& in) {
    in.Doubles("chances of a fashion", chances_);
    double sum = 0;
    for (const double chance : chances_) {
      if (!(chance >= 0)) in.Fail("chances of a fashion", "are negative");
      sum += chance;
    }
    if (!(sum <= 1)) in.Fail("chances of a fashion", "are beyond 1");
  }

 private:
  static constexpr double kVisits = 3;  // of a user, while it lasts
  static constexpr double kLargestRatio = 1e6;

  std::array<double, kLevels.size()> chances_ = {};  // calm is the rest
};

}  // namespace codband
