#include "codband/eval/intervals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "codband/eval/test_support.h"

namespace codband::eval {
namespace {

// `size` times a Bernoulli variable.
std::vector<double> Draws(std::size_t n, double chance, double size, std::uint64_t seed) {
  RandomStream random({.seed = seed, .event = 0}, 9);
  std::vector<double> z(n);
  for (double& value : z) value = random.Uniform() < chance ? size : 0;
  return z;
}

double Mean(const std::vector<double>& z) {
  return std::accumulate(z.begin(), z.end(), 0.0) / static_cast<double>(z.size());
}

TEST(IntervalsTest, LowerBoundIsBelowTheMeanAndNarrowsLikeTheRoot) {
  double last = 1;
  for (const std::size_t n : {100, 1000, 10'000, 100'000}) {
    const std::vector<double> z = Draws(n, 0.3, 1, n);
    const double gap = Mean(z) - LowerConfidenceBound(z, 0.025);
    EXPECT_GT(gap, 0);
    // A normal interval is 1.96 standard errors wide on each side; ours is wider.
    const double error = std::sqrt(0.21 / static_cast<double>(n));
    EXPECT_GT(gap, 1.9 * error) << n;
    EXPECT_LT(gap, 3.5 * error) << n;
    EXPECT_LT(gap, 0.5 * last) << n;
    last = gap;
  }
}

TEST(IntervalsTest, LowerBoundIsRarelyMissed) {
  // Of rare and large rewards, where normal approximations fail first. Missed with chance at most
  // 0.05: of 1000, more than 78 with chance below 0.0001.
  for (const auto& [chance, size] :
       {std::pair{0.5, 1.0}, {0.01, 1.0}, {0.01, 50.0}, {0.002, 200.0}}) {
    int missed = 0;
    for (std::uint64_t seed = 0; seed < 1000; ++seed) {
      missed += LowerConfidenceBound(Draws(300, chance, size, seed), 0.05) > chance * size ? 1 : 0;
    }
    EXPECT_LE(missed, 78) << chance;
  }
}

TEST(IntervalsTest, LowerBoundHoldsForMeansThatVary) {
  // The mean at an event follows the last value, as a policy's that learns.
  int missed = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    RandomStream random({.seed = seed, .event = 1}, 9);
    std::vector<double> z;
    double means = 0;
    for (std::size_t i = 0; i < 300; ++i) {
      const double chance = z.empty() || z.back() == 0 ? 0.1 : 0.7;
      means += chance / 300;
      z.push_back(random.Uniform() < chance ? 1 : 0);
    }
    missed += LowerConfidenceBound(z, 0.05) > means ? 1 : 0;
  }
  EXPECT_LE(missed, 78);
}

TEST(IntervalsTest, NothingSeenMeansNothingClaimed) {
  EXPECT_EQ(LowerConfidenceBound(std::vector<double>(100, 0.0), 0.05), 0);
  EXPECT_EQ(LowerConfidenceBound(std::vector<double>{1}, 0.05), 0);
  EXPECT_EQ(LowerConfidenceBound({}, 0.05), 0);
  EXPECT_GT(LowerConfidenceBound(std::vector<double>(100, 1.0), 0.05), 0.9);
}

ScoredLog ScoreLog(const LoggedDecisions& log, Target& target, double smallest) {
  return ScoreEvents(log, target, {.range = {}, .smallest_propensity = smallest});
}

// Clicks of one in a hundred, and weights of up to 20: the mirror image of the rewards alone would
// leave an upper bound near 1.
TEST(IntervalsTest, UpperBoundOfRareClicksIsUseful) {
  const SmallBandit bandit{.p = {0.05, 0.95}, .mean = {0.01, 0.02}};
  const LoggedDecisions log = bandit.Log(20'000, 1);
  const ScoredLog scored = ScoreLog(log, *MakeFirstTarget(), 0.05);
  for (const Estimator estimator : {Estimator::kIps, Estimator::kDr}) {
    const Interval interval = *GuaranteedInterval(estimator, scored, {}, 0.95);
    EXPECT_LT(interval.low, 0.01);
    EXPECT_GT(interval.high, 0.01);
    EXPECT_LT(interval.high, 0.045) << EstimatorName(estimator);
  }
}

TEST(IntervalsTest, WhatTheLogCannotChooseWidensTheInterval) {
  const SmallBandit bandit{.p = {0.5, 0.5, 0}, .mean = {0.2, 0.2, 1}};
  const LoggedDecisions log = bandit.Log(20'000, 1);
  const ScoredLog scored = ScoreLog(log, *MakeUniformTarget(), 0.5);
  const double value = 1.4 / 3;
  EXPECT_LT(*EstimateValue(Estimator::kIps, scored.events), 0.2);
  for (const Estimator estimator : {Estimator::kIps, Estimator::kDr}) {
    const Interval interval = *GuaranteedInterval(estimator, scored, {}, 0.95);
    EXPECT_LE(interval.low, value);
    EXPECT_GE(interval.high, value);
  }
}

TEST(IntervalsTest, RewardsOfAnotherRangeGiveTheSameIntervalOnTheirScale) {
  const SmallBandit bandit{.p = {0.3, 0.7}, .mean = {0.6, 0.2}};
  const LoggedDecisions log = bandit.Log(500, 4);
  const RewardRange wide{-3, 5};
  ScoredLog plain = ScoreLog(log, *MakeFirstTarget(), 0.3);
  ScoredLog scaled = plain;
  for (ScoredEvent& event : scaled.events) event.reward = wide.Unscale(event.reward);
  for (const Estimator estimator : {Estimator::kMean, Estimator::kIps}) {
    const Interval before = *GuaranteedInterval(estimator, plain, {}, 0.9);
    const Interval after = *GuaranteedInterval(estimator, scaled, wide, 0.9);
    EXPECT_NEAR(after.low, wide.Unscale(before.low), 1e-9);
    EXPECT_NEAR(after.high, wide.Unscale(before.high), 1e-9);
  }
  EXPECT_FALSE(GuaranteedInterval(Estimator::kSnips, plain, {}, 0.9).has_value());
  EXPECT_FALSE(GuaranteedInterval(Estimator::kDm, plain, {}, 0.9).has_value());
}

TEST(IntervalsTest, BootstrapDoesNotDependOnThreads) {
  const SmallBandit bandit{.p = {0.3, 0.7}, .mean = {0.6, 0.2}};
  const ScoredLog scored = ScoreLog(bandit.Log(300, 4), *MakeFirstTarget(), 0.3);
  const auto one = Bootstrap(kOffPolicyEstimators, scored.events, {.resamples = 100, .threads = 1});
  const auto four =
      Bootstrap(kOffPolicyEstimators, scored.events, {.resamples = 100, .threads = 4});
  const auto other = Bootstrap(kOffPolicyEstimators, scored.events, {.resamples = 100, .seed = 2});
  for (std::size_t e = 0; e < one.size(); ++e) {
    EXPECT_EQ(one[e]->interval.low, four[e]->interval.low);
    EXPECT_EQ(one[e]->standard_error, four[e]->standard_error);
    EXPECT_NE(one[e]->standard_error, other[e]->standard_error);
  }
}

TEST(IntervalsTest, BootstrapErrorIsThatOfTheMean) {
  for (const std::size_t n : {2000, 60'000}) {  // the second in blocks
    const SmallBandit bandit{.p = {0.5, 0.5}, .mean = {0.3, 0.3}};
    const ScoredLog scored = ScoreLog(bandit.Log(n, 4), *MakeLoggedTarget(), 0.5);
    const std::array mean = {Estimator::kMean};
    const auto result = Bootstrap(mean, scored.events, {.resamples = 2000});
    const double error = std::sqrt(0.21 / static_cast<double>(n));
    EXPECT_NEAR(result[0]->standard_error / error, 1, 0.08) << n;
    const double value = *EstimateValue(Estimator::kMean, scored.events);
    EXPECT_NEAR((result[0]->interval.high - value) / error, 1.96, 0.25);
    EXPECT_NEAR((value - result[0]->interval.low) / error, 1.96, 0.25);
  }
}

TEST(IntervalsTest, BootstrapOfNothingIsNone) {
  const SmallBandit bandit{.p = {0, 1}, .mean = {0.7, 0.3}};
  const ScoredLog scored = ScoreLog(bandit.Log(50, 1), *MakeFirstTarget(), 0.5);
  const std::array snips = {Estimator::kSnips};
  EXPECT_FALSE(Bootstrap(snips, scored.events, {})[0].has_value());
  const std::array mean = {Estimator::kMean};
  EXPECT_TRUE(Bootstrap(mean, scored.events, {})[0].has_value());
  const SmallBandit constant{.p = {0.5, 0.5}, .mean = {0.3, 0.3}, .exact = true};
  const ScoredLog same = ScoreLog(constant.Log(64, 1), *MakeLoggedTarget(), 0.5);
  EXPECT_FALSE(Bootstrap(mean, same.events, {})[0].has_value());
}

}  // namespace
}  // namespace codband::eval
