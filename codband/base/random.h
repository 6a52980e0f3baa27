#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

namespace codband {

// The key of one event's randomness. Everything drawn for an event is a function of its key, so a
// run does not depend on threads, on the order of other events, or on earlier draws.
struct EventKey {
  std::uint64_t seed = 0;
  std::uint64_t event = 0;

  friend bool operator==(const EventKey&, const EventKey&) = default;
};

// A stream of random numbers, a pure function of (seed, event, purpose): Philox4x64-10 (Salmon et
// al. 2011), counter-based, so that creating a stream is free and no two streams overlap.
// Draws with different purposes for the same event are independent.
//
// The same on every platform: integers exactly; the real-valued draws use only arithmetic that
// IEEE 754 specifies, except for a logarithm or a power in rare branches.
//
// A plain value of 80 bytes; each thread uses its own.
class RandomStream {
 public:
  using result_type = std::uint64_t;

  RandomStream(EventKey key, std::uint64_t purpose) : key_{key.seed, purpose}, event_(key.event) {}

  // 64 uniform bits. Also the standard's UniformRandomBitGenerator.
  std::uint64_t operator()() {
    if (used_ == block_.size()) NextBlock();
    return block_[used_++];
  }
  static constexpr std::uint64_t min() { return 0; }
  static constexpr std::uint64_t max() { return std::numeric_limits<std::uint64_t>::max(); }

  // Uniform in [0, 1), a multiple of 2^-53.
  double Uniform() { return static_cast<double>((*this)() >> 11) * 0x1.0p-53; }

  // Uniform integer in [0, bound). Precondition: bound > 0.
  std::uint64_t Below(std::uint64_t bound);

  // A uniformly random permutation (Fisher & Yates); std::shuffle's algorithm is unspecified.
  template <typename T>
  void Shuffle(std::span<T> items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[Below(i)]);
  }

  // Standard normal.
  double Normal();
  void FillNormal(std::span<double> out);

  // Gamma with the given shape and rate 1. Precondition: shape > 0.
  double Gamma(double shape);

  // Beta(a, b). Preconditions: a > 0, b > 0.
  double Beta(double a, double b);

  // Index i with probability ∝ weights[i]. Preconditions: weights finite and ≥ 0, sum > 0.
  std::size_t Categorical(std::span<const double> weights);

  // Index i with probability ∝ exp(log_weights[i]); -infinity is weight 0. Overwrites log_weights
  // with the normalised probabilities. Preconditions: no NaN, no +infinity, not all -infinity.
  std::size_t CategoricalFromLog(std::span<double> log_weights);

 private:
  void NextBlock();

  std::array<std::uint64_t, 2> key_;
  std::uint64_t event_;
  std::uint64_t next_block_ = 0;
  std::array<std::uint64_t, 4> block_{};
  std::size_t used_ = 4;
};

}  // namespace codband
