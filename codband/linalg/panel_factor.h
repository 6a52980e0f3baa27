#pragma once

#include <algorithm>
#include <cstddef>

#include "codband/linalg/lanes.h"
#include "codband/linalg/packed.h"

namespace codband::linalg {

// Left-looking Cholesky factorisation in panels of kPanel columns: the columns before a panel are
// subtracted from all of its columns at once, so that they are read from memory once for kPanel of
// them, some rows at a time: as many accumulators as fit into registers. Each entry has the columns
// subtracted in rising order, whatever the panels. Inlined always, so that they are compiled for
// the vectors of their caller.
inline constexpr std::size_t kPanel = 4;

// What a factor is of: one problem, or kLanes of them side by side. Not Lanes itself as a template
// argument, which would lose its alignment.
struct OneProblem {
  typedef double Value;  // NOLINT(modernize-use-using): as below
};
struct ProblemsInLanes {
  typedef Lanes Value;  // NOLINT(modernize-use-using): clang would drop the alignment
};

// Subtracts L_ij L_kj for all j < first from `columns` columns k = target, …, at `rows` rows i =
// row, … of each.
template <typename Problem, std::size_t rows, std::size_t columns>
inline __attribute__((always_inline)) void SubtractColumns(typename Problem::Value* lower,
                                                           std::size_t d, std::size_t first,
                                                           std::size_t row, std::size_t target) {
  typename Problem::Value sums[columns][rows];
  for (std::size_t c = 0; c < columns; ++c) {
    const typename Problem::Value* const entries =
        lower + PackedColumn(d, target + c) - (target + c) + row;
    for (std::size_t i = 0; i < rows; ++i) sums[c][i] = entries[i];
  }
  const typename Problem::Value* column = lower;  // by row
  for (std::size_t j = 0; j < first; ++j) {
    for (std::size_t c = 0; c < columns; ++c) {
      const typename Problem::Value scale = column[target + c];
      for (std::size_t i = 0; i < rows; ++i) sums[c][i] -= scale * column[row + i];
    }
    column += d - 1 - j;
  }
  for (std::size_t c = 0; c < columns; ++c) {
    typename Problem::Value* const entries =
        lower + PackedColumn(d, target + c) - (target + c) + row;
    for (std::size_t i = 0; i < rows; ++i) entries[i] = sums[c][i];
  }
}

// The same for one column and the columns of its panel before it, all rows from its own on.
template <typename Problem>
inline __attribute__((always_inline)) void SubtractInPanel(typename Problem::Value* lower,
                                                           std::size_t d, std::size_t k) {
  typename Problem::Value* const target = lower + PackedColumn(d, k) - k;
  for (std::size_t j = k / kPanel * kPanel; j < k; ++j) {
    const typename Problem::Value* const column = lower + PackedColumn(d, j) - j;
    const typename Problem::Value scale = column[k];
    for (std::size_t i = k; i < d; ++i) target[i] -= scale * column[i];
  }
}

// All columns before the panel that begins with column `first`, from all of its columns, `rows`
// rows at a time.
template <typename Problem, std::size_t rows>
inline __attribute__((always_inline)) void SubtractFromPanel(typename Problem::Value* lower,
                                                             std::size_t d, std::size_t first) {
  const std::size_t end = std::min(first + kPanel, d);
  // The triangle on the diagonal, and panels that are cut off: column by column.
  const std::size_t below = end - first == kPanel ? end : d;
  for (std::size_t k = first; k < end; ++k) {
    for (std::size_t i = k; i < below; ++i) SubtractColumns<Problem, 1, 1>(lower, d, first, i, k);
  }
  std::size_t i = below;
  for (; i + rows <= d; i += rows)
    SubtractColumns<Problem, rows, kPanel>(lower, d, first, i, first);
  for (; i < d; ++i) SubtractColumns<Problem, 1, kPanel>(lower, d, first, i, first);
}

}  // namespace codband::linalg
