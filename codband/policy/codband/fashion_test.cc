#include "codband/policy/codband/fashion.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

namespace codband {
namespace {

constexpr double kCalm = 1.0 / 4000;
// Of a visit without a click, and with one: liked items are clicked with chance 0.6, others 0.05.
constexpr double kMiss = 0.95 / 0.4;
constexpr double kClick = 0.05 / 0.6;

TEST(FashionTest, NothingSeenIsCalmExactly) {
  EXPECT_EQ(Fashion().Hazard(kCalm), kCalm);
  EXPECT_EQ(Fashion().Hazard(0.2), 0.2);
}

// Two visits against all four paths of the hidden states, straight from the definition.
TEST(FashionTest, TwoVisitsEqualTheSumOverAllPaths) {
  constexpr std::uint64_t kUsers = 5;
  const std::vector<double> ratios = {kMiss, kClick, kMiss};
  const double length = 3.0 * kUsers;
  const std::vector<double> levels = {kCalm, 0.03, 0.1, 0.3};
  const auto next = [&](std::size_t from, std::size_t to) {
    double begins = 0;
    for (std::size_t i = 1; i < levels.size(); ++i) begins += kCalm / (length * levels[i] * 3);
    if (from == 0) return to == 0 ? 1 - begins : kCalm / (length * levels[to] * 3);
    if (to == 0) return 1 / length;
    return to == from ? 1 - 1 / length : 0.0;
  };
  std::vector<double> joint = {1, 0, 0, 0};
  Fashion fashion;
  for (const double ratio : ratios) {
    fashion.Weigh(kCalm, ratio, kUsers);
    std::vector<double> after(levels.size());
    for (std::size_t from = 0; from < levels.size(); ++from) {
      const double weight = joint[from] * (1 - levels[from] + levels[from] * ratio);
      for (std::size_t to = 0; to < levels.size(); ++to) after[to] += weight * next(from, to);
    }
    joint = after;
    double sum = 0;
    double expected = 0;
    for (std::size_t i = 0; i < levels.size(); ++i) {
      sum += joint[i];
      expected += joint[i] * levels[i];
    }
    EXPECT_NEAR(fashion.Hazard(kCalm), expected / sum, 1e-6 * kCalm);
  }
}

TEST(FashionTest, AThirdOfAllUsersIsSeenWithinTwoRoundsAndEndsByItself) {
  constexpr std::uint64_t kUsers = 200;
  Fashion fashion;
  // Two in five visits without a click: nobody changes.
  const auto play = [&](int visits, int misses_of_30) {
    for (int i = 0; i < visits; ++i) {
      fashion.Weigh(kCalm, i * 7 % 30 < misses_of_30 ? kMiss : kClick, kUsers);
    }
  };
  play(20 * kUsers, 12);
  const double usual = fashion.Hazard(kCalm);
  EXPECT_LT(usual, 3 * kCalm);
  // A third of them misses 19 in 20 visits: 0.583 of all.
  play(2 * kUsers, 18);
  EXPECT_GT(fashion.Hazard(kCalm), 0.05);
  play(20 * kUsers, 12);
  EXPECT_LT(fashion.Hazard(kCalm), 3 * kCalm);
}

TEST(FashionTest, IsReadBackAndRefusedIfItIsNoChance) {
  Fashion fashion;
  for (int i = 0; i < 30; ++i) fashion.Weigh(kCalm, kMiss, 10);
  ByteWriter out;
  fashion.Save(out);
  Fashion loaded;
  ByteReader in(out.bytes());
  loaded.Load(in);
  ASSERT_TRUE(in.ok());
  EXPECT_EQ(loaded.Hazard(kCalm), fashion.Hazard(kCalm));
  EXPECT_GT(loaded.Hazard(kCalm), 2 * kCalm);
  for (const double chance : {-0.1, 0.5}) {
    ByteWriter wrong;
    wrong.Doubles(std::vector<double>(Fashion::kLevels.size(), chance));
    ByteReader read(wrong.bytes());
    loaded.Load(read);
    EXPECT_FALSE(read.ok()) << chance;
  }
}

TEST(FashionTest, ARatioThatIsNoNumberSaysNothing) {
  Fashion fashion;
  fashion.Weigh(kCalm, std::nan(""), 10);
  fashion.Weigh(kCalm, HUGE_VAL, 10);
  EXPECT_EQ(fashion.Hazard(kCalm), kCalm);
}

}  // namespace
}  // namespace codband
