#include "codband/policy/codband/exploration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "codband/linalg/test_support.h"

namespace codband {
namespace {

double Need(const linalg::GaussianPosterior& model, ArmsView arms, bool extended) {
  std::vector<double> scratch[3];
  return DrawWhereUncertain(
      FindUncertainty(model, nullptr, arms, extended, scratch[0], scratch[1], scratch[2]));
}

std::vector<double> WorthOf(const linalg::GaussianPosterior& model, ArmsView arms) {
  std::vector<double> scratch[3];
  std::vector<double> scores(arms.count(), 0.0);
  AddWorthOfTrying(FindUncertainty(model, nullptr, arms, false, scratch[0], scratch[1], scratch[2]),
                   scores);
  return scores;
}

constexpr std::size_t kExplorationDim = 4;

TEST(ExplorationTest, EqualsItsFormulaDensely) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const bool extended = seed % 2 == 1;
    const std::size_t features = extended ? kExplorationDim - 1 : kExplorationDim;
    const linalg::LinearPrior prior = linalg::RandomPrior(seed, kExplorationDim, 0.04);
    // Observations along one direction with some spread: needs of all sizes.
    std::vector<linalg::Observation> data = linalg::RandomObservations(seed, 100, kExplorationDim);
    for (auto& [x, r] : data) {
      for (std::size_t f = 1; f < kExplorationDim; ++f)
        x[f] *= 0.02 * static_cast<double>(seed % 10 + 1);
    }
    linalg::GaussianPosterior model(prior);
    model.Add(linalg::StatsOf(kExplorationDim, data));
    linalg::DenseModel dense(prior);
    dense.Add(data, 0.04);
    RandomStream random({seed, 1}, 2);
    const std::size_t count = 1 + seed % 16;
    const std::vector<double> arms = linalg::RandomVector(random, count * features);
    double variance = 0;
    double prior_variance = 0;
    for (std::size_t a = 0; a < count; ++a) {
      Eigen::VectorXd x = Eigen::VectorXd::Ones(kExplorationDim);
      x.head(static_cast<Eigen::Index>(features)) =
          linalg::ToEigen(std::span(arms).subspan(a * features, features));
      variance += x.dot(dense.covariance() * x) / static_cast<double>(count);
      prior_variance += x.dot(linalg::ToEigen(prior.precision).cwiseInverse().cwiseProduct(x)) /
                        static_cast<double>(count);
    }
    const double ratio = variance * (1 / prior_variance + 100 / (kExplorationDim * 0.04));
    EXPECT_NEAR(Need(model, {arms, features}, extended), std::clamp((ratio - 4) / 8, 0.0, 1.0),
                1e-9)
        << seed;
  }
}

TEST(ExplorationTest, DiverseArmsOrAnUntrainedModelCallForNone) {
  linalg::GaussianPosterior model(kExplorationDim, 1, 0.5);
  RandomStream random({1, 1}, 1);
  for (int i = 0; i < 5000; ++i) {
    const std::vector<double> arms = linalg::RandomVector(random, 10 * kExplorationDim);
    // With hardly more observations than features some directions are known by chance only.
    if (i <= static_cast<int>(kExplorationDim) / 2 || i > 10 * static_cast<int>(kExplorationDim)) {
      ASSERT_EQ(Need(model, {arms, kExplorationDim}, false), 0) << i;
    }
    model.Add(std::span(arms).first(kExplorationDim), random.Normal());
  }
}

TEST(ExplorationTest, FixedArmsOfWhichOneIsAlwaysTakenCallForIt) {
  const std::vector<double> arms = {1, 0, 0, 0, 0, 1, 0, 0};
  linalg::GaussianPosterior model(kExplorationDim, 1, 1);
  double last = 0;
  bool faded_in = false;
  for (int i = 0; i < 200; ++i) {
    const double need = Need(model, {arms, kExplorationDim}, false);
    EXPECT_GE(need, last);
    faded_in = faded_in || (need > 0.01 && need < 0.99);
    last = need;
    model.Add(std::span(arms).first(kExplorationDim), 1);
  }
  EXPECT_EQ(last, 1);
  EXPECT_TRUE(faded_in);
  // The arm that is known by itself, or arms that are nothing, call for none.
  EXPECT_EQ(Need(model, {std::span(arms).first(kExplorationDim), kExplorationDim}, false), 0);
  EXPECT_EQ(Need(model, {std::vector<double>(2 * kExplorationDim), kExplorationDim}, false), 0);
}

