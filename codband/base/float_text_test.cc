#include "codband/base/float_text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <string>

#include "codband/base/random.h"

namespace codband {
namespace {

std::string Written(float value) {
  char text[32];
  return {text, WriteShortest(text, value)};
}

void ExpectAsFmt(float value) {
  ASSERT_EQ(Written(value), fmt::format("{}", value)) << std::bit_cast<std::uint32_t>(value);
  ASSERT_EQ(Written(-value), fmt::format("{}", -value));
}

TEST(FloatTextTest, FewDigitsAreNotMadeMore) {
  EXPECT_EQ(Written(0), "0");
  EXPECT_EQ(Written(1), "1");
  EXPECT_EQ(Written(-0.1F), "-0.1");
  EXPECT_EQ(Written(0.3F), "0.3");
  EXPECT_EQ(Written(1234.5F), "1234.5");
  EXPECT_EQ(Written(9999999), "9999999");
  EXPECT_EQ(Written(1e-4F), "0.0001");
  EXPECT_EQ(Written(1e-5F), "1e-05");
}

TEST(FloatTextTest, EveryBitPatternIsWrittenAsFmtWritesIt) {
  RandomStream random({1, 0}, 930);
  for (int i = 0; i < 200'000; ++i) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isfinite(value)) ExpectAsFmt(value);
  }
}

TEST(FloatTextTest, NumbersOfUsualSizeAreWrittenAsFmtWritesThem) {
  RandomStream random({2, 0}, 930);
  for (int i = 0; i < 200'000; ++i) {
    ExpectAsFmt(static_cast<float>(random.Normal()));
    ExpectAsFmt(static_cast<float>(std::exp(5 * random.Normal())));
    // Few digits, and their neighbours.
    const float few = static_cast<float>(static_cast<double>(random.Below(100'000)) / 1000);
    ExpectAsFmt(few);
    ExpectAsFmt(std::nextafter(few, 0.0F));
    ExpectAsFmt(std::nextafter(few, 1e9F));
  }
}

TEST(FloatTextTest, PowersAndTheirNeighboursAreWrittenAsFmtWritesThem) {
  for (const double base : {2.0, 10.0}) {
    for (int exponent = -30; exponent < 31; ++exponent) {
      auto value = static_cast<float>(std::pow(base, exponent));
      for (int i = 0; i < 5; ++i) value = std::nextafter(value, 0.0F);
      for (int i = 0; i < 10; ++i, value = std::nextafter(value, 1e38F)) ExpectAsFmt(value);
    }
  }
}

}  // namespace
}  // namespace codband
