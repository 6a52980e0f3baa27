#include "codband/policy/codband/change_window.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "codband/base/check.h"

namespace codband {
namespace {

// However unlikely a reward is: infinity could not be read back.
float FiniteFloat(double value) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(value, -kLargest, kLargest));
}

}  // namespace

void RoundFeatures(std::span<double> x) {
  for (double& value : x) value = static_cast<float>(value);
}

void ChangeWindow::ReadFeatures(std::size_t age, std::span<double> x) const {
  CODBAND_DCHECK(age < size() && x.size() == dim_);
  const auto row = rows_.begin() + static_cast<std::ptrdiff_t>(Place(age) * (dim_ + 1));
  std::copy(row, row + static_cast<std::ptrdiff_t>(dim_), x.begin());
}

void ChangeWindow::Push(std::span<const double> x, double r, double log_predictive) {
  CODBAND_DCHECK(x.size() == dim_);
  if (capacity_ == 0) return;
  if (size() < capacity_) {
    // Not full: the newest is the last.
    if (rows_.capacity() == 0) Reserve();
    newest_ = static_cast<std::uint32_t>(size());
    rows_.resize(rows_.size() + dim_ + 1);
    rewards_.push_back(r);
  } else {
    newest_ = (newest_ + 1) % capacity_;
    rewards_[newest_] = r;
  }
  const auto row = rows_.begin() + static_cast<std::ptrdiff_t>(newest_ * (dim_ + 1));
  std::ranges::transform(x, row, [](double value) { return static_cast<float>(value); });
  row[static_cast<std::ptrdiff_t>(dim_)] = FiniteFloat(log_predictive);
}

void ChangeWindow::Reserve() {
  rows_.reserve(capacity_ * (dim_ + 1));
  rewards_.reserve(capacity_);
}

void ChangeWindow::KeepNewest(std::size_t count) {
  if (count >= size()) return;
  // The oldest to the front, then cut.
  const std::size_t oldest = (newest_ + 1) % size();
  const auto rotate = [&](auto& values, std::size_t width) {
    const auto first = values.begin();
    std::rotate(first, first + static_cast<std::ptrdiff_t>(oldest * width), values.end());
    values.erase(first, first + static_cast<std::ptrdiff_t>((rewards_.size() - count) * width));
  };
  rotate(rows_, dim_ + 1);
  rotate(rewards_, 1);
  newest_ = static_cast<std::uint32_t>(count == 0 ? 0 : count - 1);
}

void ChangeWindow::Save(ByteWriter& out) const {
  out.U64(size());
  out.U32(newest_);
  out.Doubles(rewards_);
  out.Floats(rows_);
}

void ChangeWindow::Load(ByteReader& in) {
  const std::size_t count =
      in.Count("window of observations", sizeof(double) + sizeof(float) * (dim_ + 1));
  newest_ = in.U32("newest observation");
  const bool full = count == capacity_;
  if (count > capacity_ || (full ? newest_ >= std::max<std::size_t>(count, 1)
                                 : newest_ != (count == 0 ? 0 : count - 1))) {
    in.Fail("window of observations",
            fmt::format("has {} of at most {}, the newest at {}", count, capacity_, newest_));
    newest_ = 0;
    return;
  }
  if (count == 0) return;
  Reserve();
  rewards_.resize(count);
  rows_.resize(count * (dim_ + 1));
  in.Doubles("rewards of the window", rewards_);
  in.Floats("observations of the window", rows_);
}

}  // namespace codband
