#include "codband/policy/codband/window_detector.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

namespace codband {
namespace {

TEST(WindowDetectorTest, BadnessComparesTheErrorWithWidthAndNoise) {
  WindowTestState state(2, 0.5, 20);
  state.own_regression.Add(std::vector<double>{1, 0}, 3);
  // λI + S = diag(1.5, 0.5): θ̂ = (2, 0), width of x = (1, 0) is sqrt(1/1.5).
  const WindowTest test({.ridge = 0.5, .alpha = 0.6, .delta = 0.1});
  const double epsilon = 0.16448536269514727;  // the 95% quantile of N(0, 0.1²)
  const double bound = 0.6 * std::sqrt(1 / 1.5) + epsilon;
  const std::vector<double> x = {1, 0};
  EXPECT_FALSE(test.IsBad(state, x, 2 + bound - 1e-9, 0.1));
  EXPECT_TRUE(test.IsBad(state, x, 2 + bound + 1e-9, 0.1));
  EXPECT_TRUE(test.IsBad(state, x, 2 - bound - 1e-9, 0.1));
}

TEST(WindowDetectorTest, TheoreticalBoundIsThePapersFormula) {
  WindowTestState state(2, 0.5, 20);
  state.own_regression.Add(std::vector<double>{1, 0}, 3);
  const WindowTest test({.ridge = 0.5, .fixed_alpha = false, .delta = 0.1, .delta1 = 0.01});
  const double alpha =
      0.1 * std::sqrt(2 * std::log(1 + 1 / (2 * 0.5)) + 2 * std::log(100)) + std::sqrt(0.5);
  const double bound = alpha * std::sqrt(1 / 1.5) + 0.16448536269514727;
  const std::vector<double> x = {1, 0};
  EXPECT_FALSE(test.IsBad(state, x, 2 + bound - 1e-9, 0.1));
  EXPECT_TRUE(test.IsBad(state, x, 2 + bound + 1e-9, 0.1));
}

TEST(WindowDetectorTest, FiresByHoeffdingsBoundOverTheWindow) {
  // δ1 + sqrt(ln(1/δ2)/(2w)): 0.2499 for w = 20, 1.08 for w = 1, 0.769 for w = 2.
  const WindowTest test({.delta1 = 0.01, .delta2 = 0.1, .tau = 20});
  WindowTestState state(2, 0.1, 20);
  FlagWindow& flags = state.badness;
  EXPECT_FALSE(test.Fires(state));
  flags.Push(true);
  EXPECT_FALSE(test.Fires(state));  // 1 of 1
  flags.Push(true);
  EXPECT_TRUE(test.Fires(state));  // 2 of 2
  flags.Clear();
  for (int i = 0; i < 16; ++i) flags.Push(false);
  for (int i = 0; i < 4; ++i) flags.Push(true);
  EXPECT_FALSE(test.Fires(state));  // 4 of 20
  flags.Push(true);
  EXPECT_TRUE(test.Fires(state));  // 5 of 20
}

TEST(WindowDetectorTest, ClosingThePeriodEmptiesTheState) {
  WindowTestState state(2, 0.5, 20);
  state.own_regression.Add(std::vector<double>{1, 0}, 3);
  state.badness.Push(true);
  state.PeriodClosed();
  EXPECT_EQ(state.own_regression.stats().m(), 0U);
  EXPECT_EQ(state.badness.size(), 0U);
}

TEST(WindowDetectorTest, StateThatDoesNotFitItsPeriodIsAFault) {
  Period period{.data = linalg::SufficientStats(2)};
  WindowTestState state(2, 0.5, 20);
  EXPECT_EQ(state.Fault(period), "");
  state.badness.Push(true);
  EXPECT_EQ(state.Fault(period),
            "the current period has 0 observations, 1 flags and 0 recent ones");
  const std::vector<double> x = {1, 0};
  period.Observe(x, 3);
  EXPECT_NE(state.Fault(period), "");  // the regression lacks it
  state.own_regression.Add(x, 3);
  EXPECT_EQ(state.Fault(period), "");
  period.recent = std::make_unique<RecentObservations>(2, 5);
  EXPECT_NE(state.Fault(period), "");
  period.recent->Push(x, 3);
  EXPECT_EQ(state.Fault(period), "");
}

}  // namespace
}  // namespace codband
