#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "codband/base/status.h"

namespace codband::data {

// Eigenvalues, largest first, and their vectors of norm 1, one after the other.
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
// densely. The same bits for the same input. The sign is settled: the entry of largest absolute
// value is positive, the first one where several are as large (within 1e-9).
//
// Lanczos sees one copy of a repeated eigenvalue: vectors of an eigenspace of more dimensions may
// be missing from it. Time: some hundred products; memory: (2 · count + 20) n numbers. kCheckFailed
// if the iteration does not converge. Preconditions: 0 < count ≤ n.
Result<Eigenpairs> TopEigenpairs(std::size_t n, std::size_t count,
                                 const SymmetricProduct& multiply);

}  // namespace codband::data
