#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "codband/base/bytes.h"

namespace codband {

// The time, in observations of all users, and the time constants of exponential decay.
struct RecencyClock {
  static constexpr std::size_t kRates = 3;

  std::uint64_t now = 0;
  std::array<double, kRates> constants = {1e3, 1e4, 1e5};
};

// How much has happened lately, as in a Hawkes process: a count of observations under exponential
// decay, at several rates at once. Masses that decay alike may be added and subtracted, so what a
// user contributed to a model can be taken out again. A plain value; all calls are made with the
// same constants.
class Recency {
 public:
  double At(const RecencyClock& clock, std::size_t rate) const {
    const auto elapsed = static_cast<double>(clock.now - time_);
    return mass_[rate] * std::exp(-elapsed / clock.constants[rate]);
  }

  void Add(const RecencyClock& clock, double amount) {
    FadeTo(clock);
    for (double& mass : mass_) mass += amount;
  }
  void Add(const RecencyClock& clock, const Recency& other) { Merge(clock, other, 1); }
  void Remove(const RecencyClock& clock, const Recency& other) { Merge(clock, other, -1); }

  bool empty() const { return mass_ == decltype(mass_){}; }

  void Save(ByteWriter& out) const {
    out.U64(time_);
    out.Doubles(mass_);
  }
  void Load(ByteReader& in) {
    time_ = in.U64("time of a recency");
    in.Doubles("recency", mass_);
  }

 private:
  void FadeTo(const RecencyClock& clock) {
    for (std::size_t rate = 0; rate < mass_.size(); ++rate) mass_[rate] = At(clock, rate);
    time_ = clock.now;
  }
  void Merge(const RecencyClock& clock, const Recency& other, double sign) {
    FadeTo(clock);
    for (std::size_t rate = 0; rate < mass_.size(); ++rate) {
      const double mass = mass_[rate] + sign * other.At(clock, rate);
      mass_[rate] = mass > 0 ? mass : 0;  // negative values are rounding errors
    }
  }

  std::array<double, RecencyClock::kRates> mass_{};
  std::uint64_t time_ = 0;
};

// Zero for a null pointer.
inline const Recency& RecencyMass(const Recency* recency) {
  static const Recency nothing;
  return recency != nullptr ? *recency : nothing;
}

}  // namespace codband
