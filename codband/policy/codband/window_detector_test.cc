#include "codband/policy/codband/window_detector.h"

#include <gtest/gtest.h>

#include <cmath>

namespace codband {
namespace {

Period MakePeriod(double ridge, std::size_t tau) {
  return {.data = linalg::SufficientStats(2),
          .paper = std::make_unique<PaperRecord>(
              PaperRecord{.own_regression = linalg::GaussianPosterior(2, ridge, 1),
                          .recent = RecentObservations(2, 0),
                          .badness = FlagWindow(tau)})};
}

TEST(WindowDetectorTest, BadnessComparesTheErrorWithWidthAndNoise) {
  Period period = MakePeriod(0.5, 20);
  period.Observe(std::vector<double>{1, 0}, 3);
  // λI + S = diag(1.5, 0.5): θ̂ = (2, 0), width of x = (1, 0) is sqrt(1/1.5).
  const WindowDetector detector({.ridge = 0.5, .alpha = 0.6, .delta = 0.1});
  const double epsilon = 0.16448536269514727;  // the 95% quantile of N(0, 0.1²)
  const double bound = 0.6 * std::sqrt(1 / 1.5) + epsilon;
  const std::vector<double> x = {1, 0};
  EXPECT_FALSE(detector.IsBad(period, x, 2 + bound - 1e-9, 0.1));
  EXPECT_TRUE(detector.IsBad(period, x, 2 + bound + 1e-9, 0.1));
  EXPECT_TRUE(detector.IsBad(period, x, 2 - bound - 1e-9, 0.1));
}

TEST(WindowDetectorTest, TheoreticalBoundIsThePapersFormula) {
  Period period = MakePeriod(0.5, 20);
  period.Observe(std::vector<double>{1, 0}, 3);
  const WindowDetector detector({.ridge = 0.5, .fixed_alpha = false, .delta = 0.1, .delta1 = 0.01});
  const double alpha =
      0.1 * std::sqrt(2 * std::log(1 + 1 / (2 * 0.5)) + 2 * std::log(100)) + std::sqrt(0.5);
  const double bound = alpha * std::sqrt(1 / 1.5) + 0.16448536269514727;
  const std::vector<double> x = {1, 0};
  EXPECT_FALSE(detector.IsBad(period, x, 2 + bound - 1e-9, 0.1));
  EXPECT_TRUE(detector.IsBad(period, x, 2 + bound + 1e-9, 0.1));
}

TEST(WindowDetectorTest, FiresByHoeffdingsBoundOverTheWindow) {
  // δ1 + sqrt(ln(1/δ2)/(2w)): 0.2499 for w = 20, 1.08 for w = 1, 0.769 for w = 2.
  const WindowDetector detector({.delta1 = 0.01, .delta2 = 0.1, .tau = 20});
  Period period = MakePeriod(0.1, 20);
  FlagWindow& flags = period.paper->badness;
  EXPECT_FALSE(detector.Fires(period));
  flags.Push(true);
  EXPECT_FALSE(detector.Fires(period));  // 1 of 1
  flags.Push(true);
  EXPECT_TRUE(detector.Fires(period));  // 2 of 2
  flags.Clear();
  for (int i = 0; i < 16; ++i) flags.Push(false);
  for (int i = 0; i < 4; ++i) flags.Push(true);
  EXPECT_FALSE(detector.Fires(period));  // 4 of 20
  flags.Push(true);
  EXPECT_TRUE(detector.Fires(period));  // 5 of 20
}

TEST(FlagWindowTest, CountsTheLastOnesOnly) {
  FlagWindow flags(3);
  for (const bool flag : {true, true, false, false}) flags.Push(flag);
  EXPECT_EQ(flags.size(), 3U);
  EXPECT_EQ(flags.raised(), 1U);
  flags.Push(false);
  EXPECT_EQ(flags.raised(), 0U);
}

TEST(RecentObservationsTest, KeepsTheLastOnes) {
  RecentObservations recent(1, 2);
  for (const double r : {1.0, 2.0, 3.0}) recent.Push(std::vector<double>{10 * r}, r);
  EXPECT_EQ(recent.size(), 2U);
  EXPECT_EQ(recent.rewards()[0] + recent.rewards()[1], 5);
  EXPECT_EQ(recent.features()[0], 10 * recent.rewards()[0]);
  EXPECT_EQ(recent.features()[1], 10 * recent.rewards()[1]);
}

}  // namespace
}  // namespace codband
