#include "codband/linalg/low_rank.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "codband/linalg/joint_likelihood.h"
#include "codband/linalg/test_support.h"

namespace codband::linalg {
namespace {

constexpr std::size_t kShopDim = Covariance::kNarrow + 26;
constexpr double kNoiseOfVisits = 0.25;

// What visitors of a shop send: words, of which each of a few groups has one, a number, the
// products of all of these with a word of the context, and an intercept. Many columns, few
// directions.
std::vector<Observation> Visits(std::uint64_t seed, std::size_t count) {
  RandomStream random({seed, 0}, 91);
  std::vector<Observation> visits;
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<double> x(kShopDim, 0.0);
    const std::size_t context = random.Below(3);
    for (const std::size_t copy : {std::size_t{0}, 20 * (context + 1)}) {
      x[copy + i % 5] = 1;
      x[copy + 5 + (7 * i + seed) % 13] = 1;
      x[copy + 18] = 0.25 * static_cast<double>(i % 7);
    }
    x[80 + context] = 1;
    x.back() = 1;
    visits.emplace_back(std::move(x), random.Normal());
  }
  return visits;
}

SufficientStats OfColumns(std::span<const Observation> data) {
  SufficientStats stats = SufficientStats::OfColumns(true);
  for (const auto& [x, r] : data) stats.Add(x, r);
  return stats;
}

struct FollowedModel {
  explicit FollowedModel(const LinearPrior& prior) : posterior(prior) {}
  void Refresh() {
    covariance.Forget();
    covariance.Refresh(posterior.factor());
  }
  double Factored(const SufficientStats& data, bool contains_data) const {
    const JointLikelihood::Model model{.posterior = &posterior, .contains_data = contains_data};
    double density = 0;
    JointLikelihood(kShopDim).LogDensities(data, {&model, 1}, {&density, 1});
    return density;
  }

