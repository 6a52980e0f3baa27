#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "codband/base/bytes.h"
#include "codband/base/heap_bytes.h"
#include "codband/linalg/packed.h"

namespace codband::linalg {

// The Cholesky factor L of a symmetric positive definite matrix A = L Lᵀ, with rank-one updates and
// downdates.
//
// Only construction and copying allocate. Distinct objects may be used from distinct threads; const
// functions of one object may run concurrently.
class CholeskyFactor {
 public:
  // The factor of diagonal · I. Preconditions: 0 < dim ≤ kMaxDimension, diagonal > 0.
  CholeskyFactor(std::size_t dim, double diagonal);

  std::size_t dim() const { return inverse_diagonal_.size(); }
  double log_determinant() const { return log_determinant_; }  // ln|A|
  std::span<const double> packed() const { return lower_; }    // L

  // Makes room for another dimension. The factor is undefined until the next Factorize. Allocates
  // only if it has never had so many.
  void Resize(std::size_t dim);

  // Factors diag(diagonal) + scale · S in O(k³ + d²) for k columns that occur in S, which is
  // packed; diagonal > 0, scale > 0. S is a sum of outer products, so a pivot is below its
  // `diagonal` only by rounding (which is large where huge terms were added and removed again);
  // such a pivot is raised to it, and of a column of which nothing but rounding is left, only the
  // pivot stays. Returns false if S is not finite; the factor is then undefined until the next
  // successful call.
  [[nodiscard]] bool Factorize(std::span<const double> diagonal, double scale,
                               std::span<const double> S);

  // A gets `dim - dim()` more rows and columns, which are zero but for `diagonal`, before its last
  // one (`intercept`) or after it. Exact: what factorising the larger matrix would give. `diagonal`
  // has all dim entries, of which the new ones are read. O(dim²).
  void Grow(std::span<const double> diagonal, bool intercept);

  // Rank-one update A += x xᵀ by plane (Givens) rotations, O(d²).
  void Update(std::span<const double> x);

  // Rank-one downdate A -= x xᵀ, O(d²). Returns false, and leaves the factor unchanged, if the
  // result would be so ill-conditioned that fewer than ten accurate digits remained; the caller
  // then rebuilds from the sums.
  [[nodiscard]] bool Downdate(std::span<const double> x);

  void SolveLower(std::span<double> x) const;       // x ← L⁻¹ x
  void SolveTransposed(std::span<double> x) const;  // x ← L⁻ᵀ x
  // The same for every column of a row-major matrix with d rows and a multiple of kLanes columns.
  void SolveTransposedColumns(std::span<double> x) const;

  // xᵀ A⁻¹ x, O(d²).
  double InverseQuadratic(std::span<const double> x) const;

  // The same for every row of a row-major matrix with d columns; out has one entry per row. Results
  // are bit-identical to InverseQuadratic; several rows are processed at a time. Of rows with one
  // column less the last one is 1. With `diagonal` also Σ x[i]²/entries[i] of each row, over the
  // columns that it has.
  struct DiagonalQuadratics {
    std::span<const double> entries = {};
    std::span<double> out = {};  // empty: not wanted
  };
  void InverseQuadratics(std::span<const double> rows, std::span<double> out,
                         const DiagonalQuadratics& diagonal) const;
  void InverseQuadratics(std::span<const double> rows, std::span<double> out) const {
    InverseQuadratics(rows, out, {});
  }

  // A⁻¹, packed, O(d³).
  void Invert(std::span<double> packed) const;
  // Σ_j scale_j (A⁻¹)_jj, O(d³), at a fraction of the cost of the inverse.
  double InverseTrace(std::span<const double> scale) const;

  std::size_t HeapBytes() const {
    return codband::HeapBytes(lower_) + codband::HeapBytes(inverse_diagonal_);
  }

  void Save(ByteWriter& out) const;
  // Precondition: the factor was constructed with the saved dimension.
  void Load(ByteReader& in);

 private:
  std::span<double> Column(std::size_t j) {
    return std::span(lower_).subspan(PackedColumn(dim(), j), dim() - j);
  }
  std::span<const double> Column(std::size_t j) const {
    return std::span(lower_).subspan(PackedColumn(dim(), j), dim() - j);
  }
  void RefreshDiagonal();
  void FactorizeFirst(std::span<const double> diagonal);
  void SpreadFirst(std::span<const std::uint16_t> places, std::span<const double> diagonal);
  void InvertWide(std::span<double> packed) const;

  std::vector<double> lower_;             // L, packed
  std::vector<double> inverse_diagonal_;  // 1 / L_jj
  double log_determinant_ = 0;
};

}  // namespace codband::linalg
