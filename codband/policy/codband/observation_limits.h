#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "codband/base/bytes.h"

namespace codband {

// How large values usually are: a histogram of their magnitudes by powers of two, old values
// fading.
class TypicalMagnitude {
 public:
  // Zeros say nothing and do not count.
  void Add(double value);
  // The median, rounded up to a power of two. Infinity if no value is known.
  double Usual() const;
  // What is beyond this is an outlier: eight times the usual, and more while few are known.
  double Limit() const;

  void Save(ByteWriter& out) const;
  void Load(ByteReader& in);

 private:
  static constexpr int kSmallest = -64;  // powers of two
  static constexpr int kLargest = 63;
  static constexpr std::uint32_t kMostCounted = 1 << 16;

  std::array<std::uint32_t, kLargest - kSmallest + 1> counts_ = {};
  std::uint32_t total_ = 0;
};

// outliers=limited: bounds the influence of a single observation. Models are sums, and sums forget
// nothing: an observation that is a million times larger than all others would decide every
// estimate, and could not be taken back without losing the digits of the others. So an observation
// is brought within bounds before it comes to any sum, and what came in is what is taken out again:
// forgetting stays exact.
//
// A reward beyond the limit becomes the limit (it is winsorised). A feature vector that is longer
// than the limit is shortened to the usual length, and its reward and intercept by the same factor:
// it remains an observation of the same parameter, with the weight of a usual one.
// Observations within the limits, nearly all, are not touched.
//
// Observations of very active users are subsampled, so that no single user determines the scale.
class ObservationLimits {
 public:
  // Limits the observation in place: `x` with its intercept last if there is one, of which the
  // first `features` are the arm's, with these weights in the length of a vector (empty: 1).
  // `seen`: how many observations the user has brought so far. Returns whether it was beyond the
  // limits.
  bool Limit(std::span<double> x, std::size_t features, double& r, std::uint64_t seen,
             std::span<const double> weights = {});
  // Whether an observation of a user who has brought so many says what is usual.
  static bool Counts(std::uint64_t seen);

  void Save(ByteWriter& out) const;
  void Load(ByteReader& in);

 private:
  TypicalMagnitude reward_;
  TypicalMagnitude length_;  // of feature vectors
};

}  // namespace codband
