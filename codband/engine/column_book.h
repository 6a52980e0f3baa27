#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "codband/base/bytes.h"
#include "codband/base/status.h"
#include "codband/features/column_space.h"

namespace codband::engine {

// What the rewarded decisions had in one column.
struct ColumnUse {
  std::uint64_t count = 0;  // in which it was not 0
  double min = 0;           // of those
  double max = 0;
  double sum = 0;
  double squares = 0;

  // None until it is seen again after a user was forgotten: the extremes may have been theirs.
  bool has_range() const { return count > 0 && min <= max; }
};

// What one user has added to a column, so that it can be taken back.
struct ColumnShare {
  std::uint32_t column = 0;
  std::uint32_t count = 0;
  double sum = 0;
  double squares = 0;

  friend bool operator==(const ColumnShare&, const ColumnShare&) = default;
};
using ColumnShares = std::vector<ColumnShare>;  // by ascending column

// The columns of a directory that has one for every name, and what was seen in each. Part of what
// is learned: a function of the log. Const functions may run concurrently.
class ColumnBook {
 public:
  const features::ColumnSpace& space() const { return space_; }
  std::span<const ColumnUse> uses() const { return uses_; }
  std::uint64_t decisions() const { return decisions_; }  // counted

  // The additions of a log entry to a space of `first` columns. Columns that are missing before, as
  // their log entry was lost, get names that nobody uses. Throws std::runtime_error if the entry
  // cannot be one of this log.
  void Append(std::uint64_t first, std::span<const features::ColumnSpace::Addition> additions);
  // A user is forgotten, and the names of these columns, which were theirs alone, with them: a
  // column that does not exist, as its log entry was lost, is left out. What was seen in those is
  // dropped, and in all columns of contexts and users and their crossings the range.
  void Forget(std::span<const std::uint32_t> columns);
  // Counts the features of a decision whose reward is learned, also in what its user has added;
  // nullptr: nobody's.
  void Count(std::span<const double> features, ColumnShares* of_user);
  // Takes back what a user has added: numbers exactly, sums to rounding.
  void TakeBack(std::span<const ColumnShare> shares);

  // Where one book becomes those of partitions, and theirs one (store_splitter.h).
  // Names of columns are forgotten, which are nobody's then; what was seen in them stays.
  void ForgetNames(std::span<const std::uint32_t> columns);
  // The same columns, in which nothing was seen.
  ColumnBook WithoutUses() const;
  // What a user has added, by so many decisions; the range is not known.
  void Add(std::span<const ColumnShare> shares, std::uint64_t decisions);
  // Of columns in which something was seen: that was within the range of `whole`.
  void TakeRangesOf(const ColumnBook& whole);
  // What a part of this book has seen is taken out; the range stays.
  void Subtract(const ColumnBook& part);
  // What another book has seen, whose columns are the first of these. kCorruption if they are not.
  Status Add(const ColumnBook& other);

  void Save(ByteWriter& out) const;
  void Load(ByteReader& in);

 private:
  features::ColumnSpace space_;
  std::vector<ColumnUse> uses_;
  std::uint64_t decisions_ = 0;
};

}  // namespace codband::engine
