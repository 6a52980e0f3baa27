#include "codband/policy/codband/prior_learner.h"

#include <gtest/gtest.h>

#include <cmath>

#include "codband/linalg/test_support.h"

namespace codband {
namespace {

// Many models whose parameters come from a known prior; rewards are scale · (xᵀθ + noise) + shift.
struct World {
  std::size_t features = 4;
  bool intercept = true;
  double scale = 1;
  double shift = 0;

  static constexpr std::size_t kModels = 400;
  static constexpr std::size_t kObservations = 25;  // of each model
  static constexpr double kSigma = 0.3;
  static constexpr double kTasteDeviation = 0.5;
  static constexpr double kInterceptDeviation = 0.2;

  std::size_t dim() const { return features + (intercept ? 1 : 0); }
  static double FeatureMean(std::size_t f) { return f == 0 ? 0.8 : f == 1 ? -0.4 : 0; }

  // Calls visit(model, x, r) for every observation, model after model.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    RandomStream random({5, 5}, 5);
    for (std::size_t k = 0; k < kModels; ++k) {
      std::vector<double> theta = linalg::RandomVector(random, features, kTasteDeviation);
      for (std::size_t f = 0; f < features; ++f) theta[f] += FeatureMean(f);
      const double constant = kInterceptDeviation * random.Normal();
      for (std::size_t i = 0; i < kObservations; ++i) {
        std::vector<double> x = linalg::RandomVector(random, features);
        double r = linalg::ToEigen(x).dot(linalg::ToEigen(theta)) + kSigma * random.Normal();
        if (intercept) {
          r += constant;
          x.push_back(1);
        }
        visit(k, x, scale * r + shift);
      }
    }
  }

  ModelPool Pool(const linalg::LinearPrior& prior) const {
    std::vector<linalg::SufficientStats> data(kModels, linalg::SufficientStats(dim()));
    ForEach([&](std::size_t k, std::span<const double> x, double r) { data[k].Add(x, r); });
    ModelPool pool(prior);
    for (const linalg::SufficientStats& stats : data) pool.AddPeriods(pool.Create(), 1, stats);
    return pool;
  }

