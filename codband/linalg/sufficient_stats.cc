#include "codband/linalg/sufficient_stats.h"

#include <algorithm>
#include <array>
#include <utility>

#include "codband/base/check.h"
#include "codband/linalg/kernels.h"
#include "codband/linalg/packed.h"

namespace codband::linalg {

SufficientStats::SufficientStats(std::size_t dim)
    : dim_(static_cast<std::uint32_t>(dim)), columns_(false), sums_(PackedSize(dim) + dim) {
  CODBAND_CHECK(dim > 0 && dim <= kMaxDimension);
}

SufficientStats SufficientStats::OfColumns(bool intercept) {
  SufficientStats stats(1);
  stats.dim_ = 0;
  stats.of_columns_ = true;
  stats.columns_ = ColumnSet(intercept);
  stats.sums_ = {};
  return stats;
}

void SufficientStats::MoveColumns(std::span<const std::uint16_t> places, std::size_t dim) {
  std::vector<double> moved(PackedSize(dim) + dim);
  for (std::size_t j = 0; j < dim_; ++j) {
    const std::size_t from = PackedColumn(dim_, j) - j;
    const std::size_t to = PackedColumn(dim, places[j]) - places[j];
    for (std::size_t i = j; i < dim_; ++i) moved[to + places[i]] = sums_[from + i];
    moved[PackedSize(dim) + places[j]] = c()[j];
  }
  sums_ = std::move(moved);
  dim_ = static_cast<std::uint32_t>(dim);
}

void SufficientStats::Grow(std::size_t dim, bool intercept) {
  CODBAND_CHECK(!of_columns_ && dim >= dim_ && dim <= kMaxDimension);
  std::vector<std::uint16_t> places(dim_);
  for (std::size_t i = 0; i < dim_; ++i) places[i] = static_cast<std::uint16_t>(i);
  if (intercept) places.back() = static_cast<std::uint16_t>(dim - 1);
  MoveColumns(places, dim);
}

void SufficientStats::Accumulate(std::span<const double> x, double r, double sign) {
  if (!of_columns_ || x.size() == dim_) {
    AddOuter(sign, x, MutableS());
    Axpy(sign * r, x, MutableC());
    return;
  }
  std::array<double, kMaxDimension> buffer;
  const std::span<double> here(buffer.data(), dim_);
  columns_.Gather(x, here);
  AddOuter(sign, here, MutableS());
  Axpy(sign * r, here, MutableC());
}

void SufficientStats::Add(std::span<const double> x, double r) {
  if (of_columns_ && !columns_.Covers(x)) {
    std::vector<std::uint16_t> places;
    columns_.Include(x, places);
    MoveColumns(places, columns_.size());
  }
  Accumulate(x, r, 1);
  q_ += r * r;
  ++m_;
}

void SufficientStats::Remove(std::span<const double> x, double r) {
  CODBAND_CHECK(m_ > 0);
  Accumulate(x, r, -1);
  q_ -= r * r;
  if (--m_ == 0) Clear();  // exactly empty, whatever rounding left
}

// change(index of a sum here, index of the same sum in other) for all sums of `other`.
template <typename Change>
void SufficientStats::ForEachSum(const SufficientStats& other, const Change& change) {
  std::array<std::uint16_t, kMaxDimension> places;
  if (of_columns_) {
    // Both rise, and all of the other's are here.
    for (std::size_t i = 0, at = 0; i < other.dim_; ++i, ++at) {
      while (columns_.Place(at, kMaxDimension) != other.Place(i, kMaxDimension)) ++at;
      places[i] = static_cast<std::uint16_t>(at);
    }
  } else {
    for (std::size_t i = 0; i < other.dim_; ++i) {
      places[i] = static_cast<std::uint16_t>(other.Place(i, dim_));
    }
  }
  std::size_t from = 0;
  for (std::size_t j = 0; j < other.dim_; ++j) {
    const std::size_t to = PackedColumn(dim_, places[j]) - places[j];
    for (std::size_t i = j; i < other.dim_; ++i) change(to + places[i], from++);
  }
  for (std::size_t j = 0; j < other.dim_; ++j) change(PackedSize(dim_) + places[j], from++);
}

void SufficientStats::Accumulate(const SufficientStats& other, double sign) {
  if (dim_ == other.dim_) return Axpy(sign, other.sums_, sums_);  // the same columns
  ForEachSum(other,
             [&](std::size_t to, std::size_t from) { sums_[to] += sign * other.sums_[from]; });
}

void SufficientStats::Add(const SufficientStats& other) {
  CODBAND_CHECK(!of_columns_ || other.of_columns_);
  if (of_columns_ && !(columns_ == other.columns_)) {
    std::vector<std::uint16_t> places;
    columns_.Include(other.columns_, places);
    MoveColumns(places, columns_.size());
  }
  Accumulate(other, 1);
  q_ += other.q_;
  m_ += other.m_;
}

void SufficientStats::Remove(const SufficientStats& other) {
  CODBAND_CHECK(m_ >= other.m_);
  Accumulate(other, -1);
  q_ -= other.q_;
  m_ -= other.m_;
  if (m_ == 0) Clear();
}

void SufficientStats::Assign(const SufficientStats& other) {
  Clear();
  Add(other);
}

void SufficientStats::Clear() {
  if (of_columns_) {
    columns_.Clear();
    sums_.clear();
    dim_ = 0;
  }
  std::ranges::fill(sums_, 0.0);
  q_ = 0;
  m_ = 0;
}

void SufficientStats::RoundToFloat() {
  for (double& value : sums_) value = static_cast<float>(value);
}

void SufficientStats::Correct(const SufficientStats& from, const SufficientStats& to) {
  CODBAND_DCHECK(from.m_ == to.m_ && m_ >= to.m_ && from.dim_ == to.dim_);
  if (dim_ == to.dim_) {
    for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] += to.sums_[i] - from.sums_[i];
    return;
  }
  ForEachSum(to, [&](std::size_t here, std::size_t there) {
    sums_[here] += to.sums_[there] - from.sums_[there];
  });
}

