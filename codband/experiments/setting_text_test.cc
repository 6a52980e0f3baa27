#include "codband/experiments/setting_text.h"

#include <gtest/gtest.h>

namespace codband::experiments {
namespace {

TEST(SettingTextTest, WholeNumbersAreReadWithinTheirRange) {
  EXPECT_EQ(ParseWhole("--n", "7", 1, 7).value(), 7U);
  for (const char* text : {"0", "8", "-1", "1.5", "", " 7", "7 ", "many"}) {
    const auto parsed = ParseWhole("--n", text, 1, 7);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.status().message(),
              "--n = '" + std::string(text) + "', expected a whole number from 1 to 7");
  }
}

TEST(SettingTextTest, RealNumbersAreReadWithinTheirRange) {
  EXPECT_EQ(ParseReal("--x", "-2.5e3").value(), -2500);
  EXPECT_EQ(ParseReal("--x", "loud").status().message(), "--x = 'loud', expected a number");
  EXPECT_EQ(ParseReal("--x", "0.5", 0, 1).value(), 0.5);
  for (const char* text : {"2", "-0.1", "nan", "x"}) {
    EXPECT_EQ(ParseReal("--x", text, 0, 1).status().message(),
              "--x = '" + std::string(text) + "', expected a number from 0 to 1");
  }
}

TEST(SettingTextTest, UnknownWordsAreAnsweredWithTheKnownOnes) {
  constexpr std::string_view kWords[] = {"a", "b", "c", "d"};
  EXPECT_EQ(ParseWord("--w", "c", kWords).value(), 2U);
  EXPECT_EQ(ParseWord("--w", "x", kWords).status().message(),
            "--w = 'x', expected one of a, b, c, d");
  EXPECT_EQ(ParseWord("--w", "x", std::span(kWords).first(3)).status().message(),
            "--w = 'x', expected a, b or c");
  EXPECT_EQ(ParseWord("--w", "", std::span(kWords).first(2)).status().message(),
            "--w = '', expected a or b");
}

TEST(SettingTextTest, AssignStoresAValueAndPassesOnAFailure) {
  std::size_t target = 3;
  EXPECT_TRUE(Assign(ParseWhole("--n", "5", 0, 9), target).ok());
  EXPECT_EQ(target, 5U);
  EXPECT_FALSE(Assign(ParseWhole("--n", "x", 0, 9), target).ok());
  EXPECT_EQ(target, 5U);
}

}  // namespace
}  // namespace codband::experiments
