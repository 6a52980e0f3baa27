#include "codband/policy/codband/exploration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "codband/linalg/kernels.h"
#include "codband/linalg/test_support.h"

namespace codband {
namespace {

std::vector<double> WorthOf(const linalg::GaussianPosterior& model, ArmsView arms) {
  std::vector<double> scratch[2];
  std::vector<double> scores(arms.count(), 0.0);
  AddWorthOfTrying(FindUncertainty(model, nullptr, arms, false, scratch[0], scratch[1]), scores);
  return scores;
}

constexpr std::size_t kExplorationDim = 4;

std::span<const double> Disagreement(const Outlook& outlook, ArmsView arms,
                                     std::vector<double>& scratch) {
  std::vector<double> mean(outlook.pool.prior().dim());
  outlook.Mean(mean);
  return FindDisagreement(outlook, mean, arms, scratch);
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
  // √v Ψ(v n/σ²) (1 - q₀/q): v = 1/2, n/σ² = 200 and q = 1; of the known arm, which is also the
  // best, q₀ = 2/202, and of the last q = 0.36 q₀ + 0.64.
  const double known = 2.0 / 202;
  const double average = (known + 1 + 1 + 0.36 * known + 0.64) / 4;
  EXPECT_NEAR(worth[1],
              std::sqrt(0.5) *
                  std::sqrt(2 * std::log(100) - std::log(std::log(100)) - std::log(16 * M_PI)) *
                  (1 - known) * (1 - known / average),
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

// Two models of equal chance: what they expect of an arm is as far from the mean as half of what it
// is apart.
TEST(ExplorationTest, ModelsDisagreeByTheirMeanDistance) {
  ModelPool pool(linalg::LinearPrior::Isotropic(kExplorationDim + 1, 2, 0.25));
  for (const double reward : {1.0, -2.0}) {
    const ModelId id = pool.Create();
    linalg::SufficientStats data = linalg::SufficientStats::OfColumns(true);
    for (std::uint64_t i = 0; i < 6; ++i) {
      RandomStream random({i, 3}, 4);
      std::vector<double> x = linalg::RandomVector(random, kExplorationDim + 1);
      x.back() = 1;
      data.Add(x, reward * x[0] + reward);
    }
    pool.AddPeriods(id, 2, data);
  }
  RandomStream random({9, 3}, 4);
  const std::vector<double> arms = linalg::RandomVector(random, 20 * kExplorationDim);
  const ArmsView view{arms, kExplorationDim};
  std::vector<double> scratch;
  Outlook outlook{.pool = pool};
  const std::vector<double> chances = {0.5, 0.5, 0};
  outlook.chances = chances;
  const std::span<const double> between = Disagreement(outlook, view, scratch);
  ASSERT_EQ(between.size(), 20U);
  for (std::size_t a = 0; a < 20; ++a) {
    double apart = pool.model(0).posterior.mean().back() - pool.model(1).posterior.mean().back();
    for (std::size_t f = 0; f < kExplorationDim; ++f) {
      apart +=
          view.arm(a)[f] * (pool.model(0).posterior.mean()[f] - pool.model(1).posterior.mean()[f]);
    }
    EXPECT_NEAR(between[a], std::abs(apart) / 2, 1e-12) << a;
  }
  // A model that is one user's does not count.
  const ModelId alone = pool.Create();
  linalg::SufficientStats far = linalg::SufficientStats::OfColumns(true);
  far.Add(std::vector<double>{1, 0, 0, 0, 1}, 1000);
  pool.AddPeriods(alone, 1, far);
  const std::vector<double> with_it = {0, 0, 0.5, 0.5};
  outlook.chances = with_it;
  outlook.likeliest = 2;
  const std::vector<double> prior_alone(Disagreement(outlook, view, scratch).begin(),
                                        Disagreement(outlook, view, scratch).end());
  for (std::size_t a = 0; a < 20; ++a) {
    const double own = linalg::Dot(view.arm(a), pool.model(2).posterior.mean().first(4)) +
                       pool.model(2).posterior.mean().back();
    EXPECT_NEAR(prior_alone[a], std::abs(own) / 4, 1e-9) << a;  // the prior's distance, at 0.5
  }
  outlook.likeliest = 0;
  // Where one is all but certain, nothing is to be found out.
  const std::vector<double> certain = {0.99, 0.01, 0, 0};
  outlook.chances = certain;
  EXPECT_TRUE(Disagreement(outlook, view, scratch).empty());
}

TEST(ExplorationTest, AnArmThatTellsModelsApartIsWorthTrying) {
  const linalg::GaussianPosterior model(kExplorationDim, 2, 0.25);
  const std::vector<double> variances = {0.02, 0.1};
  const std::vector<double> prior_variances = {0.1, 0.1};
  const std::vector<double> between = {0, 0.2};
  std::vector<double> scores = {1, 1};
  AddWorthOfTrying({.model = model,
                    .variances = variances,
                    .prior_variances = prior_variances,
                    .disagreement = between,
                    .period_visits = 500},
                   scores);
  EXPECT_EQ(scores[0], 1);
  // b Ψ(b² m/σ²) with b² m/σ² = 80, of which the best arm leaves 1 - 0.2/0.6.
  const double index = std::sqrt(2 * std::log(80) - std::log(std::log(80)) - std::log(16 * M_PI));
  EXPECT_NEAR(scores[1], 1 + 0.2 * index * 2 / 3, 1e-12);
}

// Where arms vary the best of them is as unknown as any: choosing it explores enough.
TEST(ExplorationTest, NothingIsTriedWhereTheBestArmTeachesAsMuch) {
  linalg::GaussianPosterior model(kExplorationDim, 2, 0.25);
  const std::vector<double> known = {1, 0, 0, 0};
  for (int i = 0; i < 50; ++i) model.Add(known, 1);
  const std::vector<double> variances = {0.1, 0.02, 0.06};
  const std::vector<double> prior_variances = {0.1, 0.1, 0.1};
  const std::vector<double> between = {0, 0.2, 0.4};
  Uncertainty uncertainty{.model = model,
                          .variances = variances,
                          .prior_variances = prior_variances,
                          .disagreement = between,
                          .period_visits = 500};
  for (const std::size_t best : {0, 2}) {  // the least known, and one like the average
    uncertainty.best = best;
    std::vector<double> scores = {1, 1, 1};
    AddWorthOfTrying(uncertainty, scores);
    EXPECT_EQ(scores, std::vector<double>({1, 1, 1})) << best;
  }
  uncertainty.best = 1;  // it has been chosen all along
  std::vector<double> scores = {1, 1, 1};
  AddWorthOfTrying(uncertainty, scores);
  EXPECT_GT(scores[0], 1);
  EXPECT_GT(scores[1], 1);
  EXPECT_GT(scores[2], 1);
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
    std::vector<double> scratch[4];
    const Uncertainty solved =
        FindUncertainty(model, nullptr, {arms, features}, extended, scratch[0], scratch[1]);
    const Uncertainty looked_up =
        FindUncertainty(model, &covariance, {arms, features}, extended, scratch[2], scratch[3]);
    for (std::size_t i = 0; i < 100; ++i) {
      EXPECT_NEAR(looked_up.variances[i], solved.variances[i], 1e-10 * solved.variances[i]);
      EXPECT_EQ(looked_up.prior_variances[i], solved.prior_variances[i]);
    }
  }
}

}  // namespace
}  // namespace codband
