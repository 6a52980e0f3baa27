#include "codband/policy/codband/observation_limits.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "codband/base/random.h"

namespace codband {
namespace {

constexpr std::size_t kPlane = 2;

// Limits that have seen `count` observations of length and reward around 1, each of another user.
ObservationLimits Accustomed(int count, double unit = 1) {
  ObservationLimits limits;
  RandomStream random({1, 0}, 950);
  for (int i = 0; i < count; ++i) {
    std::vector<double> x = {unit * random.Normal(), unit * random.Normal(), 1};
    double r = unit * random.Normal();
    limits.Limit(x, kPlane, r, 0);
  }
  return limits;
}

TEST(ObservationLimitsTest, WhatIsUsualIsNotTouched) {
  ObservationLimits limits;
  RandomStream random({1, 0}, 951);
  for (int i = 0; i < 100'000; ++i) {
    const std::vector<double> x = {random.Normal(), random.Normal(), 1};
    const double r = random.Normal();
    std::vector<double> limited = x;
    double limited_r = r;
    ASSERT_FALSE(limits.Limit(limited, kPlane, limited_r, static_cast<std::uint64_t>(i % 100)));
    ASSERT_EQ(limited, x);
    ASSERT_EQ(limited_r, r);
  }
}

TEST(ObservationLimitsTest, LargeRewardsEndAtTheLimitInAnyUnit) {
  for (const double unit : {1e-9, 1.0, 1e9}) {
    for (const double size : {1e2, 1e6}) {
      for (const double sign : {-1.0, 1.0}) {
        ObservationLimits limits = Accustomed(500, unit);
        std::vector<double> x = {unit, 0, 1};
        double r = sign * size * unit;
        EXPECT_TRUE(limits.Limit(x, kPlane, r, 0));
        EXPECT_EQ(std::signbit(r), sign < 0);
        EXPECT_GT(std::abs(r), 4 * unit);
        EXPECT_LT(std::abs(r), 24 * unit);
        EXPECT_EQ(x, (std::vector<double>{unit, 0, 1}));
      }
    }
  }
}

TEST(ObservationLimitsTest, LongFeaturesBecomeUsualOnesOfTheSameParameter) {
  ObservationLimits limits = Accustomed(500);
  std::vector<double> x = {3e8, -4e8, 1};
  double r = 2;
  EXPECT_TRUE(limits.Limit(x, kPlane, r, 0));
  const double length = std::hypot(x[0], x[1]);
  EXPECT_GT(length, 0.5);
  EXPECT_LT(length, 4);
  // All by the same factor: what it says of the parameter is the same.
  EXPECT_NEAR(x[1] / x[0], -4.0 / 3, 1e-12);
  EXPECT_NEAR(x[2] / x[0], 1 / 3e8, 1e-20);
  EXPECT_NEAR(r / x[0], 2 / 3e8, 1e-20);
}

TEST(ObservationLimitsTest, TenObservationsAreEnoughToKnowWhatIsFarBeyond) {
  ObservationLimits limits = Accustomed(10);
  std::vector<double> x = {1e9, 1e9, 1};
  double r = 1;
  EXPECT_TRUE(limits.Limit(x, kPlane, r, 0));
  EXPECT_LT(std::hypot(x[0], x[1]), 10);
}

TEST(ObservationLimitsTest, NoUserDecidesWhatIsUsual) {
  ObservationLimits limits = Accustomed(600);
  for (std::uint64_t i = 0; i < 5000; ++i) {
    std::vector<double> x = {1e6, 0, 1};
    double r = 1e6;
    limits.Limit(x, kPlane, r, i);
  }
  std::vector<double> x = {1, 0, 1};
  double r = 1e6;
  EXPECT_TRUE(limits.Limit(x, kPlane, r, 0));
  EXPECT_LT(r, 100);
}

TEST(ObservationLimitsTest, AnotherUnitIsUsualOnceManyUsersHaveIt) {
  ObservationLimits limits = Accustomed(1000);
  double r = 0;
  for (int i = 0; i < 1200; ++i) {
    std::vector<double> x = {1, 0, 1};
    r = 1000;
    limits.Limit(x, kPlane, r, 0);
  }
  EXPECT_EQ(r, 1000);
}

TEST(ObservationLimitsTest, ZerosSayNothing) {
  ObservationLimits limits;
  for (int i = 0; i < 1000; ++i) {
    std::vector<double> x = {0, 0, 1};
    double r = 0;
    EXPECT_FALSE(limits.Limit(x, kPlane, r, 0));
  }
  std::vector<double> x = {1, 0, 1};
  double r = 1;  // the first click
  EXPECT_FALSE(limits.Limit(x, kPlane, r, 0));
  EXPECT_EQ(r, 1);
}

TEST(ObservationLimitsTest, SaveLoadGoesOnAlike) {
  ObservationLimits limits = Accustomed(100'000);  // more than are counted at once
  ByteWriter out;
  limits.Save(out);
  ByteReader in(out.bytes());
  ObservationLimits restored;
  restored.Load(in);
  in.ExpectEnd();
  ASSERT_TRUE(in.ok()) << in.status().ToString();
  std::vector<double> x = {1e3, 0, 1};
  std::vector<double> y = x;
  double r = 1e3;
  double s = r;
  EXPECT_TRUE(limits.Limit(x, kPlane, r, 0));
  EXPECT_TRUE(restored.Limit(y, kPlane, s, 0));
  EXPECT_EQ(x, y);
  EXPECT_EQ(r, s);
}

}  // namespace
}  // namespace codband
