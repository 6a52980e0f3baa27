#pragma once

#include <span>

#include "codband/policy/codband/period.h"

namespace codband {

// The paper's change detector (§3.3.1, after Wu, Iyer & Wang 2018): an observation is bad if the
// reward is further from the user's own prediction than estimation error and noise explain,
//   e = 1{ |xᵀθ̂ - r| > CB(x) + ε },   CB(x) = α sqrt(xᵀ(ρI + S)⁻¹x),   ε = √2 σ erf⁻¹(1 - δ),
// and a change is detected when too many of the last w = min(τ, m) observations are bad:
//   mean of e > δ1 + sqrt(ln(1/δ2) / (2w)).
//
// Where we differ from the text of the paper: ε is its erf⁻¹(δ1 - 1) with the sign put right and a
// δ of its own; the 2 under the root is in §3.3.1 but missing in Algorithm 1; the window w is the
// number of flags there are, where the paper has τ even before there are so many; α may be fixed
// (as in the experiments) or the paper's σ sqrt(d ln(1 + m/(dρ)) + 2 ln(1/δ1)) + sqrt(ρ). The ridge
// ρ of the user's own regression is the paper's λ, but need not be that of the pool: a prior that
// suits the models makes the bound so narrow that it is exceeded all the time.
struct WindowDetectorOptions {
  double ridge = 0.1;
  bool fixed_alpha = true;
  double alpha = 0.6;
  double delta = 0.1;
  double delta1 = 0.01;
  double delta2 = 0.1;
  std::size_t tau = 20;
};

// Immutable; the state is the period's. O(d²) an observation.
class WindowDetector {
 public:
  explicit WindowDetector(const WindowDetectorOptions& options);

  // e for an observation that is not yet part of the period, where the noise is σ. Precondition for
  // both: the period has a PaperRecord.
  bool IsBad(const Period& period, std::span<const double> x, double r, double sigma) const;

  // Whether the flags so far say that the user has changed.
  bool Fires(const Period& period) const;

 private:
  double Alpha(const Period& period, double sigma) const;

  WindowDetectorOptions options_;
  double epsilon_;  // in units of σ
};

}  // namespace codband
