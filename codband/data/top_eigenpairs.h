#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "codband/base/status.h"

namespace codband::data {

// Eigenvalues in descending order, and their eigenvectors of norm 1.
struct Eigenpairs {
  std::vector<double> values;
  std::vector<double> vectors;  // count × n, row-major: a row is a vector

  std::span<const double> vector(std::size_t i) const {
    const std::size_t n = vectors.size() / values.size();
    return std::span(vectors).subspan(i * n, n);
  }
};

// y = A x for a symmetric A.
using SymmetricProduct = std::function<void(std::span<const double> x, std::span<double> y)>;

// The `count` algebraically largest eigenpairs of a symmetric n × n operator by implicitly
// restarted Lanczos (Spectra) from a fixed start vector; small or nearly full problems are solved
// densely. Deterministic, bit for bit. Signs are fixed: the entry of largest absolute value is
// positive, the first one if several are equal (within 1e-9).
//
// Lanczos finds one copy of a repeated eigenvalue: of an eigenspace of several dimensions, vectors
// may be missing. Time: some hundred products; memory: (2 · count + 20) n numbers. kCheckFailed
// if the iteration does not converge. Preconditions: 0 < count ≤ n.
Result<Eigenpairs> TopEigenpairs(std::size_t n, std::size_t count,
                                 const SymmetricProduct& multiply);

}  // namespace codband::data
