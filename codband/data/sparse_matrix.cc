#include "codband/data/sparse_matrix.h"

#include <algorithm>
#include <tuple>

#include "codband/base/check.h"

namespace codband::data {

SparseMatrix SparseMatrix::FromEntries(std::size_t rows, std::size_t cols,
                                       std::vector<Entry> entries) {
  // Stable, so that sums do not depend on the library's sort.
  std::ranges::stable_sort(entries, {},
                           [](const Entry& entry) { return std::tuple(entry.row, entry.column); });
  SparseMatrix matrix;
  matrix.cols = cols;
  matrix.row_begin.assign(rows + 1, 0);
  const Entry* last = nullptr;
  for (const Entry& entry : entries) {
    CODBAND_CHECK(entry.row < rows && entry.column < cols);
    if (last != nullptr && last->row == entry.row && last->column == entry.column) {
      matrix.value.back() += entry.value;
    } else {
      matrix.column.push_back(entry.column);
      matrix.value.push_back(entry.value);
      ++matrix.row_begin[entry.row + 1];
    }
    last = &entry;
  }
  for (std::size_t i = 0; i < rows; ++i) matrix.row_begin[i + 1] += matrix.row_begin[i];
  return matrix;
}

void SparseMatrix::Multiply(std::span<const double> x, std::span<double> y) const {
  CODBAND_DCHECK(x.size() == cols && y.size() == rows());
  for (std::size_t i = 0; i < rows(); ++i) {
    double sum = 0;
    for (std::size_t e = row_begin[i]; e < row_begin[i + 1]; ++e) sum += value[e] * x[column[e]];
    y[i] = sum;
  }
}

void SparseMatrix::MultiplyTransposed(std::span<const double> x, std::span<double> y) const {
  CODBAND_DCHECK(x.size() == rows() && y.size() == cols);
  std::ranges::fill(y, 0.0);
  for (std::size_t i = 0; i < rows(); ++i) {
    for (std::size_t e = row_begin[i]; e < row_begin[i + 1]; ++e) y[column[e]] += value[e] * x[i];
  }
}

}  // namespace codband::data
