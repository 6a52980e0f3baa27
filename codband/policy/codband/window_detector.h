#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "codband/linalg/gaussian_posterior.h"
#include "codband/policy/codband/change_detector.h"
#include "codband/policy/codband/codband_options.h"
#include "codband/policy/codband/period.h"
#include "codband/policy/flag_window.h"

namespace codband {

// What the test keeps of a user: the ridge regression over D alone, and the last flags e.
struct WindowTestState final : DetectorState {
  WindowTestState(std::size_t dim, double ridge, std::size_t tau)
      : own_regression(dim, ridge, 1), badness(tau) {}

  // Precondition: the user's detector is of this kind.
  static WindowTestState& Of(UserRecord& user) {
    return static_cast<WindowTestState&>(*user.detector);
  }
  static const WindowTestState& Of(const UserRecord& user) {
    return static_cast<const WindowTestState&>(*user.detector);
  }

  void PeriodClosed() override;
  std::size_t dim() const override { return own_regression.dim(); }
  void Grow(std::size_t dim, bool intercept) override;
  std::size_t MemoryBytes() const override {
    return sizeof(*this) + kHeapBlock + own_regression.HeapBytes() + badness.HeapBytes();
  }
  std::string Fault(const Period& period) const override;
  // Format 3 has the recent observations of likelihood=product in the middle of this state.
  void SaveBesidePeriod(const Period& period, ByteWriter& out) const override;
  void LoadBesidePeriod(Period& period, ByteReader& in, const RecordLayout& layout) override;
  void Save(ByteWriter& out) const override { SaveEmptyFilterState(out); }
  void Load(ByteReader& in, const RecordLayout& layout) override {
    LoadEmptyFilterState(in, layout);
  }

  linalg::GaussianPosterior own_regression;
  FlagWindow badness;
};

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
//
// Immutable; the state is the user's. O(d²) an observation.
class WindowTest {
 public:
  explicit WindowTest(const WindowDetectorOptions& options);

  // e for an observation that is not yet part of D, where the noise is σ.
  bool IsBad(const WindowTestState& state, std::span<const double> x, double r, double sigma) const;
  // Whether the flags so far say that the user has changed.
  bool Fires(const WindowTestState& state) const;

 private:
  double Alpha(const linalg::SufficientStats& data, double sigma) const;

  WindowDetectorOptions options_;
  double epsilon_;  // in units of σ
};

// detector=window.
std::unique_ptr<ChangeDetector> MakeWindowDetector(const DetectorContext& context);

}  // namespace codband
