#include "codband/policy/codband/crp.h"

#include <gtest/gtest.h>

#include <cmath>

namespace codband {
namespace {

ModelPool PoolWith(std::initializer_list<std::uint64_t> periods) {
  ModelPool pool(2, 1, 1);
  for (const std::uint64_t n : periods) pool.AddPeriods(pool.Create(), n, SufficientStats(2));
  return pool;
}

TEST(CrpTest, DrawsModelsByPopularityAndNewOnesByConcentration) {
  const ModelPool pool = PoolWith({6, 1});
  RandomStream random({1, 1}, 1);
  constexpr int kDraws = 100'000;
  int counts[3] = {};
  for (int i = 0; i < kDraws; ++i) ++counts[DrawFromCrp(pool, 3, random).value_or(2)];
  EXPECT_NEAR(counts[0] / double{kDraws}, 0.6, 0.01);
  EXPECT_NEAR(counts[1] / double{kDraws}, 0.1, 0.01);
  EXPECT_NEAR(counts[2] / double{kDraws}, 0.3, 0.01);
}

TEST(CrpTest, EmptyPoolAlwaysGivesANewModel) {
  RandomStream random({1, 1}, 1);
  EXPECT_FALSE(DrawFromCrp(PoolWith({}), 0.1, random).has_value());
}

TEST(CrpTest, OwnPeriodDoesNotCount) {
  const ModelPool pool = PoolWith({6, 1});
  std::vector<double> weights = {10, 20, 30};
  AddCrpLogWeights(pool, 3, 1, weights);
  EXPECT_DOUBLE_EQ(weights[0], 10 + std::log(6));
  EXPECT_EQ(weights[1], -INFINITY);
  EXPECT_DOUBLE_EQ(weights[2], 30 + std::log(3));
}

TEST(CrpTest, ConcentrationStaysPositiveUnderATinyPrior) {
  RandomStream random({3, 1}, 1);
  double alpha = 1;
  for (int i = 0; i < 10'000; ++i) {
    alpha = ResampleConcentration(alpha, 1, 1, 1e-3, 1, random);
    ASSERT_GT(alpha, 0);
  }
}

TEST(CrpTest, ConcentrationFollowsItsPosterior) {
  // p(α | K, n) ∝ Gamma(α; a, b) α^K Γ(α)/Γ(α+n) (Escobar & West 1995, eq. 10–12), its mean by
  // numerical integration, against the mean of a long Gibbs chain.
  constexpr double kA = 7.5;
  constexpr double kB = 1;
  constexpr std::uint64_t kModels = 6;
  constexpr std::uint64_t kPeriods = 150;
  double mass = 0;
  double first_moment = 0;
  for (double alpha = 0.0005; alpha < 30; alpha += 0.001) {
    const double density = std::exp((kA - 1 + kModels) * std::log(alpha) - kB * alpha +
                                    std::lgamma(alpha) - std::lgamma(alpha + kPeriods) + 700);
    mass += density;
    first_moment += alpha * density;
  }
  RandomStream random({2, 1}, 1);
  double alpha = 1;
  double sum = 0;
  constexpr int kSteps = 200'000;
  for (int i = 0; i < kSteps; ++i) {
    alpha = ResampleConcentration(alpha, kModels, kPeriods, kA, kB, random);
    sum += alpha;
  }
  EXPECT_NEAR(sum / kSteps, first_moment / mass, 0.01);
}

}  // namespace
}  // namespace codband