std::size_t SufficientStats::SavedBytes(std::size_t dim) {
  return sizeof(double) * (PackedSize(dim) + dim + 1) + sizeof(std::uint64_t);
}

void SufficientStats::Save(ByteWriter& out) const {
  out.U64(m_);
  out.Double(q_);
  if (of_columns_) columns_.Save(out);
  out.Doubles(c());
  out.Doubles(S());
}

void SufficientStats::Load(ByteReader& in, std::size_t dim) {
  m_ = in.U64("number of observations");
  q_ = in.Double("sum of squared rewards");
  if (of_columns_) {
    columns_.Load(in, dim);
    dim_ = static_cast<std::uint32_t>(columns_.size());
    sums_.assign(PackedSize(dim_) + dim_, 0.0);
  }
  in.Doubles("sum of reward times features", MutableC());
  in.Doubles("sum of feature products", MutableS());
}

void SufficientStats::LoadAll(ByteReader& in, std::size_t dim) {
  CODBAND_CHECK(of_columns_);
  columns_ = ColumnSet::All(dim, columns_.intercept());
  dim_ = static_cast<std::uint32_t>(dim);
  sums_.assign(PackedSize(dim) + dim, 0.0);
  m_ = in.U64("number of observations");
  q_ = in.Double("sum of squared rewards");
  in.Doubles("sum of reward times features", MutableC());
  in.Doubles("sum of feature products", MutableS());
  if (m_ == 0) Clear();
}

void CompactStats::Store(const SufficientStats& stats) {
  CODBAND_CHECK(stats.of_columns_);
  columns_ = stats.columns_;
  sums_.assign(stats.sums_.begin(), stats.sums_.end());
  q_ = stats.q_;
  m_ = stats.m_;
}

void CompactStats::Read(SufficientStats& out) const {
  CODBAND_CHECK(out.of_columns_);
  out.columns_ = columns_;
  out.dim_ = static_cast<std::uint32_t>(columns_.size());
  out.sums_.assign(sums_.begin(), sums_.end());
  out.q_ = q_;
  out.m_ = m_;
}

void CompactStats::Save(ByteWriter& out) const {
  out.U64(m_);
  out.Double(q_);
  columns_.Save(out);
  out.Floats(sums_);
}

void CompactStats::Load(ByteReader& in, std::size_t dim) {
  m_ = in.U64("number of observations");
  q_ = in.Double("sum of squared rewards");
  columns_.Load(in, dim);
  sums_.assign(PackedSize(columns_.size()) + columns_.size(), 0.0F);
  in.Floats("sums", sums_);
}

void CompactStats::LoadAll(ByteReader& in, std::size_t dim) {
  columns_ = ColumnSet::All(dim, columns_.intercept());
  m_ = in.U64("number of observations");
  q_ = in.Double("sum of squared rewards");
  sums_.assign(PackedSize(dim) + dim, 0.0F);
  in.Floats("sums", sums_);
}

}  // namespace codband::linalg
