#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "codband/base/bytes.h"
#include "codband/base/heap_bytes.h"

namespace codband::linalg {

// Which columns of feature vectors occur in a set of observations, in rising order: what is kept of
// the observations then has the size of what occurs, not of all columns there are. The last feature
// may be an intercept: it stays the last, however many columns are added before it.
//
// Allocates where a column comes in that was not there. Not thread-safe for writing.
class ColumnSet {
 public:
  // Of vectors with or without an intercept.
  explicit ColumnSet(bool intercept) : intercept_(intercept) {}
  ColumnSet(const ColumnSet& other);
  ColumnSet& operator=(const ColumnSet& other);
  ColumnSet(ColumnSet&&) noexcept = default;
  ColumnSet& operator=(ColumnSet&&) noexcept = default;
  ~ColumnSet() = default;
  // The first dim columns of vectors of that length.
  static ColumnSet All(std::size_t dim, bool intercept);

  bool intercept() const { return intercept_; }
  std::size_t size() const { return std::size_t{run_} + rest_size_ + (has_intercept_ ? 1U : 0U); }
  // The place of the i-th column in a vector of `dim` features.
  std::size_t Place(std::size_t i, std::size_t dim) const {
    if (i < run_) return i;
    return i - run_ < rest_size_ ? rest_[i - run_] : dim - 1;
  }
  // Whether x is 0 at all other columns.
  bool Covers(std::span<const double> x) const;

  // Adds the columns at which x is not 0, or those of another set. places[i] is then where the i-th
  // of the columns before is among those after.
  void Include(std::span<const double> x, std::vector<std::uint16_t>& places);
  void Include(const ColumnSet& other, std::vector<std::uint16_t>& places);

  // out[i] = x at the i-th column. Precondition: out.size() == size().
  void Gather(std::span<const double> x, std::span<double> out) const;

  void Clear() { *this = ColumnSet(intercept_); }

  std::size_t HeapBytes() const {
    return rest_ == nullptr ? 0 : rest_size_ * sizeof(std::uint16_t) + kHeapBlock;
  }

  friend bool operator==(const ColumnSet& a, const ColumnSet& b);

  void Save(ByteWriter& out) const;
  // Fails unless the columns rise and are columns of vectors of `dim` features.
  void Load(ByteReader& in, std::size_t dim);

 private:
  // For merging and saving: all columns, the intercept as kIntercept.
  static constexpr std::uint16_t kIntercept = 0xffff;
  std::vector<std::uint16_t> List() const;
  void Take(std::span<const std::uint16_t> rising);

  // The first `run_` columns, without a hole: in most sets all there are, which need no memory.
  // Then the rest, and the intercept.
  std::unique_ptr<std::uint16_t[]> rest_;  // no vector: every user has some of these sets
  std::uint16_t rest_size_ = 0;
  std::uint16_t run_ = 0;
  bool intercept_;
  bool has_intercept_ = false;
};

}  // namespace codband::linalg
