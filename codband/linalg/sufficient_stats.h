#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "codband/base/bytes.h"

namespace codband::linalg {

// The sufficient statistics of a set of observations (x, r) for a linear model with Gaussian noise:
//   S = Σ x xᵀ (packed),  c = Σ r x,  q = Σ r²,  m = how many.
// Sets are joined by adding and separated by subtracting; the size does not depend on m. The sums
// are not divided by the noise variance: it belongs to the model, and may be learned.
//
// Only construction and copying allocate. Not thread-safe for writing.
class SufficientStats {
 public:
  // The empty set. Precondition: 0 < dim ≤ kMaxDimension.
  explicit SufficientStats(std::size_t dim);

  std::size_t dim() const { return dim_; }
  std::span<const double> S() const { return std::span(sums_).first(sums_.size() - dim_); }
  std::span<const double> c() const { return std::span(sums_).last(dim_); }
  double q() const { return q_; }
  std::uint64_t m() const { return m_; }

  // Preconditions: x.size() == dim(), all finite. For Remove: the observation is in the set.
  void Add(std::span<const double> x, double r);
  void Remove(std::span<const double> x, double r);

  // Preconditions: same dim. For Remove: `other` is a subset of this set.
  void Add(const SufficientStats& other);
  void Remove(const SufficientStats& other);

  void Clear();

  // Rounds S and c to single precision, which CompactStats represents exactly.
  void RoundToFloat();
  // Replaces a subset of this set by the same subset with rounded sums.
  void Correct(const SufficientStats& from, const SufficientStats& to);

  static std::size_t SavedBytes(std::size_t dim);
  void Save(ByteWriter& out) const;
  // Precondition: constructed with the saved dimension.
  void Load(ByteReader& in);

 private:
  friend class CompactStats;

  std::span<double> MutableS() { return std::span(sums_).first(sums_.size() - dim_); }
  std::span<double> MutableC() { return std::span(sums_).last(dim_); }

  std::size_t dim_;
  std::vector<double> sums_;  // S, then c
  double q_ = 0;
  std::uint64_t m_ = 0;
};

// The same in half the memory, for sets that rarely change. Sums must be rounded before
// (RoundToFloat), so that storing them is lossless. Not thread-safe for writing.
class CompactStats {
 public:
  explicit CompactStats(std::size_t dim);

  std::uint64_t m() const { return m_; }

  // Precondition: stats was rounded.
  void Store(const SufficientStats& stats);
  void Read(SufficientStats& out) const;

  static std::size_t SavedBytes(std::size_t dim);
  void Save(ByteWriter& out) const;
  void Load(ByteReader& in);

 private:
  std::vector<float> sums_;  // S, then c
  double q_ = 0;
  std::uint64_t m_ = 0;
};

}  // namespace codband::linalg
