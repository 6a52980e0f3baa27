#include "codband/policy/codband/likelihood.h"

#include <gtest/gtest.h>

#include <cmath>

#include "codband/linalg/joint_likelihood.h"
#include "codband/linalg/test_support.h"
#include "codband/policy/codband/codband_options.h"

namespace codband {
namespace {

constexpr std::size_t kLikelihoodDim = 4;
constexpr double kLikelihoodNoise = 0.09;
constexpr double kPrior = 0.5;

// Σ ln N(r | xᵀμ, σ² + xᵀΣx) over the observations, densely.
double DenseProduct(const linalg::DenseModel& model, std::span<const linalg::Observation> data) {
  double sum = 0;
  for (const auto& [x, r] : data) {
    const Eigen::VectorXd v = linalg::ToEigen(x);
    sum +=
        linalg::LogNormal(r, v.dot(model.mean()), kLikelihoodNoise + v.dot(model.covariance() * v));
  }
  return sum;
}

// ln p(data) under the prior, as a chain of predictives, densely.
double DensePriorChain(std::span<const linalg::Observation> data) {
  linalg::DenseModel model(kLikelihoodDim, kPrior);
  double sum = 0;
  for (const linalg::Observation& observation : data) {
    sum += DenseProduct(model, {&observation, 1});
    model.Add({&observation, 1}, kLikelihoodNoise);
  }
  return sum;
}

// A pool of two models: one of others alone, one that the user's period is on as well.
class LikelihoodTest : public testing::Test {
 protected:
  LikelihoodTest() {
    pool_.AddPeriods(pool_.Create(), 1, Stats(others_[0]));
    period_.model = pool_.Create();
    pool_.AddPeriods(period_.model, 1, Stats(others_[1]));
    pool_.AddPeriods(period_.model, 1, Stats(data_));
    for (const auto& [x, r] : data_) period_.Observe(x, r);
  }

  static linalg::SufficientStats Stats(std::span<const linalg::Observation> data) {
    linalg::SufficientStats stats(kLikelihoodDim);
    for (const auto& [x, r] : data) stats.Add(x, r);
    return stats;
  }

  linalg::DenseModel Without(std::size_t k) const {
    linalg::DenseModel model(kLikelihoodDim, kPrior);
    model.Add(others_[k], kLikelihoodNoise);
    return model;
  }

  static constexpr std::size_t kMemory = 6;
  std::vector<linalg::Observation> others_[2] = {linalg::RandomObservations(1, 30, kLikelihoodDim),
                                                 linalg::RandomObservations(2, 20, kLikelihoodDim)};
  std::vector<linalg::Observation> data_ = linalg::RandomObservations(3, 10, kLikelihoodDim);
  static Period EmptyPeriod() {
    return {.data = linalg::SufficientStats(kLikelihoodDim),
            .recent = std::make_unique<RecentObservations>(kLikelihoodDim, kMemory)};
  }

