#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "codband/base/bytes.h"
#include "codband/linalg/cholesky.h"

namespace codband::linalg {

// The inverse Σ of the precision Λ of a posterior, kept beside its Cholesky factor, so that a
// variance xᵀΣx costs the square of the non-zeros of x and not that of the dimension. It follows
// rank-one changes of Λ in O(d²), Sherman and Morrison's formula with Λ⁻¹x from the factor, so that
// errors do not feed on each other. After any other change, after a removal that would lose too
// many digits, and after kRefreshInterval changes it is not known until Refresh, O(d³).
//
// Up to kNarrow features it is never known: solving with the factor costs less there than keeping
// this. Const functions of one object may run concurrently.
class Covariance {
 public:
  static constexpr std::size_t kNarrow = 64;
  static constexpr std::uint64_t kRefreshInterval = 1 << 12;
  // A removal divides errors by what it leaves of a direction's share, 1 - xᵀΣx / σ². It may leave
  // this much.
  static constexpr double kLeastLeft = 1e-3;

  bool known() const { return !packed_.empty(); }
  void Forget() { packed_.clear(); }
  std::span<const double> packed() const { return packed_; }  // Σ

  // From the factor of Λ, unless it is known already.
  void Refresh(const CholeskyFactor& precision);

  // Λ is diagonal. O(d²).
  void SetInverse(std::span<const double> diagonal);

  // Λ, whose factor is still what it was, is about to get `weight` · x xᵀ, which may be negative.
  void Change(const CholeskyFactor& precision, std::span<const double> x, double weight);

  // `change(entries of Σ, packed)` makes as many rank-one changes. Precondition: known().
  template <typename Function>
  void Change(std::uint64_t count, const Function& change) {
    changes_ += count;
    if (changes_ >= kRefreshInterval) return Forget();
    change(std::span<double>(packed_));
    CheckSize();
  }

  // As CholeskyFactor::Grow: `diagonal` is that of Λ, whose new rows are zero elsewhere. O(d²).
  void Grow(std::span<const double> diagonal, bool intercept);

  // Σ_j scale_j Σ_jj. Precondition: known().
  double Trace(std::span<const double> scale) const;

  // xᵀΣx of the x that has these values at these places, in rising order, and is 0 elsewhere.
  // Precondition: known().
  double Variance(std::span<const std::uint16_t> places, std::span<const double> values) const;
  // The same of any x, O(d²).
  double Variance(std::span<const double> x) const;

  void Save(ByteWriter& out) const;
  // Of Λ with `dim` rows.
  void Load(ByteReader& in, std::size_t dim);

 private:
  // Forgets what is too large to be of use.
  void CheckSize();

  std::size_t dim_ = 0;
  std::uint64_t changes_ = 0;   // since the last Refresh
  std::vector<double> packed_;  // empty: not known
};

}  // namespace codband::linalg
