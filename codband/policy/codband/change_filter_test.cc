#include "codband/policy/codband/change_filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "codband/linalg/test_support.h"

namespace codband {
namespace {

constexpr std::size_t kFilterDim = 3;
constexpr double kFilterNoise = 0.3;
constexpr double kHazard = 0.1;

double Bernoulli(double r, double mean) {
  const double chance = std::clamp(mean, 0.02, 0.98);
  return std::log(r == 1 ? chance : 1 - chance);
}

// Covariance and mean of the rewards of a run under the prior, densely.
struct DenseRun {
  Eigen::MatrixXd covariance;
  Eigen::VectorXd residual;
  Eigen::VectorXd rewards;

  DenseRun(const linalg::LinearPrior& prior, std::span<const linalg::Observation> run) {
    const auto m = static_cast<Eigen::Index>(run.size());
    Eigen::MatrixXd X(m, static_cast<Eigen::Index>(prior.dim()));
    rewards.resize(m);
    for (Eigen::Index i = 0; i < m; ++i) {
      X.row(i) = linalg::ToEigen(run[static_cast<std::size_t>(i)].first);
      rewards(i) = run[static_cast<std::size_t>(i)].second;
    }
    covariance = prior.noise_variance * Eigen::MatrixXd::Identity(m, m) +
                 X * linalg::ToEigen(prior.precision).cwiseInverse().asDiagonal() * X.transpose();
    residual = rewards - X * linalg::ToEigen(prior.mean);
  }

  double LogDensity() const {
    const Eigen::LLT<Eigen::MatrixXd> llt(covariance);
    const Eigen::MatrixXd lower = llt.matrixL();
    return -0.5 * (static_cast<double>(rewards.size()) * std::log(2 * std::numbers::pi) +
                   2 * lower.diagonal().array().log().sum() + residual.dot(llt.solve(residual)));
  }

  // Each click by what the newer ones let expect: newest first.
  double LogClicks() const {
    double sum = 0;
    const Eigen::Index m = rewards.size();
    for (Eigen::Index i = m; i-- > 0;) {
      const Eigen::Index newer = m - 1 - i;
      double expected = rewards(i) - residual(i);
      if (newer > 0) {
        const Eigen::MatrixXd among = covariance.bottomRightCorner(newer, newer);
        const Eigen::VectorXd with = covariance.col(i).tail(newer);
        expected += with.dot(among.ldlt().solve(residual.tail(newer)));
      }
      sum += Bernoulli(rewards(i), expected);
    }
    return sum;
  }
};

class ChangeFilterTest : public testing::Test {
 protected:
  explicit ChangeFilterTest(std::size_t models = 3)
      : prior_(linalg::RandomPrior(3, kFilterDim, kFilterNoise)), pool_(prior_) {
    for (std::size_t k = 0; k < models; ++k) {
      pool_.AddPeriods(
          pool_.Create(), 1,
          linalg::StatsOf(kFilterDim, linalg::RandomObservations(20 + k, 6 + 3 * k, kFilterDim)));
    }
  }

  // ln p(r | model k) densely.
  double LogPredictiveOf(std::size_t k, const linalg::Observation& observation, bool clicks) const {
    linalg::DenseModel dense(prior_);
    dense.Add(linalg::RandomObservations(20 + k, 6 + 3 * k, kFilterDim), kFilterNoise);
    const Eigen::VectorXd x = linalg::ToEigen(observation.first);
    const double mean = x.dot(dense.mean());
    return clicks ? Bernoulli(observation.second, mean)
                  : linalg::LogNormal(observation.second, mean,
                                      kFilterNoise + x.dot(dense.covariance() * x));
  }

  double LogRun(std::span<const linalg::Observation> run, bool clicks) const {
    const DenseRun dense(prior_, run);
    return clicks ? dense.LogClicks() : dense.LogDensity();
  }

  // Features as the window can hold them.
  static std::vector<linalg::Observation> Data(std::uint64_t seed, std::size_t count, bool clicks) {
    std::vector<linalg::Observation> data = linalg::RandomObservations(seed, count, kFilterDim);
    for (auto& [x, r] : data) {
      RoundFeatures(x);
      if (clicks) r = r > 0 ? 1 : 0;
    }
    return data;
  }

  linalg::LinearPrior prior_;
  ModelPool pool_;
  const std::vector<double> weights_ = {0.4, 0.3, 0.1, 0.2};
};

// All histories of a user, one by one: at each observation on a model, or on a fresh parameter that
// began at some observation. A user changes to model k with hπ_k, to a fresh parameter with hπ_0
// from anywhere, stays on a model with 1 - h, and on a fresh parameter.
struct Histories {
  std::span<const double> weights;
  std::span<const linalg::Observation> data;
  std::vector<std::vector<double>> of_model;  // p(observation t | model k)
  std::vector<std::vector<double>> of_run;    // p(observations s..t | a fresh parameter began at s)
  std::vector<double> mass = {};              // of each model and of a fresh parameter at the end

