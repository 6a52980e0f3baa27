#include "codband/policy/codband/codband.h"

#include <gtest/gtest.h>

#include <map>

#include "codband/policy/state_file.h"
#include "codband/policy/test_support.h"

namespace codband {
namespace {

constexpr std::size_t kDim = 2;
const std::vector<double> kArms = {1, 0, 0, 1};
const ArmsView kView{kArms, kDim};

// One visit on which the arm e1 was shown, with its reward.
LearnOutcome Teach(Policy& policy, UserId user, double reward, std::uint64_t event) {
  Decision decision = policy.Choose(user, kView, {1, event});
  decision.features = {1, 0};
  return policy.Learn(decision, reward, {1, event});
}

TEST(CoDBandTest, UsersWhoThinkAlikeShareAModelAndOthersDoNot) {
  const auto policy = MakeCoDBand(kDim, {});
  std::uint64_t event = 0;
  for (int round = 0; round < 40; ++round) {
    for (UserId user = 0; user < 6; ++user) Teach(*policy, user, user % 2 == 0 ? 2 : -2, event++);
  }
  std::map<UserId, ModelId> model;
  for (UserId user = 0; user < 6; ++user) model[user] = policy->Choose(user, kView, {}).model;
  EXPECT_EQ(model[0], model[2]);
  EXPECT_EQ(model[0], model[4]);
  EXPECT_EQ(model[1], model[3]);
  EXPECT_EQ(model[1], model[5]);
  EXPECT_NE(model[0], model[1]);
  EXPECT_EQ(policy->model_count(), 2U);
}

TEST(CoDBandTest, UserWhoChangesIsNoticedAndMovesToTheModelThatFitsNow) {
  const auto policy = MakeCoDBand(kDim, {});
  std::uint64_t event = 0;
  for (int round = 0; round < 40; ++round) {
    for (UserId user = 0; user < 6; ++user) Teach(*policy, user, user % 2 == 0 ? 2 : -2, event++);
  }
  const ModelId other = policy->Choose(1, kView, {}).model;
  int detected_after = -1;
  for (int step = 0; step < 20; ++step) {
    if (Teach(*policy, 0, -2, event++).change_detected && detected_after < 0) detected_after = step;
  }
  EXPECT_GE(detected_after, 0);
  EXPECT_LE(detected_after, 6);  // five bad observations of twenty
  EXPECT_EQ(policy->Choose(0, kView, {}).model, other);
  EXPECT_EQ(policy->Choose(0, kView, {}).period, 1U);
  EXPECT_NEAR(policy->Choose(0, kView, {1, 999}).mean, policy->Choose(1, kView, {1, 999}).mean,
              0.5);
}

TEST(CoDBandTest, WithoutDetectorNothingIsEverDetected) {
  const auto policy = MakeCoDBand(kDim, {.detector = DetectorKind::kNone});
  for (std::uint64_t event = 0; event < 100; ++event) {
    EXPECT_FALSE(Teach(*policy, 0, event < 50 ? 2 : -2, event).change_detected);
  }
}

TEST(CoDBandTest, ChoosingChangesNothing) {
  TestWorld world(5);
  const auto policy = MakeOrDie("codband", world.context());
  for (int i = 0; i < 50; ++i) world.Step(*policy);
  const std::string before = EncodeState(*policy);
  const std::vector<double> arms = world.Arms();
  for (UserId user = 0; user < 20; ++user) {
    (void)policy->Choose(user, {arms, TestWorld::kDim}, {9, user});
  }
  EXPECT_EQ(EncodeState(*policy), before);
}

TEST(CoDBandTest, LateRewardBelongsToThePeriodItsDecisionWasMadeIn) {
  const auto policy = MakeCoDBand(kDim, {});
  std::uint64_t event = 0;
  for (int i = 0; i < 40; ++i) Teach(*policy, 0, 2, event++);
  Decision early = policy->Choose(0, kView, {1, event++});
  early.features = {1, 0};
  const ModelId first_model = early.model;
  bool detected = false;
  for (int i = 0; i < 100 && !detected; ++i) {
    detected = Teach(*policy, 0, -2, event++).change_detected;
  }
  ASSERT_TRUE(detected);
  for (int i = 0; i < 20; ++i) Teach(*policy, 0, -2, event++);
  const Decision now = policy->Choose(0, kView, {1, event});
  ASSERT_NE(now.model, first_model);
  const std::string before = EncodeState(*policy);
  EXPECT_FALSE(policy->Learn(early, 2, {1, event}).change_detected);
  EXPECT_NE(EncodeState(*policy), before);  // it was learned
  const Decision after = policy->Choose(0, kView, {1, event});
  EXPECT_EQ(after.model, now.model);
  EXPECT_EQ(after.mean, now.mean);  // the present is untouched
}

TEST(CoDBandTest, DecisionOfALaterPeriodCountsForTheCurrentOne) {
  // As after restoring an older state.
  const auto policy = MakeOrDie("codband", {.dim = kDim});
  Decision decision = policy->Choose(3, kView, {});
  decision.period = 2;
  policy->Learn(decision, 1, {});
  EXPECT_EQ(policy->Choose(3, kView, {}).period, 0U);
  EXPECT_EQ(policy->model_count(), 1U);
}

TEST(CoDBandTest, ModelThatIsGoneWhenTheFirstRewardArrivesIsDrawnAnew) {
  const auto policy = MakeOrDie("codband", {.dim = kDim});
  Teach(*policy, 1, 1, 0);
  Decision decision;
  for (std::uint64_t event = 1; decision.model == kNoModel && event < 1000; ++event) {
    decision = policy->Choose(2, kView, {1, event});
  }
  ASSERT_TRUE(policy->Forget(1));
  EXPECT_EQ(policy->model_count(), 0U);
  policy->Learn(decision, 1, {1, 500});
  EXPECT_EQ(policy->model_count(), 1U);
}

TEST(CoDBandTest, ForgettingAUserLeavesThePoolAsTheOthersMadeIt) {
  const std::vector<double> first_arm = {1, 0};
  const ArmsView only_first{first_arm, kDim};
  for (const char* spec : {"codband", "codband:paper", "codband:paper-product"}) {
    const auto policy = MakeOrDie(spec, {.dim = kDim});
    std::uint64_t event = 0;
    for (int round = 0; round < 60; ++round) {
      for (UserId user = 0; user < 4; ++user) Teach(*policy, user, user % 2 == 0 ? 2 : -2, event++);
    }
    // User 9 lives through several periods on both models.
    for (int i = 0; i < 200; ++i) Teach(*policy, 9, i / 50 % 2 == 0 ? 2 : -2, event++);
    EXPECT_GE(policy->Choose(9, kView, {}).period, 3U) << spec;

    EXPECT_TRUE(policy->Forget(9));
    EXPECT_FALSE(policy->Forget(9));
    EXPECT_EQ(policy->Choose(9, kView, {}).period, 0U);
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

}  // namespace
}  // namespace codband
