#pragma once

#include <cmath>
#include <cstdint>

#include "codband/base/bytes.h"
#include "codband/policy/policy.h"

namespace codband {

// The trial of a change that was found: over the next observations the new model must predict
// better than the old one would have. These observations did not help to find the change, so the
// verdict is unbiased.
struct Trial {
  static constexpr std::uint32_t kLength = 20;

  ModelId old_model = kNoModel;
  double evidence = 0;     // Σ ln p(r | new) - ln p(r | old)
  std::uint32_t left = 0;  // observations until the verdict; 0: no trial

  void Save(ByteWriter& out) const {
    out.U64(old_model);
    out.Double(evidence);
    out.U32(left);
  }
  void Load(ByteReader& in) {
    old_model = in.U64("old model of a change");
    evidence = in.Double("evidence for a change");
    left = in.U32("rest of a trial");
    if (left > kLength) in.Fail("rest of a trial", "is too long");
  }
};

// The hazard rate of changes, learned: the share of observations at which a change was found and
// confirmed. Where changes are refuted again and again, the model is misspecified (autocorrelated
// noise, drifting parameters), and evidence for a change is worth less than it seems: every refuted
// change divides the hazard by e, every confirmed one undoes a tenth of that. In equilibrium at
// most one change in eleven is refuted.
class ChangeRate {
 public:
  // `start` is the initial hazard, with the weight of one change.
  ChangeRate(double start, bool learned) : start_(start), learned_(learned) {}

  // The chance that a user changes between two observations.
  double hazard() const {
    if (!learned_) return start_;
    const double rate =
        (1 + static_cast<double>(confirmed_)) / (1 / start_ + static_cast<double>(observations_));
    return rate * std::exp(-caution_);
  }

  void Observe() { ++observations_; }
  void Confirm() {
    ++confirmed_;
    caution_ = caution_ > 0.1 ? caution_ - 0.1 : 0;
  }
  void Refute() { caution_ += 1; }

  void Save(ByteWriter& out) const {
    out.U64(observations_);
    out.U64(confirmed_);
    out.Double(caution_);
  }
  void Load(ByteReader& in) {
    observations_ = in.U64("observations");
    confirmed_ = in.U64("confirmed changes");
    caution_ = in.Double("caution");
    if (!(caution_ >= 0)) in.Fail("caution", "is negative");
  }

 private:
  double start_;
  bool learned_;
  std::uint64_t observations_ = 0;
  std::uint64_t confirmed_ = 0;
  double caution_ = 0;
};

}  // namespace codband
