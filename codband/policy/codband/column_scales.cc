#include "codband/policy/codband/column_scales.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "codband/linalg/packed.h"

namespace codband {
namespace {

constexpr double kLargeFirst = 8;      // a first value beyond this is perhaps far from 0
constexpr double kFar = 8;             // from 0, in spreads
constexpr double kComparable = 8;      // sizes within this factor of the usual one
constexpr double kSame = 2;            // the same of columns with units of their own
constexpr double kMostBeyond = 8;      // times the size
constexpr double kMostGrowth = 8;      // of the second largest with one value
constexpr double kLeastSpread = 1e-3;  // of values that have all been the same, times their size
constexpr int kMostExponent = 60;

// Beside the number of columns: the largest magnitudes of each are there. Before format 6 they were
// not.
constexpr std::uint32_t kHasLargest = std::uint32_t{1} << 31;

// Whether the value with this number is one of those that a column is judged by.
bool IsSampled(std::uint64_t number, std::size_t sample) {
  if (number <= sample) return true;
  const int power = (static_cast<int>(std::bit_width(number)) - 1) / 2 * 2;  // 4^k ≤ number
  return power >= 6 && number - (std::uint64_t{1} << power) < sample;
}

// Reorders the values.
double Median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

ColumnScales::ColumnScales(std::size_t features, Judged judged)
    : judged_(judged), columns_(features) {}

void ColumnScales::Shift(std::span<double> features) const {
  for (const std::uint16_t j : shifted_) {
    const View column = ViewOf(j);
    const bool waits = column.state == State::kWaiting;
    features[j] = waits || features[j] == 0 ? 0 : features[j] - column.centre;
  }
}

double ColumnScales::ShiftedIntercept(std::span<const double> theta) const {
  double sum = 0;
  for (const std::uint16_t j : shifted_) sum -= theta[j] * ViewOf(j).centre;
  return sum;
}

bool ColumnScales::Observe(std::span<const double> features, bool counts) {
  bool judged = false;
  for (std::size_t j = 0; j < features.size(); ++j) {
    if (features[j] == 0) continue;
    Column& column = columns_[j];
    if (column.count == 0) {
      ++active_;
      if (judged_ == Judged::kSizesAndCentres && std::abs(features[j]) > kLargeFirst) {
        column.state = State::kWaiting;
        // Unless others know it.
        const bool waits = agreed_.empty() || agreed_[j] == View{};
        if (waits) {
          if (!agreed_.empty()) agreed_[j].state = State::kWaiting;
          shifted_.insert(std::ranges::lower_bound(shifted_, j), static_cast<std::uint16_t>(j));
        }
      }
    }
    if (judged_ == Judged::kNothing) {
      column.count = 1;
      continue;
    }
    if (!counts && column.count > 0) continue;
    judged |= NoteMagnitude(column, features[j]);
    if (!IsSampled(++column.count, kSample)) continue;
    column.sample[column.sampled++] = static_cast<float>(features[j]);
    if (column.sampled < kSample) continue;
    Judge(column);
    judged = true;
  }
  if (!judged) return false;
  const double usual = UsualSize();
  bool changed = false;
  for (Column& column : columns_) changed |= Rescale(column, usual);
  Refresh();
  return changed && agreed_.empty();
}

// Returns whether the column is larger than it was judged to be.
bool ColumnScales::NoteMagnitude(Column& column, double value) {
  if (column.state == State::kWaiting) return false;
  double magnitude = std::abs(value - column.centre);
  if (magnitude > column.largest) std::swap(magnitude, column.largest);
  if (magnitude <= column.second) return false;
  column.second = column.second == 0 ? magnitude : std::min(magnitude, kMostGrowth * column.second);
  if (column.size == 0 || column.second <= kMostBeyond * column.size) return false;
  column.size = column.second / kMostBeyond;
  return true;
}

void ColumnScales::Judge(Column& column) {
  std::vector<double> values(column.sample.begin(), column.sample.end());
  if (column.state == State::kWaiting) {
    const double median = Median(values);
    for (double& value : values) value = std::abs(value - median);
    const bool far = std::abs(median) > kFar * std::max(1.0, Median(values));
    column.state = far ? State::kCentred : State::kOwnUnits;
    column.centre = far ? median : 0;
    values.assign(column.sample.begin(), column.sample.end());
  }
  for (double& value : values) value = std::abs(value - column.centre);
  column.size = std::max(
      {Median(values), kLeastSpread * std::abs(column.centre), column.second / kMostBeyond});
  column.sampled = 0;
}

// Of the columns whose sizes are comparable; of all if there are none.
double ColumnScales::UsualSize() const {
  std::vector<double> sizes;
  for (const bool own_units : {false, true}) {
    for (const Column& column : columns_) {
      if (column.size > 0 && column.own_units() == own_units) sizes.push_back(column.size);
    }
    if (!sizes.empty()) break;
  }
  return sizes.empty() ? 0 : Median(sizes);
}

bool ColumnScales::Rescale(Column& column, double usual) {
  if (!(column.size > 0) || !(usual > 0)) return false;
  const double ratio = column.size / usual;
  const double weighted = std::ldexp(ratio, -column.exponent);
  const double allowed = column.own_units() ? kSame : kComparable;
  if (weighted <= allowed && weighted >= 1 / allowed) return false;
  const bool comparable = column.state == State::kPlain && ratio <= kComparable &&
                          ratio >= 1 / kComparable;  // after all
  const int exponent = comparable ? 0
                                  : std::clamp(static_cast<int>(std::lround(std::log2(ratio))),
                                               -kMostExponent, kMostExponent);
  if (exponent == column.exponent) return false;
  column.exponent = exponent;
  return true;
}

void ColumnScales::Refresh() {
  shifted_.clear();
  weights_.clear();
  active_ = 0;
  bool weighted = false;
  for (std::size_t j = 0; j < columns_.size(); ++j) {
    if (columns_[j].count > 0) ++active_;
    const View column = ViewOf(j);
    weighted |= column.exponent != 0;
    if (column.state == State::kWaiting || column.state == State::kCentred)
      shifted_.push_back(static_cast<std::uint16_t>(j));
  }
  for (std::size_t j = 0; weighted && j < columns_.size(); ++j) {
    weights_.push_back(std::ldexp(1, -2 * ViewOf(j).exponent));
  }
}

void ColumnScales::Grow(std::size_t features) {
  columns_.resize(features);
  if (!agreed_.empty()) agreed_.resize(features);
  if (!weights_.empty()) weights_.resize(features, 1.0);
}

// The columns that have had a value, each after its place.
void ColumnScales::Save(ByteWriter& out) const {
  out.U32(static_cast<std::uint32_t>(active_) | kHasLargest);
  for (std::size_t j = 0; j < columns_.size(); ++j) {
    const Column& column = columns_[j];
    if (column.count == 0) continue;
    out.U32(static_cast<std::uint32_t>(j));
    out.U64(column.count);
    out.U8(static_cast<std::uint8_t>(column.state));
    out.U8(static_cast<std::uint8_t>(column.exponent + kMostExponent));
    out.Double(column.centre);
    out.Double(column.size);
    out.Double(column.largest);
    out.Double(column.second);
    out.U8(column.sampled);
    out.Floats(std::span(column.sample).first(column.sampled));
  }
}

void ColumnScales::Load(ByteReader& in) {
  columns_.assign(columns_.size(), {});
  agreed_.clear();
  const std::uint32_t count = in.U32("number of columns");
  const bool has_largest = (count & kHasLargest) != 0;
  for (std::uint32_t left = count & ~kHasLargest; left > 0 && in.ok(); --left) {
    const std::uint32_t j = in.U32("column");
    if (j >= columns_.size()) {
      in.Fail("column", fmt::format("is {}, expected less than {}", j, columns_.size()));
      break;
    }
    Column& column = columns_[j];
    column.count = in.U64("values of a column");
    const std::uint8_t state = in.U8("state of a column");
    const std::uint8_t exponent = in.U8("scale of a column");
    column.centre = in.Double("centre of a column");
    column.size = in.Double("size of a column");
    column.largest = column.second = column.size;
    if (has_largest) {
      column.largest = in.Double("largest value of a column");
      column.second = in.Double("second largest value of a column");
    }
    column.sampled = in.U8("sample of a column");
    if (state > static_cast<std::uint8_t>(State::kCentred) || exponent > 2 * kMostExponent ||
        column.sampled >= kSample || column.count == 0) {
      in.Fail("column", fmt::format("{} is damaged", j));
      column = {};
      break;
    }
    column.state = static_cast<State>(state);
    column.exponent = int{exponent} - kMostExponent;
    in.Floats("sample of a column", std::span(column.sample).first(column.sampled));
  }
  Refresh();
}

}  // namespace codband
