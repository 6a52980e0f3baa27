#include "codband/base/parse.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace codband {
namespace {

TEST(ParseTest, ParsesWholeTexts) {
  EXPECT_EQ(ParseNumber<std::uint64_t>("18446744073709551615"), ~std::uint64_t{0});
  EXPECT_EQ(ParseNumber<double>("-0.25"), -0.25);
  EXPECT_EQ(ParseNumber<double>("1e-3"), 1e-3);
}

TEST(ParseTest, AnythingElseIsNone) {
  for (const char* text : {"", " 1", "1 ", "1x", "x", "+1", "-1", "1.5", "18446744073709551616"}) {
    EXPECT_EQ(ParseNumber<std::uint64_t>(text), std::nullopt) << text;
  }
  for (const char* text : {"", " 1", "1,5", "1e", "1e999", "--1"}) {
    EXPECT_EQ(ParseNumber<double>(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace codband