  void Follow(std::size_t t, std::size_t end, std::size_t state, std::size_t begun, double weight) {
    const std::size_t models = weights.size() - 1;
    const auto score = [&](double w) { return state == models ? w * of_run[begun][t - 1] : w; };
    if (t == end) {
      mass[state] += score(weight);
      return;
    }
    for (std::size_t k = 0; k < models; ++k) {
      const double step = k == state ? 1 - kHazard : kHazard * weights[k];
      Follow(t + 1, end, k, 0, score(weight) * step * of_model[t][k]);
    }
    Follow(t + 1, end, models, t, score(weight) * kHazard * weights[models]);
    if (state == models) Follow(t + 1, end, models, begun, weight);
  }
};

TEST_F(ChangeFilterTest, EqualsTheSumOverAllHistories) {
  constexpr std::size_t kLength = 6;
  const std::size_t models = pool_.size();
  for (const bool clicks : {false, true}) {
    RewardNoise noise;
    if (!clicks) noise.Watch(0.5);
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      const std::vector<linalg::Observation> data = Data(seed, kLength, clicks);
      Histories histories{.weights = weights_, .data = data, .of_model = {}, .of_run = {}};
      for (std::size_t t = 0; t < kLength; ++t) {
        std::vector<double>& densities = histories.of_model.emplace_back();
        for (std::size_t k = 0; k < models; ++k) {
          densities.push_back(std::exp(LogPredictiveOf(k, data[t], clicks)));
        }
        std::vector<double>& runs = histories.of_run.emplace_back(kLength);
        for (std::size_t end = t; end < kLength; ++end) {
          runs[end] = std::exp(LogRun(std::span(data).subspan(t, end - t + 1), clicks));
        }
      }

      ChangeFilter filter(kFilterDim, 8);
      ChangeWindow window(kFilterDim, 8);
      Belief belief;
      belief.Settle(pool_.model(1).id);
      double before = 1;
      for (std::size_t t = 0; t < kLength; ++t) {
        histories.mass.assign(models + 1, 0.0);
        histories.Follow(0, t + 1, 1, 0, 1);
        double evidence = 0;
        for (const double mass : histories.mass) evidence += mass;
        const auto& [x, r] = data[t];
        const double log_predictive =
            filter.Update(pool_, noise, kHazard, weights_, window, x, r, belief);
        window.Push(x, r, log_predictive);
        // The window holds predictives in single precision.
        EXPECT_NEAR(log_predictive, std::log(evidence / before), 2e-6)
            << t << ", clicks " << clicks;
        std::vector<double> chances(models + 1);
        belief.Expand(pool_, weights_, chances);
        for (std::size_t k = 0; k <= models; ++k) {
          EXPECT_NEAR(chances[k], histories.mass[k] / evidence, 1e-6) << t << ", state " << k;
        }
        before = evidence;
      }
    }
  }
}

TEST_F(ChangeFilterTest, RatioIsThatOfTheRewardsDensitiesWithAndWithoutAChange) {
  for (const bool clicks : {false, true}) {
    RewardNoise noise;
    if (!clicks) noise.Watch(0.5);
    for (const linalg::Observation& observation : Data(5, 4, clicks)) {
      ChangeFilter filter(kFilterDim, 8);
      const ChangeWindow window(kFilterDim, 8);
      Belief belief;
      belief.Settle(pool_.model(1).id);
      const auto& [x, r] = observation;
      filter.Update(pool_, noise, kHazard, weights_, window, x, r, belief);
      double changed = weights_[3] * std::exp(LogRun({&observation, 1}, clicks));
      for (const std::size_t k : {0U, 2U}) {
        changed += weights_[k] * std::exp(LogPredictiveOf(k, observation, clicks));
      }
      changed /= 1 - weights_[1];
      EXPECT_NEAR(filter.change_ratio(),
                  changed / std::exp(LogPredictiveOf(1, observation, clicks)),
                  1e-6 * filter.change_ratio());
    }
  }
}

TEST_F(ChangeFilterTest, FreshParameterIsScoredAsAGaussianOfAllItsRewards) {
  constexpr std::size_t kWindow = 5;
  const std::vector<linalg::Observation> data = Data(7, 12, false);
  RewardNoise noise;
  noise.Watch(0.5);
  ChangeFilter filter(kFilterDim, kWindow);
  ChangeWindow window(kFilterDim, kWindow);
  Belief belief;
  for (std::size_t t = 0; t < data.size(); ++t) {
    const auto& [x, r] = data[t];
    const double log_predictive =
        filter.Update(pool_, noise, kHazard, weights_, window, x, r, belief);
    window.Push(x, r, log_predictive);
    ASSERT_EQ(filter.fresh_log_densities().size(), std::min(t, kWindow) + 1);
    for (std::size_t j = 0; j < filter.fresh_log_densities().size(); ++j) {
      EXPECT_NEAR(filter.fresh_log_densities()[j],
                  LogRun(std::span(data).subspan(t - j, j + 1), false), 1e-9);
    }
  }
}

TEST_F(ChangeFilterTest, RepeatedFeaturesDoNotMakeAFreshParameterCertainBeyondTheNoise) {
  // Sixty times the same arm: but for the noise its Gram matrix has rank one.
  prior_ = linalg::LinearPrior::Isotropic(kFilterDim, 1e-8, 1e-6);
  pool_.SetPrior(prior_);
  RewardNoise noise;
  noise.Watch(0.5);
  ChangeFilter filter(kFilterDim, 60);
  ChangeWindow window(kFilterDim, 60);
  Belief belief;
  const std::vector<double> x = {1, 2, 3};
  for (int i = 0; i < 60; ++i) {
    window.Push(x, 5, filter.Update(pool_, noise, kHazard, weights_, window, x, 5, belief));
  }
  for (const double density : filter.fresh_log_densities()) ASSERT_TRUE(std::isfinite(density));
  EXPECT_GT(belief.fresh(), 0.99);
}

TEST_F(ChangeFilterTest, ModelThatFitsNowOrAFreshParameterIsFoundWithinTheWindow) {
  // Two models that know their parameters.
  const std::vector<std::vector<double>> tastes = {{2, 0, 0}, {0, 2, 0}};
  ModelPool pool(linalg::LinearPrior::Isotropic(kFilterDim, 0.1, 0.04));
  RandomStream random({4, 4}, 4);
  const auto observe = [&](std::span<const double> taste) {
    linalg::Observation observation{linalg::RandomVector(random, kFilterDim), 0};
    RoundFeatures(observation.first);
    observation.second =
        linalg::ToEigen(observation.first).dot(linalg::ToEigen(taste)) + 0.2 * random.Normal();
    return observation;
  };
  for (const auto& taste : tastes) {
    const ModelId id = pool.Create();
    pool.AddPeriods(id, 1, linalg::SufficientStats(kFilterDim));
    for (int i = 0; i < 200; ++i) {
      const auto [x, r] = observe(taste);
      pool.Observe(id, x, r);
    }
  }
  RewardNoise noise;
  noise.Watch(0.5);
  ChangeFilter filter(kFilterDim, 8);
  const std::vector<double> weights = {0.4, 0.4, 0.2};
  const auto chances_after = [&](std::span<const double> taste) {
    ChangeWindow window(kFilterDim, 8);
    Belief belief;
    belief.Settle(pool.model(0).id);
    for (int i = 0; i < 8; ++i) {
      const auto [x, r] = observe(taste);
      window.Push(x, r, filter.Update(pool, noise, 0.001, weights, window, x, r, belief));
    }
    std::vector<double> chances(3);
    belief.Expand(pool, weights, chances);
    return chances;
  };
  EXPECT_GT(chances_after(tastes[0])[0], 0.99);
  EXPECT_GT(chances_after(tastes[1])[1], 0.99);
  EXPECT_GT(chances_after(std::vector<double>{1, -1, 3})[2], 0.99);
}

// Forty models that know their parameters, of which the belief lists one.
class ManyModels : public ChangeFilterTest {
 protected:
  static constexpr std::size_t kMany = 40;

