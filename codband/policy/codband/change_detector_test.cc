#include "codband/policy/codband/change_detector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "codband/policy/codband/test_support.h"
#include "codband/policy/test_support.h"

namespace codband {
namespace {

TEST(ChangeDetectorTest, WithoutDetectorNothingIsEverDetected) {
  const auto policy = MakeCoDBand(kTwoFeatures, {.detector = "none"});
  for (std::uint64_t event = 0; event < 100; ++event) {
    EXPECT_FALSE(Teach(*policy, 0, event < 50 ? 2 : -2, event).change_detected);
  }
}

TEST_F(TwoParameters, ObservationsSinceTheChangeGoToTheNewModelAndThoseBeforeStay) {
  Learn(Options());
  int noticed_after = 0;
  for (int step = 1; step <= 10; ++step) {
    if (See(0, -1).change_detected) {
      EXPECT_EQ(noticed_after, 0);
      noticed_after = step;
    }
  }
  // A single one could be noise: the odds change by e⁸, the chance of a change is e⁻⁸.
  EXPECT_GE(noticed_after, 1);
  EXPECT_LE(noticed_after, 3);
  const Decision now = policy_->Choose(0, kUnitView, {});
  EXPECT_EQ(now.period, 1U);
  EXPECT_EQ(now.model, policy_->Choose(1, kUnitView, {}).model);
  ExpectHolds(2, 3 * kLength, 1);
  ExpectHolds(1, 3 * kLength + 10, -1);
  ExpectHolds(0, 3 * kLength + 10, -1);
}

TEST_F(TwoParameters, ChangeNoticedLateIsDatedBack) {
  // With more noise it takes a few: these, too, belong to the new model.
  CoDBandOptions options = Options();
  options.sigma = 1;
  options.lambda = 1;
  options.a = 0.1;  // few models
  Learn(options);
  int noticed_after = 0;
  for (int step = 1; noticed_after == 0 && step <= 8; ++step) {
    if (See(0, -1).change_detected) noticed_after = step;
  }
  EXPECT_GE(noticed_after, 3);
  ASSERT_LE(noticed_after, 8);
  ExpectHolds(2, 3 * kLength, 1);
  ExpectHolds(1, 3 * kLength + noticed_after, -1);
}

TEST_F(TwoParameters, ParameterThatNobodyHadBecomesAModel) {
  Learn(Options());
  const ModelId before = policy_->Choose(0, kUnitView, {}).model;
  int changes = 0;
  for (int step = 0; step < 12; ++step) changes += See(0, 4).change_detected ? 1 : 0;
  EXPECT_EQ(changes, 1);
  EXPECT_EQ(policy_->model_count(), 3U);
  const ModelId now = policy_->Choose(0, kUnitView, {}).model;
  EXPECT_NE(now, before);
  EXPECT_NE(now, policy_->Choose(1, kUnitView, {}).model);
  ExpectHolds(0, 12, 4);
  ExpectHolds(2, 3 * kLength, 1);
  ExpectHolds(1, 3 * kLength, -1);
}

TEST(ChangeDetectorTest, ClicksOfUsersWhoDoNotChangeHardlyEverRaiseAnAlarm) {
  // Three parameters: the chance of a click is ½ + xᵀθ, from 0.1 to 0.9.
  const std::vector<std::vector<double>> tastes = {{0.4, 0, 0}, {0, 0.4, 0}, {-0.2, -0.1, 0.3}};
  int alarms = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const auto policy = MakeOrDie("codband", {.dim = 3});
    for (std::uint64_t event = 0; event < 3000; ++event) {
      RandomStream random({seed, event}, 505);
      std::vector<double> arms(5 * 3);
      for (double& value : arms) value = 2 * random.Uniform() - 1;
      const UserId user = event % 12;
      const Decision decision = policy->Choose(user, {arms, 3}, {seed, event});
      const double chance =
          std::clamp(0.5 + linalg::Dot(decision.features, tastes[user % 3]), 0.1, 0.9);
      const double click = random.Uniform() < chance ? 1 : 0;
      alarms += policy->Learn(decision, click, {seed, event}).change_detected ? 1 : 0;
    }
  }
  EXPECT_LE(alarms, 30);  // of 90,000
}

TEST(ChangeDetectorTest, AlarmsAreRareWhereNobodyChangesAndRewardsAreGaussian) {
  TestWorld world(21);
  const auto policy = MakeOrDie("codband", world.context());
  int alarms = 0;
  for (std::uint64_t event = 0; event < 3000; ++event) {
    world.set_step(event);
    const std::vector<double> arms = world.Arms();
    const UserId user = event % TestWorld::kUsers;
    const Decision decision = policy->Choose(user, {arms, TestWorld::kDim}, {21, event});
    RandomStream random({21, event}, 506);
    const double reward =
        linalg::Dot(decision.features, world.parameter(user % 3)) + 0.1 * random.Normal();
    alarms += policy->Learn(decision, reward, {21, event}).change_detected ? 1 : 0;
  }
  EXPECT_LE(alarms, 1);
  EXPECT_EQ(policy->model_count(), 3U);
}

}  // namespace
}  // namespace codband
