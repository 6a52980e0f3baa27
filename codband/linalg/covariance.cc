#include "codband/linalg/covariance.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "codband/base/check.h"
#include "codband/linalg/kernels.h"
#include "codband/linalg/packed.h"
#include "codband/linalg/vector_clones.h"

namespace codband::linalg {
namespace {

constexpr double kLargest = 1e50;

}  // namespace

void Covariance::Refresh(const CholeskyFactor& precision) {
  if (known() || precision.dim() <= kNarrow) return;
  dim_ = precision.dim();
  changes_ = 0;
  packed_.resize(PackedSize(dim_));
  precision.Invert(packed_);
  CheckSize();
}

void Covariance::SetInverse(std::span<const double> diagonal) {
  if (diagonal.size() <= kNarrow) return;
  dim_ = diagonal.size();
  changes_ = 0;
  packed_.assign(PackedSize(dim_), 0.0);
  for (std::size_t j = 0; j < dim_; ++j) packed_[PackedColumn(dim_, j)] = 1 / diagonal[j];
  CheckSize();
}

void Covariance::CheckSize() {
  if (!AllWithin(packed_, kLargest)) Forget();
}

void Covariance::Change(const CholeskyFactor& precision, std::span<const double> x, double weight) {
  if (!known()) return;
  CODBAND_DCHECK(x.size() == dim_ && precision.dim() == dim_);
  if (++changes_ >= kRefreshInterval) return Forget();
  std::array<double, kMaxDimension> buffer;
  const std::span<double> solved(buffer.data(), dim_);
  std::ranges::copy(x, solved.begin());
  precision.SolveLower(solved);
  const double left = 1 + weight * Dot(solved, solved);
  precision.SolveTransposed(solved);
  if (!(left > kLeastLeft) || !AllWithin(solved, kLargest)) return Forget();
  AddOuter(-weight / left, solved, packed_);
}

void Covariance::Grow(std::span<const double> diagonal, bool intercept) {
  if (!known()) return;
  const std::size_t before = dim_;
  const std::size_t added = diagonal.size() - before;
  const std::size_t kept = before - (intercept ? 1 : 0);  // rows that stay where they are
  const auto place = [&](std::size_t i) { return i < kept ? i : i + added; };
  dim_ = diagonal.size();
  std::vector<double> grown(PackedSize(dim_), 0.0);
  for (std::size_t j = 0; j < before; ++j) {
    const std::size_t from = PackedColumn(before, j) - j;
    const std::size_t to = PackedColumn(dim_, place(j)) - place(j);
    for (std::size_t i = j; i < before; ++i) grown[to + place(i)] = packed_[from + i];
  }
  for (std::size_t j = kept; j < kept + added; ++j) {
    grown[PackedColumn(dim_, j)] = 1 / diagonal[j];
  }
  packed_ = std::move(grown);
}

double Covariance::Trace(std::span<const double> scale) const {
  CODBAND_DCHECK(known() && scale.size() == dim_);
  double trace = 0;
  for (std::size_t j = 0; j < dim_; ++j) trace += scale[j] * packed_[PackedColumn(dim_, j)];
  return trace;
}

double Covariance::Variance(std::span<const std::uint16_t> places,
                            std::span<const double> values) const {
  CODBAND_DCHECK(known() && places.size() == values.size());
  double sum = 0;
  for (std::size_t j = 0; j < places.size(); ++j) {
    const double* const column = packed_.data() + PackedColumn(dim_, places[j]) - places[j];
    double others = 0;
    for (std::size_t i = j + 1; i < places.size(); ++i) others += column[places[i]] * values[i];
    sum += values[j] * (column[places[j]] * values[j] + 2 * others);
  }
  return sum > 0 ? sum : 0;  // below 0 by rounding alone
}

CODBAND_VECTOR_CLONES double Covariance::Variance(std::span<const double> x) const {
  CODBAND_DCHECK(known() && x.size() == dim_);
  double sum = 0;
  for (std::size_t j = 0; j < dim_; ++j) {
    const std::span<const double> column(packed_.data() + PackedColumn(dim_, j), dim_ - j);
    sum += x[j] * (column[0] * x[j] + 2 * Dot(column.subspan(1), x.subspan(j + 1)));
  }
  return sum > 0 ? sum : 0;
}

void Covariance::Save(ByteWriter& out) const {
  out.U8(known() ? 1 : 0);
  if (!known()) return;
  out.U64(changes_);
  out.Doubles(packed_);
}

void Covariance::Load(ByteReader& in, std::size_t dim) {
  Forget();
  const std::uint8_t known = in.U8("whether a covariance is known");
  if (known > 1) in.Fail("whether a covariance is known", "is neither 0 nor 1");
  if (!in.ok() || known == 0) return;
  if (dim <= kNarrow) return in.Fail("covariance", "is there, expected none of so few features");
  dim_ = dim;
  changes_ = in.U64("changes of a covariance");
  packed_.resize(PackedSize(dim));
  in.Doubles("covariance", packed_);
  if (!AllWithin(packed_, kLargest)) in.Fail("covariance", "is too large");
  if (!in.ok()) Forget();
}

}  // namespace codband::linalg
