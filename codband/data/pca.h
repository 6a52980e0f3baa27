#pragma once

#include <cstddef>
#include <vector>

#include "codband/base/status.h"
#include "codband/data/sparse_matrix.h"

namespace codband::data {

// Principal component analysis of the rows of a sparse matrix.
struct PrincipalComponents {
  std::size_t dim = 0;
  std::vector<double>
      scores;  // rows × dim, row-major: the centred rows projected on the components
  std::vector<double> components;  // dim × columns, row-major, orthonormal
  std::vector<double> mean;        // of every column
  std::vector<double> variance;    // along each component, descending; normalised by rows - 1
  double total_variance = 0;       // of all columns together
};

// Centred PCA by a truncated singular value decomposition. Centring is part of the matrix-vector
// product (x ↦ A x − 1 (mean · x)), so that the matrix stays sparse; the eigenproblem is solved on
// the smaller side. Signs are fixed: the entry of largest absolute value of a component is
// positive. Deterministic, bit for bit. kInvalidArgument unless 0 < dim ≤ min(rows − 1, columns),
// or if the rank is less than dim.
Result<PrincipalComponents> Pca(const SparseMatrix& rows, std::size_t dim);

// Standardises the columns of a row-major matrix to mean 0 and variance 1 (normalised by the number
// of rows); a constant column becomes 0.
void Standardise(std::vector<double>& values, std::size_t dim);

}  // namespace codband::data
