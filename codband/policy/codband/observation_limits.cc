#include "codband/policy/codband/observation_limits.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "codband/linalg/kernels.h"

namespace codband {
namespace {

constexpr double kBeyond = 8;         // times the median
constexpr double kFew = 16;           // values; with so many the limit is twice as wide
constexpr std::uint64_t kAll = 64;    // observations of a user that all count,
constexpr std::uint64_t kOneIn = 16;  // and one in so many after that

}  // namespace

void TypicalMagnitude::Add(double value) {
  if (value == 0) return;
  const int power = std::clamp(std::ilogb(value), kSmallest, kLargest);
  ++counts_[static_cast<std::size_t>(power - kSmallest)];
  if (++total_ < kMostCounted) return;
  total_ = 0;
  for (std::uint32_t& count : counts_) total_ += count /= 2;
}

double TypicalMagnitude::Usual() const {
  if (total_ == 0) return std::numeric_limits<double>::infinity();
  std::size_t median = 0;
  for (std::uint32_t below = counts_[0]; 2 * below < total_; below += counts_[median]) ++median;
  return std::ldexp(1, static_cast<int>(median) + kSmallest + 1);
}

double TypicalMagnitude::Limit() const {
  return total_ == 0 ? Usual() : kBeyond * (1 + kFew / static_cast<double>(total_)) * Usual();
}

// Those that are not 0, each after its place.
void TypicalMagnitude::Save(ByteWriter& out) const {
  out.U8(static_cast<std::uint8_t>(counts_.size() - std::ranges::count(counts_, 0U)));
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] == 0) continue;
    out.U8(static_cast<std::uint8_t>(i));
    out.U32(counts_[i]);
  }
}

void TypicalMagnitude::Load(ByteReader& in) {
  counts_ = {};
  std::uint64_t total = 0;
  for (std::size_t left = in.U8("number of magnitudes"); left > 0 && in.ok(); --left) {
    const std::size_t i = in.U8("magnitude");
    if (i >= counts_.size()) {
      in.Fail("magnitude", "is out of range");
      return;
    }
    counts_[i] = in.U32("count of a magnitude");
    total += counts_[i];
  }
  if (total >= kMostCounted) {
    in.Fail("counts of magnitudes", "are too many");
    return;
  }
  total_ = static_cast<std::uint32_t>(total);
}

bool ObservationLimits::Counts(std::uint64_t seen) { return seen < kAll || seen % kOneIn == 0; }

bool ObservationLimits::Limit(std::span<double> x, std::size_t features, double& r,
                              std::uint64_t seen, std::span<const double> weights) {
  const double length = std::sqrt(linalg::WeightedSquare(x.first(features), weights));
  const double usual = length_.Usual();
  const double longest = length_.Limit();
  const double largest = reward_.Limit();
  if (Counts(seen)) {
    length_.Add(length);
    reward_.Add(r);
  }
  if (std::abs(r) <= largest && length <= longest) return false;
  r = std::clamp(r, -largest, largest);
  if (length > longest) {
    const double shorter = usual / length;
    for (double& value : x) value *= shorter;
    r *= shorter;
  }
  return true;
}

void ObservationLimits::Save(ByteWriter& out) const {
  reward_.Save(out);
  length_.Save(out);
}

void ObservationLimits::Load(ByteReader& in) {
  reward_.Load(in);
  length_.Load(in);
}

}  // namespace codband
