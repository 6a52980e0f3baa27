#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codband/base/status.h"
#include "codband/features/column_space.h"

namespace codband::features {

// Which features of the context or the user are crossed with which of the items, as people write
// it: "all", "none", or a list of pairs such as "device:genre, hour:*". A feature is meant by what
// comes before '=' or '[' in the name of a column ("genre" of "genre=jazz"), "*" is any. With "all"
// places in arrays are crossed only as far as there are columns for each pair; where a list names
// them, also beyond.
class CrossingRules {
 public:
  CrossingRules() = default;  // "all"
  // kInvalidArgument says what is wrong with the text.
  static Result<CrossingRules> Parse(std::string_view text);

  bool all() const { return all_; }
  bool none() const { return !all_ && pairs_.empty(); }
  // An empty item name stands for a column that several share.
  bool Allows(std::string_view other, std::string_view item) const;

 private:
  struct Pair {
    std::string other;
    std::string item;
  };
  bool all_ = true;
  std::vector<Pair> pairs_;
};

// One context, crossed with every column that an item may have: gives the feature vector of each
// item under this context. Buffers are reused from one Set to the next. Not thread-safe.
class CrossedContext {
 public:
  // `context` has the cells of the context and of the user. O(items' columns × cells).
  void Set(const ColumnSpace& space, const ColumnLimits& limits, const CrossingRules& rules,
           std::span<const Cell> context);

  std::span<const Cell> context() const { return context_; }

  // Adds item, context and their crossings to the row. Columns beyond the row are left out: they
  // are newer than who asks.
  void AddTo(std::span<double> row, std::span<const Cell> item) const;
  // Whether a crossing with this column has no place yet; `any` says whether any has.
  bool Misses(std::uint32_t item_column) const {
    return item_column < missing_.size() && missing_[item_column] != 0;
  }
  bool misses_any() const { return misses_any_; }

 private:
  struct Product {
    std::uint32_t column;
    double factor;  // the context's value, with the sign of the place
  };
  std::vector<Cell> context_;
  std::vector<std::uint32_t> begin_;  // of each column's products
  std::vector<Product> products_;
  std::vector<char> missing_;
  bool misses_any_ = false;
};

// A crossing that has no place yet, by names, so that it can be asked for before its columns exist.
struct WantedCrossing {
  std::string item;
  Side side = Side::kContext;
  std::string other;
};

}  // namespace codband::features
