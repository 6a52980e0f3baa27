#pragma once

#include <cstddef>
#include <vector>

#include "codband/base/status.h"
#include "codband/data/sparse_matrix.h"

namespace codband::data {

// The principal components of the rows of a sparse matrix.
struct PrincipalComponents {
  std::size_t dim = 0;
  std::vector<double> scores;      // rows × dim, row-major: the rows, centred, in components
  std::vector<double> components;  // dim × columns, row-major, orthonormal
  std::vector<double> mean;        // of every column
  std::vector<double> variance;    // along each component, largest first; divided by rows - 1
  double total_variance = 0;       // of all columns together
};

// Centred PCA by a truncated singular value decomposition. The matrix is centred as part of the
// product (x ↦ A x − 1 (mean · x)), so that it stays sparse; the eigenproblem is solved on the
// smaller side. A component's sign is settled: its entry of largest absolute value is positive.
// The same bits for the same input.
// kInvalidArgument unless 0 < dim ≤ min(rows − 1, columns), or if the rows vary in fewer
// directions.
Result<PrincipalComponents> Pca(const SparseMatrix& rows, std::size_t dim);

// Scales each of the columns of a row-major matrix to mean 0 and variance 1 (divided by the number
// of rows); a column that is constant becomes 0.
void Standardise(std::vector<double>& values, std::size_t dim);

}  // namespace codband::data
