#include "codband/policy/codband/column_scales.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "codband/base/random.h"
#include "codband/policy/test_support.h"

namespace codband {
namespace {

using enum ColumnScales::Judged;

std::string BytesOf(const ColumnScales& scales) {
  ByteWriter out;
  scales.Save(out);
  return out.Take();
}

// A name, a rating around 0, a price in cents and a year.
std::vector<double> Item(RandomStream& random) {
  return {random.Uniform() < 0.3 ? 1.0 : 0.0, random.Normal(), 500 + 4000 * random.Uniform(),
          1990 + 10 * random.Normal()};
}

TEST(ColumnScalesTest, ComparableSizesAreLeftAlone) {
  RandomStream random({1, 0}, 800);
  ColumnScales scales(3, kSizesAndCentres);
  for (int i = 0; i < 2000; ++i) {
    EXPECT_FALSE(scales.Observe(
        std::vector<double>{random.Normal(), 0.2 * random.Normal(), 3 * random.Normal()}, true));
  }
  EXPECT_TRUE(scales.weights().empty());
  EXPECT_FALSE(scales.shifts());
  EXPECT_EQ(scales.active(), 3U);
}

TEST(ColumnScalesTest, UnitsAreTakenOutAndYearsAreCentred) {
  RandomStream random({2, 0}, 800);
  ColumnScales scales(4, kSizesAndCentres);
  std::vector<double> item = Item(random);
  scales.Observe(item, true);
  scales.Shift(item);
  EXPECT_EQ(item[2], 0) << "not looked at yet";
  for (int i = 0; i < 60; ++i) scales.Observe(Item(random), true);
  ASSERT_EQ(scales.weights().size(), 4U);
  EXPECT_EQ(scales.weights()[0], 1);
  EXPECT_EQ(scales.weights()[1], 1);
  // Divided by their root, within a factor of two of a name.
  EXPECT_NEAR(std::log2(2500 * std::sqrt(scales.weights()[2])), 0, 1.5);
  EXPECT_NEAR(std::log2(7 * std::sqrt(scales.weights()[3])), 0, 1.5);
  double year = 0;
  for (int i = 0; i < 100; ++i) {
    std::vector<double> seen = Item(random);
    const std::vector<double> given = seen;
    scales.Shift(seen);
    EXPECT_EQ(seen[0], given[0]);
    EXPECT_EQ(seen[2], given[2]);  // not far from 0, as prices differ
    year += seen[3] / 100;
  }
  EXPECT_LT(std::abs(year), 15);
  // The same prediction from what is given and from what models see.
  const std::vector<double> theta = {1, 2, 0.001, 0.05};
  std::vector<double> seen = Item(random);
  const std::vector<double> given = seen;
  scales.Shift(seen);
  EXPECT_NEAR(linalg::Dot(given, theta) + scales.ShiftedIntercept(theta), linalg::Dot(seen, theta),
              1e-9);
  // A year that is missing is an average one.
  seen = {0, 1, 1000, 0};
  scales.Shift(seen);
  EXPECT_EQ(seen, (std::vector<double>{0, 1, 1000, 0}));
}

TEST(ColumnScalesTest, OneOutlierDecidesNothingAndOtherUnitsAreNoticedLater) {
  ColumnScales scales(2, kSizes);
  RandomStream random({3, 0}, 800);
  const auto observe = [&](double unit, int times) {
    bool changed = false;
    for (int i = 0; i < times; ++i) {
      changed |= scales.Observe(std::vector<double>{random.Normal(), unit * random.Normal()}, true);
    }
    return changed;
  };
  scales.Observe(std::vector<double>{1, 1e12}, true);
  EXPECT_FALSE(observe(1, 200));
  EXPECT_TRUE(observe(1e4, 900));
  EXPECT_LT(scales.weights()[1], 1e-6);
  EXPECT_EQ(scales.weights()[0], 1);
}

// Where one vector is chosen nearly always, its values say nothing of the column's unit.
TEST(ColumnScalesTest, AValueThatHappensToBeSmallInTheUsualVectorIsNoUnit) {
  ColumnScales scales(3, kSizes);
  for (int i = 0; i < 300; ++i) {
    const bool other = i % 10 == 3;
    scales.Observe(
        other ? std::vector<double>{0.1, -0.3, 0.5} : std::vector<double>{0.4, 0.3, 1e-3}, true);
  }
  EXPECT_TRUE(scales.weights().empty());
  // Others come after it was judged.
  ColumnScales late(3, kSizes);
  for (int i = 0; i < 100; ++i) late.Observe(std::vector<double>{0.4, 0.3, 1e-3}, true);
  ASSERT_FALSE(late.weights().empty());
  for (int i = 0; i < 20; ++i) late.Observe(std::vector<double>{0.1, -0.3, 0.5}, true);
  EXPECT_TRUE(late.weights().empty());
}

TEST(ColumnScalesTest, NothingIsJudgedWhereUnitsAreGiven) {
  ColumnScales scales(2, kNothing);
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(scales.Observe(std::vector<double>{0, 1987}, true));
  }
  EXPECT_FALSE(scales.shifts());
  EXPECT_TRUE(scales.weights().empty());
  EXPECT_EQ(scales.active(), 1U);
}

TEST(ColumnScalesTest, SaveLoadIsExactAtAnyTimeAndAfterGrowth) {
  RandomStream random({4, 0}, 800);
  ColumnScales scales(4, kSizesAndCentres);
  for (int i = 0; i < 90; ++i) {
    const std::string bytes = BytesOf(scales);
    ColumnScales restored(6, kSizesAndCentres);
    ByteReader in(bytes);
    restored.Load(in);
    in.ExpectEnd();
    ASSERT_TRUE(in.ok()) << in.status().ToString();
    ASSERT_EQ(BytesOf(restored), bytes);
    std::vector<double> item = Item(random);
    scales.Observe(item, true);
    item.resize(6);
    restored.Observe(item, true);
    ASSERT_EQ(BytesOf(restored), BytesOf(scales)) << i;
  }
  scales.Grow(6);
  EXPECT_EQ(scales.weights()[5], 1);
  const std::string bytes = BytesOf(scales);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    ColumnScales cut(6, kSizesAndCentres);
    ByteReader in(std::string_view(bytes).substr(0, size));
    cut.Load(in);
    EXPECT_FALSE(in.ok()) << size;
  }
}