  ModelPool pool_{linalg::LinearPrior::Isotropic(kLikelihoodDim, kPrior, kLikelihoodNoise)};
  Period period_ = EmptyPeriod();
};

TEST_F(LikelihoodTest, ProductScoresTheRecentObservationsOneByOne) {
  double out[3] = {};
  MakeProductLikelihood(kLikelihoodDim, {.memory = kMemory})
      ->AddLogDensities(pool_, period_, 1, out);
  const std::span<const linalg::Observation> recent = std::span(data_).last(kMemory);
  EXPECT_NEAR(out[0], DenseProduct(Without(0), recent), 1e-9);
  EXPECT_NEAR(out[1], DenseProduct(Without(1), recent), 1e-9);
  EXPECT_NEAR(out[2], DensePriorChain(recent), 1e-9);
}

TEST_F(LikelihoodTest, JointScoresTheWholePeriodAsAChainOfPredictives) {
  double out[3] = {};
  MakeJointLikelihood(kLikelihoodDim, {})->AddLogDensities(pool_, period_, 1, out);
  for (std::size_t k = 0; k < 2; ++k) {
    linalg::DenseModel model = Without(k);
    double chain = 0;
    for (const linalg::Observation& observation : data_) {
      chain += DenseProduct(model, {&observation, 1});
      model.Add({&observation, 1}, kLikelihoodNoise);
    }
    EXPECT_NEAR(out[k], chain, 1e-9) << k;
  }
  EXPECT_NEAR(out[2], DensePriorChain(data_), 1e-9);
}

TEST_F(LikelihoodTest, AddsToThePriorWeights) {
  for (const auto& likelihood : {MakeProductLikelihood(kLikelihoodDim, {.memory = kMemory}),
                                 MakeJointLikelihood(kLikelihoodDim, {})}) {
    double alone[3] = {};
    double added[3] = {1, 2, 3};
    likelihood->AddLogDensities(pool_, period_, 1, alone);
    likelihood->AddLogDensities(pool_, period_, 1, added);
    for (std::size_t k = 0; k < 3; ++k) {
      EXPECT_NEAR(added[k], alone[k] + static_cast<double>(k + 1), 1e-9) << k;
    }
  }
}

TEST_F(LikelihoodTest, ProductLeavesOutOnlyWhatIsNegligible) {
  // A model that is certain of something else altogether: it cannot matter, whatever its exact
  // score.
  const ModelId wrong = pool_.Create();
  linalg::SufficientStats elsewhere(kLikelihoodDim);
  RandomStream random({1, 1}, 1);
  for (int i = 0; i < 5000; ++i)
    elsewhere.Add(linalg::RandomVector(random, kLikelihoodDim), 1000 * random.Normal());
  pool_.AddPeriods(wrong, 1, elsewhere);
  double weights[4] = {};
  MakeProductLikelihood(kLikelihoodDim, {.memory = kMemory})
      ->AddLogDensities(pool_, period_, 1, weights);
  const std::span<const linalg::Observation> recent = std::span(data_).last(kMemory);
  EXPECT_NEAR(weights[0], DenseProduct(Without(0), recent), 1e-9);
  const double best = std::max({weights[0], weights[1], weights[3]});
  const PoolModel& model = pool_.model(2);
  double exact = 0;
  for (const auto& [x, r] : recent) {
    exact += linalg::LogNormal(r, linalg::ToEigen(x).dot(linalg::ToEigen(model.posterior.mean())),
                               kLikelihoodNoise + model.posterior.Variance(x));
  }
  ASSERT_LT(exact, best - 50);
  EXPECT_TRUE(weights[2] == -INFINITY || std::abs(weights[2] - exact) < 1e-6);
  // Where the prior weight makes up for it, the score is exact.
  double favoured[4] = {0, 0, 1e6, 0};
  MakeProductLikelihood(kLikelihoodDim, {.memory = kMemory})
      ->AddLogDensities(pool_, period_, 1, favoured);
  EXPECT_NEAR(favoured[2], 1e6 + exact, 1e-6 * std::abs(exact));
}

TEST_F(LikelihoodTest, OfASingleObservationBothAgree) {
  Period one = EmptyPeriod();
  one.model = period_.model;
  one.Observe(data_[0].first, data_[0].second);
  double product[3] = {};
  double joint[3] = {};
  MakeProductLikelihood(kLikelihoodDim, {.memory = kMemory})
      ->AddLogDensities(pool_, one, 1, product);
  MakeJointLikelihood(kLikelihoodDim, {})->AddLogDensities(pool_, one, 1, joint);
  for (std::size_t k = 0; k < 3; ++k) EXPECT_NEAR(product[k], joint[k], 1e-9) << k;
}

// Many models, of which most cannot be the user's.
TEST_F(LikelihoodTest, BoundsOnDensitiesChangeNothingAndWhatIsLeftOutIsNegligible) {
  RandomStream random({6, 6}, 6);
  for (int k = 0; k < 40; ++k) {
    const ModelId id = pool_.Create();
    pool_.AddPeriods(id, 1, linalg::SufficientStats(kLikelihoodDim));
    const std::vector<double> taste = linalg::RandomVector(random, kLikelihoodDim, 2);
    for (int i = 0; i < 60; ++i) {
      const std::vector<double> x = linalg::RandomVector(random, kLikelihoodDim);
      pool_.Observe(id, x, linalg::ToEigen(x).dot(linalg::ToEigen(taste)));
    }
  }
  const std::size_t own = pool_.IndexOf(period_.model).value();
  const auto joint = MakeJointLikelihood(kLikelihoodDim, CoDBandOptions{});
  const auto weights = [&](const ModelPool& pool) {
    std::vector<double> out(pool.size() + 1, -1.0);
    joint->AddLogDensities(pool, period_, own, out);
    return out;
  };
  const std::vector<double> without = weights(pool_);
  ModelPool bounded = pool_;
  bounded.RefreshVarianceShares();
  EXPECT_EQ(without, weights(bounded));

  linalg::JointLikelihood exact(kLikelihoodDim);
  const double least = std::max(without[own], without.back()) - 50;
  std::size_t left_out = 0;
  for (std::size_t k = 0; k < pool_.size(); ++k) {
    const linalg::JointLikelihood::Model model{.posterior = &pool_.model(k).posterior,
                                               .contains_data = k == own};
    double density = 0;
    exact.LogDensities(period_.data, {&model, 1}, {&density, 1});
    if (std::isinf(without[k])) {
      EXPECT_LT(density - 1, least);
      ++left_out;
    } else {
      EXPECT_DOUBLE_EQ(without[k], density - 1);
    }
  }
  EXPECT_GT(left_out, 10U);
}

}  // namespace
}  // namespace codband
