#include "codband/policy/codband/change_window.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

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

double ChangeWindow::RewardAt(std::size_t place) const {
  double r = 0;
  std::memcpy(&r, rows_.data() + (place + 1) * width() - 2, sizeof(r));
  return r;
}

void ChangeWindow::SetReward(std::size_t place, double r) {
  std::memcpy(rows_.data() + (place + 1) * width() - 2, &r, sizeof(r));
}

void ChangeWindow::ReadFeatures(std::size_t age, std::span<double> x) const {
  CODBAND_DCHECK(age < size() && x.size() >= columns_.size());
  const std::span<const float> row =
      std::span(rows_).subspan(Place(age) * width(), columns_.size());
  if (x.size() == row.size()) {
    std::ranges::copy(row, x.begin());
    return;
  }
  std::ranges::fill(x, 0.0);
  for (std::size_t i = 0; i < row.size(); ++i) x[columns_.Place(i, x.size())] = row[i];
}

// Columns that have not occurred yet are 0 in the rows there are.
void ChangeWindow::TakeColumns(std::span<const double> x) {
  const std::size_t count = size();
  const std::size_t before = columns_.size();
  const std::size_t width_before = width();
  std::vector<std::uint16_t> places;
  columns_.Include(x, places);
  std::vector<float> rows;
  rows.reserve(capacity_ * width());
  rows.resize(count * width());
  for (std::size_t i = 0; i < count; ++i) {
    const float* const from = rows_.data() + i * width_before;
    float* const to = rows.data() + i * width();
    for (std::size_t j = 0; j < before; ++j) to[places[j]] = from[j];
    std::memcpy(to + columns_.size(), from + before, 3 * sizeof(float));
  }
  rows_ = std::move(rows);
}

void ChangeWindow::Push(std::span<const double> x, double r, double log_predictive, double offset) {
  if (capacity_ == 0) return;
  if (!columns_.Covers(x)) TakeColumns(x);
  if (size() < capacity_) {
    // Not full: the newest is the last.
    if (rows_.capacity() == 0) rows_.reserve(capacity_ * width());
    newest_ = static_cast<std::uint32_t>(size());
    rows_.resize(rows_.size() + width());
  } else {
    newest_ = (newest_ + 1) % capacity_;
  }
  const std::span<float> row = std::span(rows_).subspan(newest_ * width(), width());
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    row[i] = static_cast<float>(x[columns_.Place(i, x.size())]);
  }
  row[columns_.size()] = FiniteFloat(log_predictive);
  SetReward(newest_, r);
  if (offset != 0 && offsets_ == nullptr) {
    offsets_ = std::make_unique<std::vector<double>>();
    offsets_->reserve(capacity_);
  }
  if (offsets_ == nullptr) return;
  offsets_->resize(size());
  (*offsets_)[newest_] = offset;
}

void ChangeWindow::KeepNewest(std::size_t count) {
  if (count < size()) Unroll(count);
}

void ChangeWindow::SetLong(bool is_long) {
  const std::uint32_t capacity = is_long ? kLong * usual_ : usual_;
  if (capacity == capacity_) return;
  if (size() > 0) Unroll(std::min<std::size_t>(size(), capacity));
  if (!is_long) {
    rows_.shrink_to_fit();
    if (offsets_ != nullptr) offsets_->shrink_to_fit();
  }
  capacity_ = capacity;
}

// The oldest to the front, then all but the newest `count` are cut off.
void ChangeWindow::Unroll(std::size_t count) {
  const std::size_t oldest = (newest_ + 1) % size();
  const std::size_t surplus = size() - count;
  const auto keep = [&](auto& values, std::size_t width) {
    const auto first = values.begin();
    std::rotate(first, first + static_cast<std::ptrdiff_t>(oldest * width), values.end());
    values.erase(first, first + static_cast<std::ptrdiff_t>(surplus * width));
  };
  keep(rows_, width());
  if (offsets_ != nullptr) keep(*offsets_, 1);
  newest_ = static_cast<std::uint32_t>(count == 0 ? 0 : count - 1);
}

// Rewards, then for each observation its features and its log predictive.
std::size_t ChangeWindow::HeapBytes() const {
  std::size_t bytes = columns_.HeapBytes() + codband::HeapBytes(rows_);
  if (offsets_ != nullptr) bytes += sizeof(*offsets_) + kHeapBlock + codband::HeapBytes(*offsets_);
  return bytes;
}

void ChangeWindow::Save(ByteWriter& out) const {
  out.U64(size());
  out.U32(newest_);
  columns_.Save(out);
  for (std::size_t place = 0; place < size(); ++place) out.Double(RewardAt(place));
  for (std::size_t place = 0; place < size(); ++place) {
    out.Floats(std::span(rows_).subspan(place * width(), columns_.size() + 1));
  }
}

void ChangeWindow::Load(ByteReader& in, const RecordLayout& layout) {
  offsets_.reset();
  const std::size_t count = in.Count("window of observations", sizeof(double) + sizeof(float));
  newest_ = in.U32("newest observation");
  if (layout.columns) {
    columns_.Load(in, layout.widest);
  } else if (count > 0) {
    columns_ = linalg::ColumnSet::All(layout.dim, columns_.intercept());
  }
  const std::size_t most = kLong * usual_;
  capacity_ = static_cast<std::uint32_t>(count > usual_ ? most : usual_);
  const bool full = count == capacity_;
  if (count > most || (full ? newest_ >= std::max<std::size_t>(count, 1)
                            : newest_ != (count == 0 ? 0 : count - 1))) {
    in.Fail("window of observations",
            fmt::format("has {} of at most {}, the newest at {}", count, most, newest_));
    newest_ = 0;
    return;
  }
  if (count == 0) return;
  rows_.reserve(capacity_ * width());
  rows_.resize(count * width());
  for (std::size_t place = 0; place < count; ++place) {
    SetReward(place, in.Double("rewards of the window"));
  }
  for (std::size_t place = 0; place < count; ++place) {
    in.Floats("observations of the window",
              std::span(rows_).subspan(place * width(), columns_.size() + 1));
  }
}

void ChangeWindow::SaveOffsets(ByteWriter& out) const {
  out.U8(offsets_ == nullptr ? 0 : 1);
  if (offsets_ != nullptr) out.Doubles(*offsets_);
}

void ChangeWindow::LoadOffsets(ByteReader& in) {
  offsets_.reset();
  if (in.U8("offsets of the window") == 0) return;
  offsets_ = std::make_unique<std::vector<double>>(size());
  offsets_->reserve(capacity_);
  in.Doubles("offsets of the window", *offsets_);
}

}  // namespace codband