  GaussianPosterior posterior;
  Covariance covariance;
};

double ErrorOf(const FollowedModel& model) {
  FollowedModel anew = model;
  anew.Refresh();
  double error = 0;
  for (std::size_t i = 0; i < model.covariance.packed().size(); ++i) {
    const double entry = anew.covariance.packed()[i];
    error = std::max(error, std::abs(model.covariance.packed()[i] - entry));
  }
  return error;
}

TEST(LowRankTest, DensityIsThatOfTheFactoredModel) {
  for (const std::size_t visits : {1U, 3U, 8U, 20U, 32U, 60U, 200U}) {
    for (const std::size_t others : {10U, 100U, 1000U}) {
      const std::vector<Observation> data = Visits(visits, visits);
      const SufficientStats stats = OfColumns(data);
      LowRank low_rank;
      low_rank.Decompose(stats, kShopDim);
      EXPECT_LE(low_rank.rank(), visits);
      FollowedModel model(RandomPrior(others, kShopDim, kNoiseOfVisits));
      for (const auto& [x, r] : Visits(7 * visits + others, others)) model.posterior.Add(x, r);
      for (const bool contains_data : {false, true}) {
        if (contains_data) model.posterior.Add(stats);
        model.Refresh();
        const double factored = model.Factored(stats, contains_data);
        const auto density = low_rank.LogDensity(model.posterior, &model.covariance, contains_data);
        ASSERT_TRUE(density.has_value());
        EXPECT_NEAR(*density, factored, 1e-8 * (1 + std::abs(factored)))
            << visits << " visits, " << others << " others, " << contains_data;
      }
    }
  }
}

TEST(LowRankTest, ManyVisitsSpanFewDirections) {
  LowRank low_rank;
  low_rank.Decompose(OfColumns(Visits(1, 1000)), kShopDim);
  // Of four copies of 19 columns and three more each word of a group follows from the others.
  EXPECT_LE(low_rank.rank(), 60U);
  EXPECT_GE(low_rank.rank(), 40U);
}

TEST(LowRankTest, AModelOfTheDataAloneIsThePriorWithoutThem) {
  const SufficientStats stats = OfColumns(Visits(1, 20));
  LowRank low_rank;
  low_rank.Decompose(stats, kShopDim);
  FollowedModel model(RandomPrior(2, kShopDim, kNoiseOfVisits));
  const auto prior = low_rank.LogDensity(model.posterior, nullptr, false);
  ASSERT_TRUE(prior.has_value());
  EXPECT_NEAR(*prior, model.Factored(stats, false), 1e-8 * std::abs(*prior));
  model.posterior.Add(stats);
  EXPECT_EQ(low_rank.LogDensity(model.posterior, nullptr, true), prior);
}

TEST(LowRankTest, ARemovalThatWouldLoseDigitsGivesNothing) {
  const SufficientStats stats = OfColumns(Visits(1, 20));
  FollowedModel model(LinearPrior::Isotropic(kShopDim, 1e-6, 1e-4));
  const std::vector<Observation> other = Visits(2, 1);
  model.posterior.Add(other[0].first, other[0].second);
  model.posterior.Add(stats);
  model.Refresh();
  ASSERT_TRUE(model.covariance.known());
  LowRank low_rank;
  low_rank.Decompose(stats, kShopDim);
  EXPECT_FALSE(low_rank.LogDensity(model.posterior, &model.covariance, true).has_value());
  low_rank.Change(model.covariance, 1e-4, -1);
  EXPECT_FALSE(model.covariance.known());
}

TEST(LowRankTest, JointLikelihoodTakesWhicheverCostsLessAndFindsTheSame) {
  const SufficientStats stats = OfColumns(Visits(3, 12));
  const LinearPrior prior = RandomPrior(5, kShopDim, kNoiseOfVisits);
  std::vector<FollowedModel> models(7, FollowedModel(prior));
  std::vector<JointLikelihood::Model> queries;
  std::vector<double> expected;
  for (std::size_t k = 0; k < models.size(); ++k) {
    for (const auto& [x, r] : Visits(20 + k, 15 * k)) models[k].posterior.Add(x, r);
    const bool own = k == 2;
    if (own) models[k].posterior.Add(stats);
    if (k != 4) models[k].Refresh();
    queries.push_back({.posterior = &models[k].posterior,
                       .contains_data = own,
                       .covariance = &models[k].covariance});
    expected.push_back(models[k].Factored(stats, own));
  }
  std::vector<double> densities(models.size());
  JointLikelihood(kShopDim).LogDensities(stats, queries, densities);
  for (std::size_t k = 0; k < models.size(); ++k) {
    EXPECT_NEAR(densities[k], expected[k], 1e-8 * std::abs(expected[k])) << k;
  }
  EXPECT_EQ(densities[4], expected[4]);
  EXPECT_NE(densities[1], expected[1]);  // in the last bits
}

TEST(LowRankTest, ACovarianceFollowsDataThatComeAndLeave) {
  FollowedModel model(RandomPrior(6, kShopDim, kNoiseOfVisits));
  for (const auto& [x, r] : Visits(1, 50)) model.posterior.Add(x, r);
  model.Refresh();
  LowRank low_rank;
  for (std::uint64_t step = 0; step < 40; ++step) {
    const SufficientStats stats = OfColumns(Visits(100 + step, 1 + step));
    low_rank.Decompose(stats, kShopDim);
    low_rank.Change(model.covariance, kNoiseOfVisits, 1);
    model.posterior.Add(stats);
    ASSERT_TRUE(model.covariance.known());
    EXPECT_LT(ErrorOf(model), 1e-11);
    if (step % 3 == 0) continue;
    low_rank.Change(model.covariance, kNoiseOfVisits, -1);
    model.posterior.Remove(stats);
    ASSERT_TRUE(model.covariance.known());
    EXPECT_LT(ErrorOf(model), 1e-11);
  }
}

TEST(LowRankTest, APosteriorFollowsByDirectionsAsByFactoring) {
  GaussianPosterior followed(RandomPrior(6, kShopDim, kNoiseOfVisits));
  for (const auto& [x, r] : Visits(1, 50)) followed.Add(x, r);
  GaussianPosterior factored = followed;
  const auto expect_same = [&] {
    EXPECT_LT(RelativeError(LowerToEigen(followed.factor().packed(), kShopDim),
                            LowerToEigen(factored.factor().packed(), kShopDim)),
              1e-11);
    EXPECT_LT((ToEigen(followed.mean()) - ToEigen(factored.mean())).norm(), 1e-10);
    EXPECT_NEAR(followed.log_determinant(), factored.log_determinant(), 1e-9);
  };
  LowRank low_rank;
  for (std::uint64_t step = 0; step < 20; ++step) {
    const SufficientStats stats = OfColumns(Visits(100 + step, 1 + step));
    low_rank.Decompose(stats, kShopDim);
    followed.Add(stats, &low_rank);
    factored.Add(stats);
    expect_same();
    if (step == 0) {
      EXPECT_NE(followed.mean()[0], factored.mean()[0]);  // in the last bits
    }
    if (step % 3 == 0) continue;
    followed.Remove(stats, &low_rank);
    factored.Remove(stats);
    expect_same();
  }
}

}  // namespace
}  // namespace codband::linalg
