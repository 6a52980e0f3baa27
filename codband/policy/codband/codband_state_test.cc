#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "codband/policy/codband/test_support.h"
#include "codband/policy/state_file.h"
#include "codband/policy/test_support.h"

namespace codband {
namespace {

TEST(CoDBandStateTest, ForgettingAUserLeavesThePoolAsTheOthersMadeIt) {
  const std::vector<double> first_arm = {1, 0};
  const ArmsView only_first{first_arm, kTwoFeatures};
  for (const char* spec : {"codband", "codband:paper", "codband:paper-product"}) {
    const auto policy = MakeOrDie(spec, {.dim = kTwoFeatures});
    std::uint64_t event = 0;
    for (int round = 0; round < 60; ++round) {
      for (UserId user = 0; user < 4; ++user) Teach(*policy, user, user % 2 == 0 ? 2 : -2, event++);
    }
    // User 9 lives through several periods on both models.
    for (int i = 0; i < 200; ++i) Teach(*policy, 9, i / 50 % 2 == 0 ? 2 : -2, event++);
    EXPECT_GE(policy->Choose(9, kUnitView, {}).period, 3U) << spec;

    EXPECT_TRUE(policy->Forget(9));
    EXPECT_FALSE(policy->Forget(9));
    EXPECT_EQ(policy->Choose(9, kUnitView, {}).period, 0U);
    // Two models of 120 observations of reward ±2 on e1, noise σ = 0.1: mean ±2 / (1 + λσ²/120).
    // A learned prior shrinks by another amount, as little.
    ASSERT_EQ(policy->model_count(), 2U) << spec;
    const bool learned = std::string_view(spec) == "codband";
    const double mean = 2 / (1 + 0.1 * 0.01 / 120);
    const double tolerance = learned ? 0.01 : 1e-9;
    EXPECT_NEAR(policy->Choose(0, only_first, {1, 5}).mean, mean, tolerance) << spec;
    EXPECT_NEAR(policy->Choose(1, only_first, {1, 5}).mean, -mean, tolerance) << spec;
    for (UserId user = 0; user < 4; ++user) EXPECT_TRUE(policy->Forget(user));
    EXPECT_EQ(policy->model_count(), 0U);
  }
}

TEST_F(TwoParameters, OnlyTheLastPeriodsOfAUserAreRemembered) {
  // User 9 is on either side twice. Of the closed periods the last one, on the first model, counts.
  Learn(Options());
  for (int i = 0; i < 4 * kLength; ++i) See(9, i / kLength % 2 == 0 ? 1 : -1);
  ASSERT_EQ(policy_->Choose(9, kUnitView, {}).period, 3U);
  ExpectHolds(0, 4 * kLength, 1);
  ExpectHolds(1, 4 * kLength, -1);
  CoDBandOptions all = Options();
  all.history = 0;
  Learn(all);
  for (int i = 0; i < 4 * kLength; ++i) See(9, i / kLength % 2 == 0 ? 1 : -1);
  ASSERT_EQ(policy_->Choose(9, kUnitView, {}).period, 3U);
  ExpectHolds(0, 5 * kLength, 1);
  ExpectHolds(1, 5 * kLength, -1);
}

TEST_F(TwoParameters, RewardOfAPeriodNoLongerRememberedChangesNothing) {
  Learn(Options());
  See(9, 1);
  Decision first_period = policy_->Choose(9, kUnitView, {1, event_});
  first_period.features = {1, 0};
  for (int i = 1; i < 3 * kLength; ++i) See(9, i / kLength % 2 == 0 ? 1 : -1);
  ASSERT_EQ(policy_->Choose(9, kUnitView, {}).period, 2U);
  const auto state = [&] {
    ByteWriter out;
    policy_->SaveState(out);
    return out.Take();
  };
  const std::string before = state();
  EXPECT_FALSE(policy_->Learn(first_period, 1, {1, event_}).change_detected);
  EXPECT_EQ(state(), before);
  first_period.period = 1;  // this one is
  policy_->Learn(first_period, -1, {1, event_});
  EXPECT_NE(state(), before);
}

// The pool and what users say of it must agree however often they return to a model.
TEST_F(TwoParameters, ReturningToTheSameModelIsCountedRight) {
  for (const std::size_t history : {0U, 1U, 2U, 3U}) {
    SCOPED_TRACE(history);
    CoDBandOptions options = Options();
    options.history = history;
    Learn(options);
    for (int i = 0; i < 7 * kLength; ++i) See(9, i / kLength % 2 == 0 ? 1 : -1);
    ASSERT_EQ(policy_->Choose(9, kUnitView, {}).period, 6U);
    ByteWriter out;
    policy_->SaveState(out);
    const auto restored = MakeCoDBand(kTwoFeatures, options);
    ByteReader in(out.bytes());
    restored->LoadState(in);
    in.ExpectEnd();
    EXPECT_TRUE(in.ok()) << in.status().ToString();
    for (const UserId user : {9, 0, 1, 2, 3, 4, 5}) EXPECT_TRUE(policy_->Forget(user));
    EXPECT_EQ(policy_->model_count(), 0U);
  }
}

TEST(CoDBandStateTest, ForgettingAUserIsAsIfTheyHadNeverBeenThere) {
  constexpr std::size_t kFeatures = TestWorld::kDim;
  CoDBandOptions options{.hyper = "fixed", .explore = "thompson", .v = 0, .lambda = 1};
  for (const std::size_t history : {1U, 2U, 0U}) {
    options.history = history;
    const auto policy = MakeCoDBand(kFeatures, options);
    const auto twin = MakeCoDBand(kFeatures, options);
    // Users who do not change, until all know where they belong.
    TestWorld world(3);
    TestWorld twin_world(3);
    for (int i = 0; i < 230; ++i) {
      world.Step(*policy);
      twin_world.Step(*twin);
    }
    // One who does, three times.
    RandomStream random({4, 0}, 504);
    std::uint32_t period = 0;
    for (std::uint64_t i = 0; i < 160; ++i) {
      std::vector<double> arm(kFeatures);
      random.FillNormal(arm);
      const Decision decision = policy->Choose(99, {arm, kFeatures}, {4, i});
      period = decision.period;
      const auto taste = world.parameter(i / 40 % 2);
      policy->Learn(decision, linalg::Dot(arm, taste) + 0.1 * random.Normal(), {4, i});
    }
    ASSERT_EQ(period, 3U) << history;
    ASSERT_TRUE(policy->Forget(99));
    EXPECT_EQ(policy->model_count(), twin->model_count());
    for (UserId user = 0; user < TestWorld::kUsers; ++user) {
      for (int i = 0; i < 10; ++i) {
        std::vector<double> arm(kFeatures);
        random.FillNormal(arm);
        const Decision after = policy->Choose(user, {arm, kFeatures}, {5, 0});
        const Decision never = twin->Choose(user, {arm, kFeatures}, {5, 0});
        EXPECT_EQ(after.model, never.model);
        EXPECT_NEAR(after.mean, never.mean, 1e-9);
        EXPECT_NEAR(after.width, never.width, 1e-9);
      }
    }
  }
}

TEST(CoDBandStateTest, ForgottenUsersAreNotNamedInTheState) {
  constexpr UserId kUser = 0x1122334455667788;
  const auto policy = MakeCoDBand(kTwoFeatures, {});
  for (std::uint64_t event = 0; event < 10; ++event) {
    Teach(*policy, 1, 1, 2 * event);
    Teach(*policy, kUser, 1, 2 * event + 1);
  }
  const auto named = [&] {
    ByteWriter id;
    id.U64(kUser);
    return EncodeState(*policy).find(id.bytes()) != std::string::npos;
  };
  EXPECT_TRUE(named());
  policy->Forget(kUser);
  EXPECT_FALSE(named());
}

TEST(CoDBandStateTest, StateWithRewardsOfAllSizesCanBeReadBack) {
  for (const char* spec : {"codband", "codband:hyper=fixed,sigma=1e-6"}) {
    const auto policy = MakeOrDie(spec, {.dim = kTwoFeatures});
    std::uint64_t event = 0;
    for (int i = 0; i < 60; ++i) Teach(*policy, 0, i % 20 == 10 ? 1e15 : 1e-10, event++);
    const auto restored = DecodeState(EncodeState(*policy), {.dim = kTwoFeatures});
    EXPECT_TRUE(restored.ok()) << spec << ": " << restored.status().ToString();
    EXPECT_TRUE(std::isfinite(policy->Choose(0, kUnitView, {1, event}).mean)) << spec;
  }
}

}  // namespace
}  // namespace codband
