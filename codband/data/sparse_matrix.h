#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace codband::data {

// A sparse matrix in compressed row storage (CSR). Plain data.
struct SparseMatrix {
  std::size_t cols = 0;
  std::vector<std::size_t> row_begin = {
      0};                             // of row i: entries from row_begin[i] to row_begin[i+1]
  std::vector<std::uint32_t> column;  // ascending within a row
  std::vector<double> value;

  std::size_t rows() const { return row_begin.size() - 1; }
  std::span<const std::uint32_t> columns_of(std::size_t row) const {
    return std::span(column).subspan(row_begin[row], row_begin[row + 1] - row_begin[row]);
  }
  std::span<const double> values_of(std::size_t row) const {
    return std::span(value).subspan(row_begin[row], row_begin[row + 1] - row_begin[row]);
  }

  struct Entry {
    std::uint32_t row;
    std::uint32_t column;
    double value;
  };
  // Entries in any order; duplicates are summed. Precondition: all are within the size.
  static SparseMatrix FromEntries(std::size_t rows, std::size_t cols, std::vector<Entry> entries);

  // y = A x, and y = Aᵀ x. Precondition: the sizes match.
  void Multiply(std::span<const double> x, std::span<double> y) const;
  void MultiplyTransposed(std::span<const double> x, std::span<double> y) const;
};

}  // namespace codband::data