TEST(ExplorationTest, AnArmOfWhichLessIsKnownIsWorthTrying) {
  linalg::GaussianPosterior model(kExplorationDim, 2, 0.25);
  const std::vector<double> arms = {1, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0.6, 0.8, 0, 0};
  // At first all are equally unknown.
  for (const double worth : WorthOf(model, {arms, kExplorationDim})) EXPECT_EQ(worth, 0);
  for (int i = 0; i < 50; ++i) model.Add(std::span(arms).first(kExplorationDim), 1);
  const std::vector<double> worth = WorthOf(model, {arms, kExplorationDim});
  EXPECT_EQ(worth[0], 0);  // the surest
  EXPECT_GT(worth[1], worth[3]);
  EXPECT_GT(worth[3], 0);
  // 0.5 √v Ψ(v n/σ²) (1 - q₀/q): v = 1/2, n/σ² = 200 and q = 1; of the known arm q₀ = 2/202.
  EXPECT_NEAR(worth[1],
              0.5 * std::sqrt(0.5) *
                  std::sqrt(2 * std::log(100) - std::log(std::log(100)) - std::log(16 * M_PI)) *
                  (1 - 2.0 / 202),
              1e-9);
  EXPECT_GT(worth[2], worth[1]);  // it moves rewards further
  // Where it is known as well as the others nothing is added.
  for (std::size_t f = 0; f < kExplorationDim; ++f) {
    std::vector<double> unit(kExplorationDim, 0.0);
    unit[f] = 1;
    for (int i = f == 0 ? 50 : 0; i < 100; ++i) model.Add(unit, 1);
  }
  for (const double rest : WorthOf(model, {arms, kExplorationDim})) EXPECT_NEAR(rest, 0, 1e-9);
}

TEST(ExplorationTest, OfManyArmsAllAreLookedAt) {
  linalg::GaussianPosterior model(kExplorationDim, 1, 0.01);
  const std::vector<double> known = {1, 0, 0, 0};
  for (int i = 0; i < 500; ++i) model.Add(known, 1);
  // 800 arms, the second half unknown.
  std::vector<double> arms;
  for (int a = 0; a < 800; ++a) {
    const std::vector<double> arm = a < 400 ? known : std::vector<double>{0, 1, 0, 0};
    arms.insert(arms.end(), arm.begin(), arm.end());
  }
  EXPECT_EQ(Need(model, {arms, kExplorationDim}, false), 1);
}

TEST(ExplorationTest, VariancesByTheCovarianceAreThoseByTheFactor) {
  constexpr std::size_t kDim = linalg::Covariance::kNarrow + 9;
  for (const bool extended : {false, true}) {
    linalg::GaussianPosterior model(linalg::RandomPrior(6, kDim, 0.04));
    model.Add(linalg::StatsOf(kDim, linalg::RandomObservations(6, 150, kDim)));
    linalg::Covariance covariance;
    covariance.Refresh(model.factor());
    ASSERT_TRUE(covariance.known());
    const std::size_t features = extended ? kDim - 1 : kDim;
    RandomStream random({6, 2}, 3);
    std::vector<double> arms = linalg::RandomVector(random, 100 * features);
    // All of the first arms' features, few of the others'.
    for (std::size_t i = 20 * features; i < arms.size(); ++i) {
      if (random.Below(8) != 0) arms[i] = 0;
    }
    std::vector<double> scratch[6];
    const Uncertainty solved = FindUncertainty(model, nullptr, {arms, features}, extended,
                                               scratch[0], scratch[1], scratch[2]);
    const Uncertainty looked_up = FindUncertainty(model, &covariance, {arms, features}, extended,
                                                  scratch[3], scratch[4], scratch[5]);
    for (std::size_t i = 0; i < 100; ++i) {
      EXPECT_NEAR(looked_up.variances[i], solved.variances[i], 1e-10 * solved.variances[i]);
      EXPECT_EQ(looked_up.prior_variances[i], solved.prior_variances[i]);
    }
    EXPECT_EQ(looked_up.intercept_variance, solved.intercept_variance);
  }
}

}  // namespace
}  // namespace codband
