#pragma once

#include <cstddef>

namespace codband::linalg {

// Symmetric and triangular matrices are stored packed: the lower triangle, column by column.
// Column j holds the rows j..dim-1 contiguously, so that every inner loop runs over contiguous
// memory.

// The largest dimension. Kernels keep a few vectors of this length on the stack.
inline constexpr std::size_t kMaxDimension = 1025;

inline constexpr std::size_t PackedSize(std::size_t dim) { return dim * (dim + 1) / 2; }

// The index of the first element of column j, which is on the diagonal.
inline constexpr std::size_t PackedColumn(std::size_t dim, std::size_t j) {
  return j * (2 * dim - j + 1) / 2;
}

}  // namespace codband::linalg
