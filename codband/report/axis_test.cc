#include "codband/report/axis.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "codband/report/test_support.h"

namespace codband::report {
namespace {

std::vector<std::string> Labels(const Axis& axis, int most) {
  std::vector<std::string> labels;
  for (const Tick& tick : axis.Ticks(most)) labels.push_back(tick.label);
  return labels;
}

using Strings = std::vector<std::string>;

TEST(AxisTest, DrawableDependsOnTheScale) {
  EXPECT_TRUE(Drawable(-1, Scale::kLinear));
  EXPECT_TRUE(Drawable(1e-9, Scale::kLog));
  for (const double bad : {kNan, kInf, -kInf, 1e308}) {
    EXPECT_FALSE(Drawable(bad, Scale::kLinear));
    EXPECT_FALSE(Drawable(bad, Scale::kLog));
  }
  EXPECT_FALSE(Drawable(0, Scale::kLog));
  EXPECT_FALSE(Drawable(-1, Scale::kLog));
}

TEST(AxisTest, LinearTicksAreOneTwoFiveAndEvenlySpaced) {
  for (const double low : {-3.7, 0.0, 12.0, 1e-5, 99990.0}) {
    for (const double span : {1e-3, 0.7, 8.0, 1234.5, 3e7}) {
      for (int most = 2; most <= 10; ++most) {
        const Axis axis(Scale::kLinear, low, low + span);
        const std::vector<Tick> ticks = axis.Ticks(most);
        ASSERT_GE(ticks.size(), 1u);
        ASSERT_LE(ticks.size(), static_cast<std::size_t>(most));
        if (ticks.size() < 2) continue;
        const double step = ticks[1].value - ticks[0].value;
        const double mantissa = step / std::pow(10.0, std::floor(std::log10(step) + 1e-6));
        EXPECT_TRUE(std::abs(mantissa - 1) < 1e-4 || std::abs(mantissa - 2) < 1e-4 ||
                    std::abs(mantissa - 5) < 1e-4)
            << step;
        for (std::size_t i = 0; i < ticks.size(); ++i) {
          EXPECT_NEAR(ticks[i].value, ticks[0].value + static_cast<double>(i) * step, 1e-6 * step);
          EXPECT_GE(ticks[i].value, axis.low() - 1e-6 * step);
          EXPECT_LE(ticks[i].value, axis.high() + 1e-6 * step);
          if (i > 0) {
            EXPECT_NE(ticks[i].label, ticks[i - 1].label);
          }
        }
      }
    }
  }
}

TEST(AxisTest, LinearLabelsAreReadable) {
  EXPECT_EQ(Labels({Scale::kLinear, 0, 20000}, 6),
            (Strings{"0", "5,000", "10,000", "15,000", "20,000"}));
  EXPECT_EQ(Labels({Scale::kLinear, 0, 1}, 6), (Strings{"0", "0.2", "0.4", "0.6", "0.8", "1.0"}));
  EXPECT_EQ(Labels({Scale::kLinear, 0, 200000}, 5), (Strings{"0", "50k", "100k", "150k", "200k"}));
  EXPECT_EQ(Labels({Scale::kLinear, 0, 2e6}, 5), (Strings{"0", "0.5M", "1.0M", "1.5M", "2.0M"}));
  EXPECT_EQ(Labels({Scale::kLinear, -1, 1}, 3), (Strings{"−1", "0", "1"}));
  EXPECT_EQ(Labels({Scale::kLinear, 0, 2e9}, 3), (Strings{"0", "10⁹", "2×10⁹"}));
  EXPECT_EQ(Labels({Scale::kLinear, 0, 2e-7}, 3), (Strings{"0", "10⁻⁷", "2×10⁻⁷"}));
}

TEST(AxisTest, LinearRangeIncludesZeroOnlyWhenNear) {
  EXPECT_EQ(Axis(Scale::kLinear, 10, 200).low(), 0);
  EXPECT_EQ(Axis(Scale::kLinear, -200, -10).high(), 0);
  EXPECT_GT(Axis(Scale::kLinear, 1000, 1010).low(), 990);
  EXPECT_EQ(Axis(Scale::kLinear, 1, 20000).high(), 20000);
}

TEST(AxisTest, LogTicksAreDecadesAndTwoFiveWhenShort) {
  EXPECT_EQ(Labels({Scale::kLog, 1, 20000}, 7), (Strings{"1", "10", "100", "1,000", "10,000"}));
  EXPECT_EQ(Labels({Scale::kLog, 150, 1900}, 7), (Strings{"100", "200", "500", "1,000", "2,000"}));
  EXPECT_EQ(Labels({Scale::kLog, 1e-6, 1e9}, 6),
            (Strings{"10⁻⁶", "0.001", "1", "1,000", "1M", "10⁹"}));
  EXPECT_EQ(Labels({Scale::kLog, 2, 5}, 2), (Strings{"2", "5"}));
  EXPECT_EQ(Labels({Scale::kLog, 0.1, 0.1}, 7), (Strings{"0.05", "0.1", "0.2"}));
}

TEST(AxisTest, PositionMapsTheEndsAndClamps) {
  const Axis linear(Scale::kLinear, 0, 10);
  EXPECT_DOUBLE_EQ(linear.Position(0), 0);
  EXPECT_DOUBLE_EQ(linear.Position(5), 0.5);
  EXPECT_DOUBLE_EQ(linear.Position(11), 1);
  const Axis log(Scale::kLog, 1, 10000);
  EXPECT_DOUBLE_EQ(log.Position(100), 0.5);
  EXPECT_DOUBLE_EQ(log.Position(0.01), 0);
}

TEST(AxisTest, DegenerateRangesStayUsable) {
  const double values[] = {0, 5, -5, 1e-80, -1e-300, 1e99, 1e15, kNan, kInf, -kInf, 1e308};
  for (const Scale scale : {Scale::kLinear, Scale::kLog}) {
    for (const double a : values) {
      for (const double b : {a, a + 1e-6, a * (1 + 1e-15), -a, kNan}) {
        const Axis axis(scale, a, b);
        ASSERT_TRUE(axis.low() < axis.high()) << a << " " << b;
        for (const double value : {a, b}) {
          if (!Drawable(value, scale)) continue;
          ASSERT_GE(axis.Position(value), 0);
          ASSERT_LE(axis.Position(value), 1);
        }
        for (int most = 2; most < 10; ++most) {
          const std::vector<Tick> ticks = axis.Ticks(most);
          ASSERT_FALSE(ticks.empty()) << a << " " << b;
          ASSERT_LE(ticks.size(), 12u);
          for (const Tick& tick : ticks) {
            ASSERT_TRUE(std::isfinite(axis.Position(tick.value)));
            ASSERT_EQ(tick.label.find("nan"), std::string::npos);
            ASSERT_EQ(tick.label.find("inf"), std::string::npos);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace codband::report
