#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "codband/base/check.h"

namespace codband {

// How likely a choice was: what Policy::DoChoose returns, so that no policy can forget to say it.
// There is no default. Off-policy evaluation divides by this number (inverse propensity scoring),
// so a wrong one is worse than none; the conformance suite compares it with frequencies.
//
// The chance is over the event key, given the user, the arms and the state of the policy.
class [[nodiscard]] Propensity {
 public:
  // The choice is a function of user, arms and state: whatever the key, the same arm. Taking the
  // first of several equally good arms is certain, too.
  static Propensity Certain() { return {Kind::kMixture, 0, kChosenArm}; }

  // Every arm is equally likely.
  static Propensity Uniform() { return {Kind::kMixture, 1, kChosenArm}; }

  // A uniformly random arm with probability epsilon, otherwise the arm `greedy`, which is not
  // necessarily the chosen one. Precondition: 0 ≤ epsilon ≤ 1.
  static Propensity EpsilonGreedy(double epsilon, std::uint32_t greedy) {
    CODBAND_CHECK(epsilon >= 0 && epsilon <= 1);
    return {Kind::kMixture, epsilon, greedy};
  }

  // The chosen arm had probability p; those of the others are not told. Policy::Rank then estimates
  // all of them by repeated choices unless the policy overrides DoRank. Precondition: 0 < p ≤ 1.
  static Propensity Of(double p) {
    CODBAND_CHECK(p > 0 && p <= 1);
    return {Kind::kChosenOnly, p, kChosenArm};
  }

  // The choice is random, and its probability has no closed form (Thompson sampling). Choose
  // reports NaN; use Policy::Rank to get a number.
  static Propensity Sampled() {
    return {Kind::kSampled, std::numeric_limits<double>::quiet_NaN(), kChosenArm};
  }

  // Whether the probability of every arm is known, not that of the chosen one alone.
  bool knows_every_arm() const { return kind_ == Kind::kMixture; }

  // The probability of the chosen one of `count` arms; NaN if it has no closed form.
  double OfChosen(std::uint32_t chosen, std::size_t count) const {
    return knows_every_arm() ? OfArm(chosen, chosen, count) : value_;
  }

  // The probability of any arm. Preconditions: knows_every_arm(), arm < count.
  double OfArm(std::size_t arm, std::uint32_t chosen, std::size_t count) const {
    const std::size_t greedy = greedy_ == kChosenArm ? chosen : greedy_;
    return value_ / static_cast<double>(count) + (arm == greedy ? 1 - value_ : 0);
  }

 private:
  enum class Kind { kMixture, kChosenOnly, kSampled };
  static constexpr std::uint32_t kChosenArm = std::numeric_limits<std::uint32_t>::max();

  Propensity(Kind kind, double value, std::uint32_t greedy)
      : kind_(kind), greedy_(greedy), value_(value) {}

  Kind kind_;
  std::uint32_t greedy_;  // the arm that takes what uniform exploration leaves
  double value_;          // kMixture: the share of uniform exploration; else of the chosen arm
};

}  // namespace codband
