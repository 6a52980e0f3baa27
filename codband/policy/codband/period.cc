#include "codband/policy/codband/period.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

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

void RecentObservations::Grow(std::size_t dim, bool intercept) {
  const std::size_t kept = dim_ - (intercept ? 1 : 0);
  std::vector<double> grown(size() * dim);
  for (std::size_t i = 0; i < size(); ++i) {
    const std::span<const double> from = std::span(features_).subspan(i * dim_, dim_);
    const std::span<double> to = std::span(grown).subspan(i * dim, dim);
    std::ranges::copy(from.first(kept), to.begin());
    if (intercept) to.back() = from.back();
  }
  features_ = std::move(grown);
  dim_ = dim;
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

void Period::Observe(std::span<const double> x, double r) {
  data.Add(x, r);
  if (recent != nullptr) recent->Push(x, r);
}

void Period::Clear() {
  data.Clear();
  if (recency != nullptr) *recency = {};
  if (recent != nullptr) recent->Clear();
}

std::size_t Period::HeapBytes() const {
  std::size_t bytes = data.HeapBytes();
  if (recency != nullptr) bytes += sizeof(Recency) + kHeapBlock;
  if (recent != nullptr) bytes += sizeof(*recent) + kHeapBlock + recent->HeapBytes();
  return bytes;
}

void Period::Save(ByteWriter& out) const {
  out.U64(model);
  data.Save(out);
  recency_mass().Save(out);
}

void Period::Load(ByteReader& in, const RecordLayout& layout) {
  model = in.U64("model of a period");
  if (layout.columns) {
    data.Load(in, layout.widest);
  } else {
    data.LoadAll(in, layout.dim);
  }
  Recency loaded;
  loaded.Load(in);
  if (recency != nullptr) *recency = loaded;
}

}  // namespace codband
