#include "codband/sim/reward_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "codband/base/random.h"

namespace codband::sim {
namespace {

constexpr double kFits[] = {-1, -0.6, -0.1, 0, 0.05, 0.3, 0.8, 1};
constexpr RewardKind kKinds[] = {RewardKind::kGaussian, RewardKind::kClicks,
                                 RewardKind::kRareClicks, RewardKind::kCounts,
                                 RewardKind::kRatings};

std::vector<double> Draw(RewardKind kind, double fit) {
  const RewardModel model(kind, 0.2);
  std::vector<double> rewards(20'000);
  for (std::size_t i = 0; i < rewards.size(); ++i) {
    RandomStream random({.seed = 1, .event = i}, 1);
    const double normal = random.Normal();
    rewards[i] = model.Reward(fit, {.normal = normal, .uniform = random.Uniform()});
  }
  return rewards;
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double Deviation(const std::vector<double>& values) {
  const double mean = Mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size()));
}

TEST(RewardModelTest, MeansAreThoseOfTheirFormulas) {
  const auto mean = [](RewardKind kind, double fit) { return RewardModel(kind, 0.2).Mean(fit); };
  EXPECT_DOUBLE_EQ(mean(RewardKind::kGaussian, 0.3), 0.3);
  EXPECT_DOUBLE_EQ(mean(RewardKind::kClicks, 0.3), 0.65);
  EXPECT_DOUBLE_EQ(mean(RewardKind::kClicks, -1), 0);
  EXPECT_DOUBLE_EQ(mean(RewardKind::kRareClicks, 0.3), 0.2);
  EXPECT_DOUBLE_EQ(mean(RewardKind::kRareClicks, -0.3), 0);
  EXPECT_DOUBLE_EQ(mean(RewardKind::kCounts, 0.3), 1.6);
  EXPECT_DOUBLE_EQ(mean(RewardKind::kCounts, -0.7), 0);
  EXPECT_DOUBLE_EQ(mean(RewardKind::kRatings, 0.3), 3.6);
}

TEST(RewardModelTest, RewardsHaveTheirMeans) {
  for (const RewardKind kind : kKinds) {
    for (const double fit : kFits) {
      const std::vector<double> rewards = Draw(kind, fit);
      const double error = std::max(Deviation(rewards), 1e-3) / std::sqrt(rewards.size());
      EXPECT_NEAR(Mean(rewards), RewardModel(kind, 0.2).Mean(fit), 4 * error)
          << RewardName(kind) << " at " << fit;
    }
  }
}

TEST(RewardModelTest, DeviationIsThatOfAnArmWithFitZero) {
  for (const RewardKind kind : kKinds) {
    const double expected = RewardModel(kind, 0.2).deviation();
    EXPECT_NEAR(Deviation(Draw(kind, 0)), expected, 0.03 * expected) << RewardName(kind);
  }
}

TEST(RewardModelTest, ClicksAreZeroOrOneAndCountsAreWholeNumbersUpToTwenty) {
  for (const RewardKind kind : {RewardKind::kClicks, RewardKind::kRareClicks}) {
    for (const double reward : Draw(kind, 0.2)) EXPECT_TRUE(reward == 0 || reward == 1);
  }
  for (const double reward : Draw(RewardKind::kCounts, 1)) {
    EXPECT_EQ(reward, std::floor(reward));
    EXPECT_GE(reward, 0);
  }
  const RewardModel counts(RewardKind::kCounts, 1);
  EXPECT_EQ(counts.Reward(1, {.uniform = 1}), 20);
  EXPECT_EQ(counts.Reward(-0.5, {.uniform = 0.999}), 0);
}

TEST(RewardModelTest, CountsFollowThePoissonDistribution) {
  const std::vector<double> rewards = Draw(RewardKind::kCounts, 0.5);  // mean 2
  double chance = std::exp(-2.0);
  for (int count = 0; count < 7; ++count) {
    const auto seen = static_cast<double>(std::ranges::count(rewards, count));
    EXPECT_NEAR(seen / static_cast<double>(rewards.size()), chance, 0.015) << count;
    chance *= 2.0 / (count + 1);
  }
}

TEST(RewardModelTest, RewardDoesNotDecreaseInTheFit) {
  for (const RewardKind kind : kKinds) {
    const RewardModel model(kind, 0.2);
    for (double uniform = 0; uniform < 1; uniform += 0.01) {
      const Luck luck{.normal = 3 * uniform - 1, .uniform = uniform};
      for (std::size_t i = 1; i < std::size(kFits); ++i) {
        EXPECT_GE(model.Reward(kFits[i], luck), model.Reward(kFits[i - 1], luck))
            << RewardName(kind);
      }
    }
  }
}

}  // namespace
}  // namespace codband::sim
