#include "codband/policy/codband/period.h"

#include <fmt/format.h>

#include <algorithm>

namespace codband {

void RecentObservations::Push(std::span<const double> x, double r) {
  if (size() < capacity_) {
    features_.insert(features_.end(), x.begin(), x.end());
    rewards_.push_back(r);
  } else if (capacity_ > 0) {
    std::ranges::copy(x, features_.begin() + static_cast<std::ptrdiff_t>(next_ * dim_));
    rewards_[next_] = r;
    next_ = (next_ + 1) % capacity_;
  }
}

void RecentObservations::Clear() {
  features_.clear();
  rewards_.clear();
  next_ = 0;
}

void RecentObservations::Save(ByteWriter& out) const {
  out.U64(size());
  out.U64(next_);
  out.Doubles(rewards_);
  out.Doubles(features_);
}

void RecentObservations::Load(ByteReader& in) {
  const std::size_t count = in.Count("recent observations", sizeof(double) * (dim_ + 1));
  next_ = in.U64("place of the next observation");
  if (count > capacity_) {
    in.Fail("recent observations", fmt::format("are {}, expected at most {}", count, capacity_));
    return;
  }
  if (next_ >= std::max<std::size_t>(count, 1)) {
    in.Fail("place of the next observation", fmt::format("is {} of {}", next_, count));
    return;
  }
  rewards_.resize(count);
  features_.resize(count * dim_);
  in.Doubles("recent rewards", rewards_);
  in.Doubles("recent features", features_);
}

void FlagWindow::Push(bool flag) {
  if (size() < capacity_) {
    flags_.push_back(flag);
  } else {
    raised_ -= flags_[next_];
    flags_[next_] = flag;
    next_ = (next_ + 1) % capacity_;
  }
  raised_ += flag;
}

void FlagWindow::Clear() {
  flags_.clear();
  next_ = 0;
  raised_ = 0;
}

void FlagWindow::Save(ByteWriter& out) const {
  out.U64(size());
  out.U64(next_);
  for (const std::uint8_t flag : flags_) out.U8(flag);
}

void FlagWindow::Load(ByteReader& in) {
  const std::size_t count = in.Count("flags", 1);
  next_ = in.U64("place of the next flag");
  if (count > capacity_ || next_ >= std::max<std::size_t>(count, 1)) {
    in.Fail("flags", fmt::format("are {} with the next at {}, expected at most {}", count, next_,
                                 capacity_));
    return;
  }
  flags_.resize(count);
  raised_ = 0;
  for (std::uint8_t& flag : flags_) {
    flag = in.U8("flag");
    if (flag > 1) in.Fail("flag", fmt::format("is {}, expected 0 or 1", flag));
    raised_ += flag;
  }
}

void Period::Observe(std::span<const double> x, double r) {
  data.Add(x, r);
  if (paper == nullptr) return;
  paper->own_regression.Add(x, r);
  paper->recent.Push(x, r);
}

void Period::Clear() {
  data.Clear();
  recency = {};
  if (paper == nullptr) return;
  paper->own_regression.Clear();
  paper->recent.Clear();
  paper->badness.Clear();
}

void Period::Save(ByteWriter& out) const {
  out.U64(model);
  data.Save(out);
  recency.Save(out);
  if (paper == nullptr) return;
  paper->own_regression.Save(out);
  paper->recent.Save(out);
  paper->badness.Save(out);
}

void Period::Load(ByteReader& in) {
  model = in.U64("model of a period");
  data.Load(in);
  recency.Load(in);
  if (paper == nullptr) return;
  paper->own_regression.Load(in);
  paper->recent.Load(in);
  paper->badness.Load(in);
}

}  // namespace codband