// 30 users of three tastes who click on items by category, price and year. How often they click
// from the second half of 60 visits on, whatever the units.
double ClickRate(const std::string& spec, double price_unit, double year_from, double constant,
                 std::uint64_t seed) {
  constexpr std::size_t kDim = 8;
  constexpr std::size_t kArms = 10;
  constexpr UserId kUsers = 30;
  const auto policy = MakeOrDie(spec, {.dim = kDim});
  double clicks = 0;
  int counted = 0;
  for (std::uint64_t event = 0; event < 60 * kUsers; ++event) {
    RandomStream random({seed, event}, 801);
    const UserId user = event % kUsers;
    std::vector<double> arms;
    std::vector<double> chances;
    for (std::size_t i = 0; i < kArms; ++i) {
      const std::size_t category = random.Below(5);
      const double price = random.Uniform();
      const double year = random.Normal();
      for (std::size_t c = 0; c < 5; ++c) arms.push_back(c == category ? 1 : 0);
      arms.push_back(price_unit * (0.2 + price));
      arms.push_back(year_from + (year_from == 0 ? 1 : 12) * year);
      arms.push_back(constant);
      const double taste = category == user % 3 ? 0.35 : 0;
      chances.push_back(0.1 + taste + 0.25 * (1 - price) +
                        (year > 0 ? 0.25 : 0) * (user % 3 == 1 ? -0.3 : 1));
    }
    const Decision decision = policy->Choose(user, {arms, kDim}, {seed, event});
    const bool click = random.Uniform() < chances[decision.arm];
    policy->Learn(decision, click ? 1 : 0, {seed, event});
    if (event < 30 * kUsers) continue;
    clicks += chances[decision.arm];
    ++counted;
  }
  return clicks / counted;
}

TEST(ColumnScalesTest, NoUnitMatters) {
  double tidy = 0;
  double raw = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    tidy += ClickRate("codband", 1, 0, 0, seed) / 20;
    raw += ClickRate("codband", 5000, 1987, 1000, seed) / 20;
  }
  EXPECT_GT(tidy, 0.55);
  EXPECT_NEAR(raw / tidy, 1, 0.02);
}

}  // namespace
}  // namespace codband
