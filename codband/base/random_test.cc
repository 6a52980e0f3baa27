#include "codband/base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

namespace codband {
namespace {

constexpr int kDraws = 200'000;

struct Moments {
  double mean = 0;
  double variance = 0;
};

template <typename Draw>
Moments MomentsOf(const Draw& draw) {
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = draw();
    sum += x;
    squares += x * x;
  }
  const double mean = sum / kDraws;
  return {mean, squares / kDraws - mean * mean};
}

TEST(RandomStreamTest, BitsAreThePublishedPhilox4x64) {
  // Random123's known answers for philox4x64-10 with counter and key all zero.
  RandomStream random({.seed = 0, .event = 0}, 0);
  EXPECT_EQ(random(), 0x16554d9eca36314cULL);
  EXPECT_EQ(random(), 0xdb20fe9d672d0fdcULL);
  EXPECT_EQ(random(), 0xd7e772cee186176bULL);
  EXPECT_EQ(random(), 0x7e68b68aec7ba23bULL);
}

TEST(RandomStreamTest, SeedEventAndPurposeEachGiveADifferentStream) {
  const std::uint64_t base = RandomStream({1, 2}, 3)();
  EXPECT_EQ(RandomStream({1, 2}, 3)(), base);
  EXPECT_NE(RandomStream({2, 2}, 3)(), base);
  EXPECT_NE(RandomStream({1, 3}, 3)(), base);
  EXPECT_NE(RandomStream({1, 2}, 4)(), base);
}

TEST(RandomStreamTest, RealDrawsAreTheSameOnEveryPlatform) {
  RandomStream random({42, 7}, 1);
  EXPECT_DOUBLE_EQ(random.Normal(), 0.7407475854447888);
  EXPECT_DOUBLE_EQ(random.Gamma(2.5), 0.80115027098557201);
  EXPECT_DOUBLE_EQ(random.Beta(2, 3), 0.21912141183407668);
  EXPECT_EQ(random.Categorical(std::vector{1.0, 2.0, 3.0}), 2U);
}

TEST(RandomStreamTest, BelowCoversItsRangeEvenly) {
  RandomStream random({1, 1}, 1);
  std::vector<int> counts(7);
  for (int i = 0; i < 70'000; ++i) ++counts.at(random.Below(7));
  double chi_square = 0;
  for (const int count : counts) chi_square += std::pow(count - 10'000, 2) / 10'000.0;
  EXPECT_LT(chi_square, 22.5);  // 6 degrees of freedom, p = 0.001
}

TEST(RandomStreamTest, ShuffleIsUniformOverPermutations) {
  RandomStream random({.seed = 8, .event = 1}, 0);
  std::map<std::vector<int>, int> counts;
  for (int i = 0; i < 60'000; ++i) {
    std::vector<int> items = {1, 2, 3, 4};
    random.Shuffle(std::span(items));
    ++counts[items];
  }
  EXPECT_EQ(counts.size(), 24U);
  for (const auto& [order, count] : counts) EXPECT_NEAR(count, 2500, 250);  // 5 σ
}

TEST(RandomStreamTest, NormalHasItsMomentsAndTails) {
  RandomStream random({2, 1}, 1);
  const Moments moments = MomentsOf([&] { return random.Normal(); });
  EXPECT_NEAR(moments.mean, 0, 0.01);
  EXPECT_NEAR(moments.variance, 1, 0.02);
  int beyond_two = 0;
  for (int i = 0; i < kDraws; ++i) beyond_two += std::abs(random.Normal()) > 2;
  EXPECT_NEAR(beyond_two / double{kDraws}, 0.0455, 0.003);
}

TEST(RandomStreamTest, GammaHasMeanAndVarianceOfItsShape) {
  for (const double shape : {0.3, 1.0, 7.5, 120.0}) {
    RandomStream random({3, 1}, 1);
    const Moments moments = MomentsOf([&] { return random.Gamma(shape); });
    EXPECT_NEAR(moments.mean / shape, 1, 0.02) << shape;
    EXPECT_NEAR(moments.variance / shape, 1, 0.05) << shape;
  }
}

TEST(RandomStreamTest, BetaHasItsMoments) {
  RandomStream random({4, 1}, 1);
  const Moments moments = MomentsOf([&] { return random.Beta(2, 6); });
  EXPECT_NEAR(moments.mean, 0.25, 0.003);
  EXPECT_NEAR(moments.variance, 2 * 6 / (64.0 * 9), 0.001);
}

TEST(RandomStreamTest, CategoricalFollowsItsWeights) {
  RandomStream random({5, 1}, 1);
  std::vector<int> counts(4);
  for (int i = 0; i < kDraws; ++i) ++counts[random.Categorical(std::vector{1.0, 0.0, 2.0, 5.0})];
  EXPECT_EQ(counts[1], 0);
  EXPECT_NEAR(counts[0] / double{kDraws}, 0.125, 0.005);
  EXPECT_NEAR(counts[3] / double{kDraws}, 0.625, 0.005);
}

TEST(RandomStreamTest, CategoricalFromLogNormalisesHugeAndTinyWeights) {
  RandomStream random({6, 1}, 1);
  std::vector<double> log_weights = {-5000, -5000 + std::log(3.0), -INFINITY};
  const std::size_t drawn = random.CategoricalFromLog(log_weights);
  EXPECT_LT(drawn, 2U);
  EXPECT_NEAR(log_weights[0], 0.25, 1e-12);
  EXPECT_NEAR(log_weights[1], 0.75, 1e-12);
  EXPECT_EQ(log_weights[2], 0);
}

}  // namespace
}  // namespace codband