  ManyModels() : ChangeFilterTest(0) {
    prior_ = linalg::LinearPrior::Isotropic(kFilterDim, 1, 0.01);
    pool_ = ModelPool(prior_);
    RandomStream random({5, 5}, 5);
    for (std::size_t k = 0; k < kMany; ++k) {
      const ModelId id = pool_.Create();
      pool_.AddPeriods(id, 1, linalg::SufficientStats(kFilterDim));
      const std::vector<double> taste = linalg::RandomVector(random, kFilterDim);
      for (int i = 0; i < 50; ++i) {
        const std::vector<double> x = linalg::RandomVector(random, kFilterDim);
        pool_.Observe(id, x, linalg::ToEigen(x).dot(linalg::ToEigen(taste)));
      }
    }
    many_weights_.assign(kMany + 1, 1.0 / (kMany + 1));
  }

  struct Result {
    std::vector<double> log_predictives = {};
    std::vector<double> chances = {};
  };
  Result Filter(const ModelPool& pool, bool clicks, double hazard) const {
    RewardNoise noise;
    if (!clicks) noise.Watch(0.5);
    ChangeFilter filter(kFilterDim, 8);
    ChangeWindow window(false, 8);
    Belief belief;
    belief.Settle(pool.model(7).id);
    Result result;
    for (const auto& [x, r] : Data(9, 12, clicks)) {
      const double log_predictive =
          filter.Update(pool, noise, hazard, many_weights_, window, x, r, belief);
      window.Push(x, r, log_predictive);
      result.log_predictives.push_back(log_predictive);
      result.chances.resize(kMany + 1);
      belief.Expand(pool, many_weights_, result.chances);
    }
    return result;
  }