  linalg::LinearPrior Learned(double start_precision, double start_deviation, int rounds) const {
    linalg::LinearPrior prior =
        linalg::LinearPrior::Isotropic(dim(), start_precision, start_deviation * start_deviation);
    ModelPool pool = Pool(prior);
    PriorLearner learner(dim(), intercept, false, 0, 0);
    for (int i = 0; i < rounds; ++i) {
      learner.Relearn(pool, false, prior);
      pool.SetPrior(prior);
    }
    return prior;
  }
};

TEST(PriorLearnerTest, FindsThePriorThatTheModelsCameFrom) {
  for (const World& world : {World{}, World{.intercept = false}, World{.scale = 100, .shift = 300},
                             World{.scale = 0.01}, World{.features = 8, .shift = -3}}) {
    SCOPED_TRACE(testing::Message() << world.features << " features, intercept " << world.intercept
                                    << ", rewards * " << world.scale << " + " << world.shift);
    const linalg::LinearPrior prior = world.Learned(1, 1, 60);
    // Residuals have 10,000 - 2000 degrees of freedom or more, parameters at least 1600, intercepts
    // 400.
    EXPECT_NEAR(std::sqrt(prior.noise_variance) / world.scale, World::kSigma, 0.03 * World::kSigma);
    EXPECT_NEAR(1 / std::sqrt(prior.precision[0]) / world.scale, World::kTasteDeviation,
                0.06 * World::kTasteDeviation);
    for (std::size_t f = 0; f < world.features; ++f) {
      EXPECT_EQ(prior.precision[f], prior.precision[0]);
      // Four standard errors of 400 parameters.
      EXPECT_NEAR(prior.mean[f] / world.scale, World::FeatureMean(f),
                  4 * World::kTasteDeviation / std::sqrt(World::kModels));
    }
    if (!world.intercept) continue;
    EXPECT_NEAR(1 / std::sqrt(prior.precision.back()) / world.scale, World::kInterceptDeviation,
                0.15 * World::kInterceptDeviation);
    EXPECT_NEAR((prior.mean.back() - world.shift) / world.scale, 0,
                5 * World::kInterceptDeviation / std::sqrt(World::kModels));
  }
}

TEST(PriorLearnerTest, WhereItStartsDoesNotMatter) {
  const World world;
  const linalg::LinearPrior expected = world.Learned(1, 1, 150);
  for (const double precision : {1e-3, 1e3}) {
    for (const double deviation : {1e-3, 1e3}) {
      SCOPED_TRACE(testing::Message() << "precision " << precision << ", σ " << deviation);
      const linalg::LinearPrior prior = world.Learned(precision, deviation, 150);
      EXPECT_NEAR(prior.noise_variance / expected.noise_variance, 1, 1e-6);
      EXPECT_LT(linalg::RelativeError(linalg::ToEigen(prior.precision),
                                      linalg::ToEigen(expected.precision)),
                1e-6);
      EXPECT_LT(linalg::RelativeError(linalg::ToEigen(prior.mean), linalg::ToEigen(expected.mean)),
                1e-6);
    }
  }
}

// As a policy uses it, from the first reward on.
linalg::LinearPrior LearnedOnline(const World& world, int* learned = nullptr) {
  linalg::LinearPrior prior = linalg::LinearPrior::Isotropic(world.dim(), 1, 1);
  ModelPool pool(prior);
  PriorLearner learner(world.dim(), world.intercept, false, 0, 0);
  world.ForEach([&](std::size_t k, std::span<const double> x, double r) {
    if (learner.Observe(pool, x, r, false, prior)) {
      pool.SetPrior(prior);
      if (learned != nullptr) ++*learned;
    }
    if (k == pool.size()) pool.AddPeriods(pool.Create(), 1, linalg::SufficientStats(world.dim()));
    pool.Observe(pool.model(k).id, x, r);
  });
  return prior;
}

TEST(PriorLearnerTest, OtherUnitsOfTheRewardAreTheSamePriorInOtherUnits) {
  for (const bool intercept : {true, false}) {
    const linalg::LinearPrior original = LearnedOnline({.intercept = intercept});
    for (const double scale : {100.0, 1e-4, -1.0}) {
      const linalg::LinearPrior scaled = LearnedOnline({.intercept = intercept, .scale = scale});
      EXPECT_NEAR(scaled.noise_variance / (scale * scale) / original.noise_variance, 1, 1e-9);
      EXPECT_LT(linalg::RelativeError(linalg::ToEigen(scaled.precision) * (scale * scale),
                                      linalg::ToEigen(original.precision)),
                1e-9);
      EXPECT_LT(linalg::RelativeError(linalg::ToEigen(scaled.mean) / scale,
                                      linalg::ToEigen(original.mean)),
                1e-9);
    }
  }
}

TEST(PriorLearnerTest, LearnsAtGrowingIntervalsAndConverges) {
  int learned = 0;
  const linalg::LinearPrior prior = LearnedOnline({}, &learned);
  EXPECT_GT(learned, 5);
  EXPECT_LT(learned, 100);  // of 10,000 observations
  EXPECT_NEAR(std::sqrt(prior.noise_variance), World::kSigma, 0.1 * World::kSigma);
  EXPECT_NEAR(1 / std::sqrt(prior.precision[0]), World::kTasteDeviation,
              0.2 * World::kTasteDeviation);
}

TEST(PriorLearnerTest, FirstRewardGivesTheScale) {
  linalg::LinearPrior prior = linalg::LinearPrior::Isotropic(3, 1, 1);
  const ModelPool pool(prior);
  const std::vector<double> x = {3, 4, 1};
  PriorLearner from_reward(3, true, false, 0, 0);
  EXPECT_TRUE(from_reward.Observe(pool, x, -2, false, prior));
  // A quarter of r² = 4 is noise; |x|² = 25 without the intercept.
  EXPECT_NEAR(prior.noise_variance, 1, 1e-12);
  EXPECT_NEAR(prior.precision[0], 25 / 3.0, 1e-12);
  EXPECT_EQ(prior.precision[1], prior.precision[0]);
  EXPECT_NEAR(prior.precision[2], 1 / 0.4, 1e-12);
  PriorLearner given(3, true, false, 7, 0.5);
  EXPECT_TRUE(given.Observe(pool, x, -2, false, prior));
  EXPECT_EQ(prior.noise_variance, 0.25);
  EXPECT_EQ(prior.precision[0], 7);
  // Not again until there is more to learn from.
  for (int i = 0; i < 6; ++i) EXPECT_FALSE(given.Observe(pool, x, -2, false, prior));
  EXPECT_TRUE(given.Observe(pool, x, -2, false, prior));
}

void ExpectUsable(const linalg::LinearPrior& prior) {
  EXPECT_TRUE(std::isfinite(prior.noise_variance) && prior.noise_variance > 0);
  for (std::size_t i = 0; i < prior.dim(); ++i) {
    EXPECT_TRUE(std::isfinite(prior.precision[i]) && prior.precision[i] > 0) << i;
    EXPECT_TRUE(std::isfinite(prior.mean[i])) << i;
  }
}

TEST(PriorLearnerTest, RewardsOrFeaturesOfNothingButZerosDoNoHarm) {
  for (const bool intercept : {true, false}) {
    for (const double reward : {0.0, 2.0}) {
      for (const double feature : {0.0, 1.0}) {
        std::vector<double> x(3, feature);
        if (intercept) x.back() = 1;
        linalg::LinearPrior prior = linalg::LinearPrior::Isotropic(3, 1, 1);
        ModelPool pool(prior);
        PriorLearner learner(3, intercept, false, 0, 0);
        for (int i = 0; i < 300; ++i) {
          if (learner.Observe(pool, x, reward, false, prior)) pool.SetPrior(prior);
          ExpectUsable(prior);
          if (i == 0) pool.AddPeriods(pool.Create(), 1, linalg::SufficientStats(3));
          pool.Observe(pool.model(0).id, x, reward);
        }
        const double predicted =
            linalg::ToEigen(x).dot(linalg::ToEigen(pool.model(0).posterior.mean()));
        EXPECT_NEAR(predicted, feature == 0 && !intercept ? 0 : reward, 0.01);
      }
    }
  }
}

TEST(PriorLearnerTest, EmptiedPoolStartsOver) {
  linalg::LinearPrior prior = linalg::LinearPrior::Isotropic(2, 1, 1);
  const ModelPool pool(prior);
  PriorLearner learner(2, false, false, 0, 0);
  const std::vector<double> x = {1, 0};
  EXPECT_TRUE(learner.Observe(pool, x, 1, false, prior));
  EXPECT_FALSE(learner.Observe(pool, x, 1, false, prior));
  learner.Forget(pool, 2);
  EXPECT_TRUE(learner.Observe(pool, x, 10, false, prior));
  EXPECT_NEAR(prior.noise_variance, 25, 1e-12);
}

TEST(PriorLearnerTest, SaveLoadKeepsTheSchedule) {
  linalg::LinearPrior prior = linalg::LinearPrior::Isotropic(2, 1, 1);
  const ModelPool pool(prior);
  PriorLearner learner(2, false, false, 0, 0);
  const std::vector<double> x = {1, 0};
  for (int i = 0; i < 5; ++i) learner.Observe(pool, x, 1, false, prior);
  ByteWriter out;
  learner.Save(out);
  ByteReader in(out.bytes());
  PriorLearner restored(2, false, false, 0, 0);
  restored.Load(in);
  in.ExpectEnd();
  ASSERT_TRUE(in.ok());
  for (int i = 0; i < 40; ++i) {
    linalg::LinearPrior other = prior;
    EXPECT_EQ(learner.Observe(pool, x, 1, false, prior), restored.Observe(pool, x, 1, false, other))
        << i;
  }
}

// Two arms: one is always clicked, the other never.
double NoiseShareOfForeseenClicks(int clicks) {
  linalg::LinearPrior prior = linalg::LinearPrior::Isotropic(3, 1, 0.25);
  linalg::SufficientStats data(3);
  for (int i = 0; i < clicks; ++i) {
    data.Add(std::vector<double>{1, 0, 1}, 1);
    data.Add(std::vector<double>{0, 1, 1}, 0);
  }
  ModelPool pool(prior);
  pool.AddPeriods(pool.Create(), 1, data);
  PriorLearner learner(3, true, true, 0, 0);
  for (int i = 0; i < 20; ++i) {
    learner.Relearn(pool, true, prior);
    pool.SetPrior(prior);
  }
  return prior.noise_variance / 0.25;  // of the variance of the clicks
}

TEST(PriorLearnerTest, WhatManyClicksShowToBeForeseenIsNoNoise) {
  EXPECT_NEAR(NoiseShareOfForeseenClicks(16), 0.5 * 64 / 80, 1e-9);  // but a few may be luck
  EXPECT_NEAR(NoiseShareOfForeseenClicks(64), 0.25, 1e-9);
  EXPECT_NEAR(NoiseShareOfForeseenClicks(2000), 0.1, 1e-9);
}

// One arm, whose rewards are 0.5 each time, leaves the others as unknown as they were: at most one
// direction is determined, so that λ ≤ (1 + 4) / (4 · 0.75 · 0.5²).
TEST(PriorLearnerTest, AnArmThatIsChosenAllAlongSaysNothingOfOthers) {
  linalg::LinearPrior prior = linalg::LinearPrior::Isotropic(3, 1, 0.01);
  linalg::SufficientStats data(3);
  for (int i = 0; i < 200; ++i) {
    data.Add(std::vector<double>{1, 0, 1}, 0.5 + (i % 2 == 0 ? 0.01 : -0.01));
  }
  ModelPool pool(prior);
  pool.AddPeriods(pool.Create(), 1, data);
  PriorLearner learner(3, true, true, 0, 0);
  for (int i = 0; i < 20; ++i) {
    learner.Relearn(pool, false, prior);
    pool.SetPrior(prior);
  }
  EXPECT_LE(prior.precision[1], 5 / 0.75);
}

}  // namespace
}  // namespace codband
