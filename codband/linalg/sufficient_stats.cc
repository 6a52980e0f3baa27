#include "codband/linalg/sufficient_stats.h"

#include <algorithm>

#include "codband/base/check.h"
#include "codband/linalg/kernels.h"
#include "codband/linalg/packed.h"

namespace codband::linalg {

SufficientStats::SufficientStats(std::size_t dim) : dim_(dim), sums_(PackedSize(dim) + dim) {
  CODBAND_CHECK(dim > 0 && dim <= kMaxDimension);
}

void SufficientStats::Add(std::span<const double> x, double r) {
  AddOuter(1, x, MutableS());
  Axpy(r, x, MutableC());
  q_ += r * r;
  ++m_;
}

void SufficientStats::Remove(std::span<const double> x, double r) {
  CODBAND_CHECK(m_ > 0);
  AddOuter(-1, x, MutableS());
  Axpy(-r, x, MutableC());
  q_ -= r * r;
  if (--m_ == 0) Clear();  // exactly empty, whatever rounding left
}

void SufficientStats::Add(const SufficientStats& other) {
  Axpy(1, other.sums_, sums_);
  q_ += other.q_;
  m_ += other.m_;
}

void SufficientStats::Remove(const SufficientStats& other) {
  CODBAND_CHECK(m_ >= other.m_);
  Axpy(-1, other.sums_, sums_);
  q_ -= other.q_;
  m_ -= other.m_;
  if (m_ == 0) Clear();
}

void SufficientStats::Clear() {
  std::ranges::fill(sums_, 0.0);
  q_ = 0;
  m_ = 0;
}

void SufficientStats::RoundToFloat() {
  for (double& value : sums_) value = static_cast<float>(value);
}

void SufficientStats::Correct(const SufficientStats& from, const SufficientStats& to) {
  CODBAND_DCHECK(from.m_ == to.m_ && m_ >= to.m_);
  for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] += to.sums_[i] - from.sums_[i];
}

std::size_t SufficientStats::SavedBytes(std::size_t dim) {
  return sizeof(double) * (PackedSize(dim) + dim + 1) + sizeof(std::uint64_t);
}

void SufficientStats::Save(ByteWriter& out) const {
  out.U64(m_);
  out.Double(q_);
  out.Doubles(c());
  out.Doubles(S());
}

void SufficientStats::Load(ByteReader& in) {
  m_ = in.U64("number of observations");
  q_ = in.Double("sum of squared rewards");
  in.Doubles("sum of reward times features", MutableC());
  in.Doubles("sum of feature products", MutableS());
}

CompactStats::CompactStats(std::size_t dim) : sums_(PackedSize(dim) + dim) {}

void CompactStats::Store(const SufficientStats& stats) {
  CODBAND_DCHECK(stats.sums_.size() == sums_.size());
  std::ranges::copy(stats.sums_, sums_.begin());
  q_ = stats.q_;
  m_ = stats.m_;
}

void CompactStats::Read(SufficientStats& out) const {
  CODBAND_DCHECK(out.sums_.size() == sums_.size());
  std::ranges::copy(sums_, out.sums_.begin());
  out.q_ = q_;
  out.m_ = m_;
}

std::size_t CompactStats::SavedBytes(std::size_t dim) {
  return sizeof(float) * (PackedSize(dim) + dim) + sizeof(double) + sizeof(std::uint64_t);
}

void CompactStats::Save(ByteWriter& out) const {
  out.U64(m_);
  out.Double(q_);
  out.Floats(sums_);
}

void CompactStats::Load(ByteReader& in) {
  m_ = in.U64("number of observations");
  q_ = in.Double("sum of squared rewards");
  in.Floats("sums", sums_);
}

}  // namespace codband::linalg
