#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "codband/base/bytes.h"
#include "codband/base/heap_bytes.h"
#include "codband/linalg/column_set.h"
#include "codband/linalg/packed.h"

namespace codband::linalg {

// The sufficient statistics of a set of observations (x, r) for a linear model with Gaussian noise:
//   S = Σ x xᵀ (packed),  c = Σ r x,  q = Σ r²,  m = how many.
// Sets are joined by adding and separated by subtracting; the size does not depend on m. The sums
// are not divided by the noise variance: it belongs to the model, and may be learned.
//
// The sums are over all columns, or over those that occur (OfColumns): a user who has met twenty of
// a thousand columns needs 20² numbers. Sets of both kinds may be added to each other; those of
// equal columns do the same arithmetic, bit for bit.
//
// Only construction, copying and new columns allocate. Not thread-safe for writing.
class SufficientStats {
 public:
  // The empty set over `dim` columns. Precondition: 0 < dim ≤ kMaxDimension.
  explicit SufficientStats(std::size_t dim);
  // The empty set over the columns that will occur; `intercept`: the last feature is one.
  static SufficientStats OfColumns(bool intercept);

  // The number of columns that the sums are over.
  std::size_t dim() const { return dim_; }
  bool of_columns() const { return of_columns_; }
  const ColumnSet& columns() const { return columns_; }  // precondition: of_columns()
  // The place of the i-th column of the sums in a vector of `dim` features.
  std::size_t Place(std::size_t i, std::size_t dim) const {
    return of_columns_ ? columns_.Place(i, dim) : i;
  }
  std::span<const double> S() const { return std::span(sums_).first(sums_.size() - dim_); }
  std::span<const double> c() const { return std::span(sums_).last(dim_); }
  double q() const { return q_; }
  std::uint64_t m() const { return m_; }

  // Preconditions: x.size() == dim() unless of_columns(), all finite. For Remove: the observation
  // is in the set.
  void Add(std::span<const double> x, double r);
  void Remove(std::span<const double> x, double r);

  // Preconditions: all columns of `other` are here; a set of_columns() takes in those of another
  // such set. For Remove: `other` is a subset of this set.
  void Add(const SufficientStats& other);
  void Remove(const SufficientStats& other);

  // The empty set, of_columns() without any.
  void Clear();
  // The same observations as `other`: Clear, then Add.
  void Assign(const SufficientStats& other);

  // There are `dim` columns from now on; those that are new were 0 in all observations and come
  // before the last one if that is an intercept. Precondition: not of_columns(), dim ≥ dim().
  void Grow(std::size_t dim, bool intercept);

  // Rounds S and c to single precision, which CompactStats represents exactly.
  void RoundToFloat();
  // Replaces a subset of this set by the same subset with rounded sums. Precondition: `from` and
  // `to` are over the same columns.
  void Correct(const SufficientStats& from, const SufficientStats& to);

  std::size_t HeapBytes() const { return columns_.HeapBytes() + codband::HeapBytes(sums_); }

  static std::size_t SavedBytes(std::size_t dim);  // unless of_columns()
  void Save(ByteWriter& out) const;
  // Precondition: constructed with the saved dimension, or of_columns() as the saved set; then of
  // vectors of `dim` features.
  void Load(ByteReader& in, std::size_t dim = kMaxDimension);
  // Into a set of_columns(): one that was saved over `dim` columns.
  void LoadAll(ByteReader& in, std::size_t dim);

 private:
  friend class CompactStats;

  std::span<double> MutableS() { return std::span(sums_).first(sums_.size() - dim_); }
  std::span<double> MutableC() { return std::span(sums_).last(dim_); }
  // The sums after the columns of this set have moved to `places` of `dim`, zeros elsewhere.
  void MoveColumns(std::span<const std::uint16_t> places, std::size_t dim);
  void Accumulate(std::span<const double> x, double r, double sign);
  void Accumulate(const SufficientStats& other, double sign);
  template <typename Change>
  void ForEachSum(const SufficientStats& other, const Change& change);

  std::uint32_t dim_;
  bool of_columns_ = false;
  ColumnSet columns_;         // empty unless of_columns_
  std::vector<double> sums_;  // S, then c
  double q_ = 0;
  std::uint64_t m_ = 0;
};

// A set of_columns() in half the memory, for sets that rarely change. Sums must be rounded before
// (RoundToFloat), so that storing them is lossless. Not thread-safe for writing.
class CompactStats {
 public:
  explicit CompactStats(bool intercept) : columns_(intercept) {}

  std::uint64_t m() const { return m_; }

  // Precondition: stats was rounded, and is of_columns() with the same intercept.
  void Store(const SufficientStats& stats);
  // `out` is of_columns() with the same intercept.
  void Read(SufficientStats& out) const;

  std::size_t HeapBytes() const { return columns_.HeapBytes() + codband::HeapBytes(sums_); }

  void Save(ByteWriter& out) const;
  void Load(ByteReader& in, std::size_t dim);
  // One that was saved over `dim` columns, without a list of them.
  void LoadAll(ByteReader& in, std::size_t dim);

 private:
  ColumnSet columns_;
  std::vector<float> sums_;  // S, then c
  double q_ = 0;
  std::uint64_t m_ = 0;
};

}  // namespace codband::linalg
