#include "codband/experiments/theory_check.h"

#include <gtest/gtest.h>

namespace codband::experiments {
namespace {

TEST(FitLineTest, PointsOnALineGiveItBack) {
  const LineFit fit = FitLine({1, 2, 5}, {5, 7, 13});
  EXPECT_DOUBLE_EQ(fit.slope, 2);
  EXPECT_NEAR(fit.intercept, 3, 1e-12);
  EXPECT_NEAR(fit.r_squared, 1, 1e-12);
}

TEST(FitLineTest, ScatterEqualsTheNormalEquations) {
  // x = 0, 1, 2, 3; y = 1, 0, 2, 2: slope 0.5, intercept 0.5, r² = 2.5²/(5·2.75).
  const LineFit fit = FitLine({0, 1, 2, 3}, {1, 0, 2, 2});
  EXPECT_DOUBLE_EQ(fit.slope, 0.5);
  EXPECT_NEAR(fit.intercept, 0.5, 1e-12);
  EXPECT_DOUBLE_EQ(fit.r_squared, 6.25 / 13.75);
}

}  // namespace
}  // namespace codband::experiments
