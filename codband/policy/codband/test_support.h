#pragma once

// For tests of CoDBand and its parts: visits of two fixed arms, and a pool that has learned two
// parameters.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "codband/policy/codband/codband.h"

namespace codband {

inline constexpr std::size_t kTwoFeatures = 2;
inline const std::vector<double> kUnitArms = {1, 0, 0, 1};
inline const ArmsView kUnitView{kUnitArms, kTwoFeatures};

// One visit on which the arm e1 was shown, with its reward.
inline LearnOutcome Teach(Policy& policy, UserId user, double reward, std::uint64_t event) {
  Decision decision = policy.Choose(user, kUnitView, {1, event});
  decision.features = {1, 0};
  return policy.Learn(decision, reward, {1, event});
}

// Six users who have one of two parameters, ±1 on e1: 40 observations each, without noise. With
// λσ² = 1 a model of n observations of r expects r n / (n + 1), which tells n.
class TwoParameters : public testing::Test {
 protected:
  static constexpr int kLength = 40;
  static constexpr double kSigma = 0.5;

  static CoDBandOptions Options() {
    // Draws without scatter: what is expected is that of one model, not of all in part.
    return {.hyper = "fixed",
            .explore = "thompson",
            .departure = "none",
            .intercept = false,
            .v = 0,
            .lambda = 1 / (kSigma * kSigma),
            .sigma = kSigma};
  }

  void Learn(const CoDBandOptions& options) {
    policy_ = MakeCoDBand(kTwoFeatures, options);
    event_ = 0;
    for (int round = 0; round < kLength; ++round) {
      for (UserId user = 0; user < 6; ++user) {
        ASSERT_FALSE(See(user, user % 2 == 0 ? 1 : -1).change_detected);
      }
    }
    ASSERT_EQ(policy_->model_count(), 2U);
    ExpectHolds(0, 3 * kLength, 1);
    ExpectHolds(1, 3 * kLength, -1);
  }

  LearnOutcome See(UserId user, double reward) { return Teach(*policy_, user, reward, event_++); }

  // `user` is on a model of n observations of `reward`.
  void ExpectHolds(UserId user, int n, double reward) const {
    const double mean =
        policy_->Choose(user, {std::span(kUnitArms).first(kTwoFeatures), kTwoFeatures}, {}).mean;
    EXPECT_NEAR(mean / (reward - mean), n, 0.01) << "user " << user;
  }

  std::unique_ptr<Policy> policy_;
  std::uint64_t event_ = 0;
};

}  // namespace codband