  std::vector<double> many_weights_;
};

TEST_F(ManyModels, BoundsChangeNothing) {
  ModelPool bounded = pool_;
  bounded.RefreshVarianceShares();
  ASSERT_LT(bounded.model(0).posterior.variance_share(), 0.01);
  for (const bool clicks : {false, true}) {
    for (const double hazard : {1e-5, 1e-3, 0.1}) {
      const Result without = Filter(pool_, clicks, hazard);
      const Result with = Filter(bounded, clicks, hazard);
      EXPECT_EQ(without.log_predictives, with.log_predictives);
      EXPECT_EQ(without.chances, with.chances);
    }
  }
}

TEST_F(ManyModels, WhatIsNegligibleIsAsFarOffAsIsSaid) {
  RewardNoise noise;
  noise.Watch(0.5);
  for (const auto& [x, r] : Data(9, 12, false)) {
    ChangeFilter filter(kFilterDim, 8);
    Belief belief;
    belief.Settle(pool_.model(7).id);
    const double found =
        filter.Update(pool_, noise, 1e-3, many_weights_, ChangeWindow(false, 8), x, r, belief);
    double all = 1e-3 * many_weights_[kMany] * std::exp(filter.fresh_log_densities()[0]);
    for (std::size_t k = 0; k < kMany; ++k) {
      const double before = k == 7 ? 1 - 1e-3 : 1e-3 * many_weights_[k];
      all += before * std::exp(LogPredictive(pool_.model(k).posterior, noise, x, r));
    }
    EXPECT_NEAR(std::exp(found) / all, 1, kMany * ChangeFilter::kNegligible);
  }
}

TEST_F(ChangeFilterTest, FavouriteOfOneGroupIsNotExpectedToBeOneOfAnother) {
  // Model 0 has clicked an item far more often than its features say, model 1 never.
  ItemEffects effects(true);
  ItemHistory history;
  ItemHistory other_history;
  for (int i = 0; i < 64; ++i) effects.Observe(history, 5, pool_.model(0).id, 0.5, 1, {});
  for (int i = 0; i < 64; ++i) effects.Observe(other_history, 5, pool_.model(1).id, -0.4, 0, {});
  for (ItemId other = 6; other < 30; ++other) {
    for (int i = 0; i < 8; ++i) {
      effects.Observe(history, other, pool_.model(0).id, i % 2 == 0 ? 0.3 : -0.3, 0, {});
    }
  }
  const ItemEffects::Asked asked = effects.Ask(5);
  const ItemOffset item{.taken = 0.1, .item = &asked};
  ASSERT_GT(item.On(pool_.model(0).id), item.On(pool_.model(1).id) + 0.2);
  EXPECT_EQ((ItemOffset{.taken = 0.1}).On(pool_.model(0).id), 0.1);
  const std::vector<double> x = {0.1, 0, 0};
  const RewardNoise noise;  // clicks
  for (const std::size_t k : {0, 1}) {
    const double chance = std::clamp(
        x[0] * pool_.model(k).posterior.mean()[0] + item.On(pool_.model(k).id), 0.02, 0.98);
    // Of the click 0.1 was taken.
    EXPECT_NEAR(LogPredictive(pool_.model(k), noise, x, 0.9, item), std::log(chance), 1e-12) << k;
    EXPECT_NEAR(LogPredictive(pool_.model(k), noise, x, -0.1, item), std::log(1 - chance), 1e-12);
  }
}

TEST_F(ChangeFilterTest, PredictiveIsTheModelsOwn) {
  const linalg::Observation observation = Data(2, 1, true)[0];
  for (const bool clicks : {false, true}) {
    RewardNoise noise;
    if (!clicks) noise.Watch(0.5);
    for (std::size_t k = 0; k < pool_.size(); ++k) {
      EXPECT_NEAR(
          LogPredictive(pool_.model(k).posterior, noise, observation.first, observation.second),
          LogPredictiveOf(k, observation, clicks), 1e-9);
    }
  }
}

}  // namespace
}  // namespace codband
