#include "codband/policy/codband/model_prior.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "codband/policy/codband/codband_options.h"

namespace codband {
namespace {

ModelPool PoolWith(std::initializer_list<std::uint64_t> periods) {
  ModelPool pool(linalg::LinearPrior::Isotropic(2, 1, 1));
  for (const std::uint64_t n : periods)
    pool.AddPeriods(pool.Create(), n, linalg::SufficientStats(2));
  return pool;
}

std::vector<double> WeightsOf(const ModelPrior& prior, const ModelPool& pool,
                              const Visitor& visitor = {}) {
  std::vector<double> weights(pool.size() + 1);
  prior.Weights(pool, 3, visitor, weights);
  return weights;
}

TEST(ModelPriorTest, PopularModelsAreLikelyAndNewOnesByConcentration) {
  const std::vector<double> weights = WeightsOf(MakeCrpPrior({}), PoolWith({6, 1}));
  EXPECT_NEAR(weights[0], 0.6, 1e-15);
  EXPECT_NEAR(weights[1], 0.1, 1e-15);
  EXPECT_NEAR(weights[2], 0.3, 1e-15);
}

TEST(ModelPriorTest, EmptyPoolLeavesOnlyANewModel) {
  for (const auto make : {MakeCrpPrior, MakeHawkesPrior, MakeFriendsPrior}) {
    EXPECT_EQ(WeightsOf(make({}), PoolWith({})), std::vector<double>{1});
  }
}

TEST(ModelPriorTest, OwnPeriodDoesNotCount) {
  const std::vector<double> weights = WeightsOf(MakeCrpPrior({}), PoolWith({6, 1}), {.own = 1});
  EXPECT_NEAR(weights[0], 6.0 / 9, 1e-15);
  EXPECT_EQ(weights[1], 0);
  EXPECT_NEAR(weights[2], 3.0 / 9, 1e-15);
}

TEST(ModelPriorTest, DrawsFollowTheWeights) {
  RandomStream random({1, 1}, 1);
  constexpr int kDraws = 100'000;
  int counts[3] = {};
  for (int i = 0; i < kDraws; ++i) ++counts[DrawModel(std::vector<double>{0.6, 0.1, 0.3}, random)];
  EXPECT_NEAR(counts[0] / double{kDraws}, 0.6, 0.01);
  EXPECT_NEAR(counts[1] / double{kDraws}, 0.1, 0.01);
  EXPECT_NEAR(counts[2] / double{kDraws}, 0.3, 0.01);
}

TEST(ModelPriorTest, FriendsMakeTheirModelsLikelyAsFarAsTheyHaveProvedRight) {
  const ModelPool pool = PoolWith({6, 1});
  ModelPrior prior = MakeFriendsPrior({});
  const std::vector<ModelId> friends = {pool.model(1).id, pool.model(1).id};
  const Visitor visitor{.friends = friends};
  // Half popularity, half friends, all of whom are on the second.
  EXPECT_NEAR(WeightsOf(prior, pool, visitor)[1], 0.7 * (0.5 / 7 + 0.5), 1e-12);
  // A user without friends goes by popularity alone.
  EXPECT_NEAR(WeightsOf(prior, pool)[1], 0.1, 1e-12);
  for (int i = 0; i < 100; ++i) prior.Learn(pool, visitor, 1);
  EXPECT_GT(WeightsOf(prior, pool, visitor)[1], 0.65);
  for (int i = 0; i < 10'000; ++i) prior.Learn(pool, visitor, 0);
  EXPECT_LT(WeightsOf(prior, pool, visitor)[1], 0.11);
}

TEST(ModelPriorTest, RecencyPrefersWhatHappensNow) {
  RecencyClock clock;
  clock.constants[0] = 50;
  ModelPool pool(linalg::LinearPrior::Isotropic(2, 1, 1), clock);
  const std::vector<double> x = {1, 0};
  const ModelId ids[2] = {pool.Create(), pool.Create()};
  for (const ModelId id : ids) pool.AddPeriods(id, 1, linalg::SufficientStats(2));
  // Two hundred observations on the first model, then a hundred on the second.
  for (int i = 0; i < 300; ++i) {
    const ModelId id = ids[i < 200 ? 0 : 1];
    pool.Observe(id, x, 1);
    Recency one;
    one.Add(pool.clock(), 1);
    pool.AddRecency(id, one);
  }
  double mass[2] = {};
  for (int i = 0; i < 300; ++i) mass[i < 200 ? 0 : 1] += std::exp(-(299 - i) / 50.0);
  const std::vector<double> weights = WeightsOf(MakeHawkesPrior({.decay = 1e3}), pool);
  EXPECT_NEAR(weights[0], 0.4 * mass[0] / (mass[0] + mass[1]), 1e-9);
  EXPECT_NEAR(weights[1], 0.4 * mass[1] / (mass[0] + mass[1]), 1e-9);
  EXPECT_GT(weights[1], 4 * weights[0]);
}

TEST(ModelPriorTest, WhatAUserBroughtToARecencyCanBeTakenOut) {
  const RecencyClock early{.now = 100};
  const RecencyClock late{.now = 5000};
  Recency model;
  Recency user;
  model.Add(early, 3);
  user.Add(early, 2);
  model.Add(early, user);
  model.Remove(late, user);
  Recency expected;
  expected.Add(early, 3);
  for (std::size_t rate = 0; rate < RecencyClock::kRates; ++rate) {
    EXPECT_NEAR(model.At(late, rate), expected.At(late, rate), 1e-12);
  }
}

TEST(ConcentrationTest, ConcentrationStaysPositiveUnderATinyPrior) {
  RandomStream random({3, 1}, 1);
  double alpha = 1;
  for (int i = 0; i < 10'000; ++i) {
    alpha = ResampleConcentration(alpha, 1, 1, 1e-3, 1, random);
    ASSERT_GT(alpha, 0);
  }
}

TEST(ConcentrationTest, ConcentrationFollowsItsPosterior) {
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
