#include "codband/policy/codband/departure.h"

#include <gtest/gtest.h>

#include <cmath>

#include "codband/linalg/test_support.h"
#include "codband/policy/policy.h"
#include "codband/policy/registry.h"

namespace codband {
namespace {

constexpr std::size_t kDepartureFeatures = 3;
constexpr std::size_t kDepartureDim = 4;  // and an intercept
constexpr double kNoise = 0.09;

// Observations with 1 in the last place.
std::vector<linalg::Observation> Extended(std::uint64_t seed, std::size_t count) {
  std::vector<linalg::Observation> data = linalg::RandomObservations(seed, count, kDepartureDim);
  for (auto& [x, r] : data) x.back() = 1;
  return data;
}

// A model that has learned from the user and from others.
struct Group {
  std::vector<linalg::Observation> own = Extended(1, 12);
  std::vector<linalg::Observation> others = Extended(2, 40);
  linalg::GaussianPosterior model{linalg::RandomPrior(3, kDepartureDim, kNoise)};
  linalg::SufficientStats data = linalg::StatsOf(kDepartureDim, own);

  Group() {
    model.Add(linalg::StatsOf(kDepartureDim, others));
    model.Add(data);
  }
  double Rest(const linalg::Observation& each) const {
    return each.second - linalg::ToEigen(each.first).dot(linalg::ToEigen(model.mean()));
  }
};

TEST(DepartureTest, EvidenceIsThatOfAllPairs) {
  const Group group;
  const linalg::Observation next = Extended(4, 1).front();
  double products = 0;
  double squares = 0;
  for (const linalg::Observation& each : group.own) {
    const double common = linalg::ToEigen(each.first)
                              .head(kDepartureFeatures)
                              .dot(linalg::ToEigen(next.first).head(kDepartureFeatures));
    products += group.Rest(each) * group.Rest(next) * common;
    squares += common * common;
  }
  const double others = 40.0 / 52;
  const DepartureEvidence evidence =
      DepartureEvidence::Of(group.model, group.data, kDepartureFeatures, next.first, next.second);
  EXPECT_NEAR(evidence.products, products / (others * others), 1e-9 * std::abs(products));
  EXPECT_NEAR(evidence.squares, squares, 1e-9 * squares);
}

// What is 0 at some columns says the same whether these columns are listed or not.
TEST(DepartureTest, ColumnsThatDoNotOccurDoNotMatter) {
  Group group;
  for (auto& [x, r] : group.own) x[1] = 0;
  group.data = linalg::StatsOf(kDepartureDim, group.own);
  auto listed = linalg::SufficientStats::OfColumns(true);
  for (const auto& [x, r] : group.own) listed.Add(x, r);
  ASSERT_EQ(listed.dim(), kDepartureDim - 1);
  const linalg::Observation next = Extended(4, 1).front();
  const auto of = [&](const linalg::SufficientStats& data) {
    return DepartureEvidence::Of(group.model, data, kDepartureFeatures, next.first, next.second);
  };
  EXPECT_NEAR(of(listed).products, of(group.data).products,
              1e-12 * std::abs(of(group.data).products));
  EXPECT_NEAR(of(listed).squares, of(group.data).squares, 1e-12 * of(group.data).squares);
  std::vector<double> departure(kDepartureFeatures, 9.0);
  std::vector<double> expected(kDepartureFeatures);
  DepartureSolver().Solve(group.model, listed, 0.3, departure);
  DepartureSolver().Solve(group.model, group.data, 0.3, expected);
  EXPECT_EQ(departure[1], 0);
  EXPECT_LT((linalg::ToEigen(departure) - linalg::ToEigen(expected)).norm(), 1e-12);
}

// With many columns the system is solved by iteration. What the steps leave out is little: of what
// the departure explains of the user's rewards, bᵀδ - ½δᵀAδ, less than a hundredth.
TEST(DepartureTest, ManyColumnsAreSolvedAlike) {
  constexpr std::size_t kMany = 90;
  for (const double variance : {1e-6, 0.01, 100.0}) {
    for (const std::size_t count : {20, 120}) {
      const std::vector<linalg::Observation> own = linalg::RandomObservations(8, count, kMany);
      linalg::GaussianPosterior model(kMany, 2, kNoise);
      model.Add(linalg::StatsOf(kMany, linalg::RandomObservations(9, 200, kMany)));
      const linalg::SufficientStats data = linalg::StatsOf(kMany, own);
      model.Add(data);
      Eigen::MatrixXd precision = Eigen::MatrixXd::Identity(kMany, kMany) / variance;
      Eigen::VectorXd weighted = Eigen::VectorXd::Zero(kMany);
      for (const auto& [x, r] : own) {
        const Eigen::VectorXd dense = linalg::ToEigen(x);
        precision += dense * dense.transpose() / kNoise;
        weighted += (r - dense.dot(linalg::ToEigen(model.mean()))) * dense / kNoise;
      }
      const Eigen::VectorXd expected = precision.ldlt().solve(weighted);
      std::vector<double> departure(kMany);
      DepartureSolver().Solve(model, data, variance, departure);
      const Eigen::VectorXd found = linalg::ToEigen(departure);
      const double most = 0.5 * weighted.dot(expected);
      EXPECT_GT(weighted.dot(found) - 0.5 * found.dot(precision * found), 0.99 * most)
          << variance << ' ' << count;
      if (variance > 0.001) continue;
      EXPECT_LT((found - expected).norm(), 1e-5 * expected.norm());
    }
  }
}

TEST(DepartureTest, SolvesTheRidgeRegressionOfTheResiduals) {
  const Group group;
  constexpr double kVariance = 0.3;
  Eigen::MatrixXd precision = Eigen::MatrixXd::Zero(kDepartureDim, kDepartureDim);
  precision.diagonal().head(kDepartureFeatures).setConstant(1 / kVariance);
  precision(kDepartureFeatures, kDepartureFeatures) =
      group.model.prior_precision()[kDepartureFeatures];
  Eigen::VectorXd weighted = Eigen::VectorXd::Zero(kDepartureDim);
  for (const linalg::Observation& each : group.own) {
    const Eigen::VectorXd x = linalg::ToEigen(each.first);
    precision += x * x.transpose() / kNoise;
    weighted += group.Rest(each) * x / kNoise;
  }
  const Eigen::VectorXd expected = precision.ldlt().solve(weighted);
  std::vector<double> departure(kDepartureFeatures);
  DepartureSolver().Solve(group.model, group.data, kVariance, departure);
  EXPECT_LT((linalg::ToEigen(departure) - expected.head(kDepartureFeatures)).norm(),
            1e-9 * expected.norm());
}

// Whatever is kept of the system before: of the same, of one with the same matrix, of another.
TEST(DepartureTest, ASystemThatIsKeptIsSolvedAsIfItWereNot) {
  Group group;
  DepartureSolver kept;
  std::vector<double> found(kDepartureFeatures);
  std::vector<double> expected(kDepartureFeatures);
  RandomStream random({12, 0}, 605);
  for (int i = 0; i < 200; ++i) {
    kept.KeepSystem(random.Below(4) > 0);
    const auto& [x, r] = group.own[random.Below(group.own.size())];
    if (random.Below(3) == 0) group.model.Add(x, r);
    if (random.Below(3) == 0) group.data.Add(x, r);
    const double variance = random.Below(4) == 0 ? 0.4 : 0.3;
    kept.Solve(group.model, group.data, variance, found);
    DepartureSolver().Solve(group.model, group.data, variance, expected);
    ASSERT_EQ(found, expected) << i;
  }
}

TEST(DepartureTest, VarianceGoesFromItsPriorMeanToTheMomentEstimate) {
  EXPECT_DOUBLE_EQ(DepartureEvidence().Variance(kNoise, 0.5), 0.5);
  EXPECT_NEAR((DepartureEvidence{.products = 2e6, .squares = 1e7}).Variance(kNoise, 0.5), 0.2,
              1e-6);
  EXPECT_EQ((DepartureEvidence{.products = -2e6, .squares = 1e7}).Variance(kNoise, 0.5), 0);
  DepartureEvidence evidence{.products = 3, .squares = 4};
  evidence.Add({.products = 1, .squares = 2});
  evidence.Remove({.products = 3, .squares = 4});
  EXPECT_EQ(evidence.products, 1);
  EXPECT_EQ(evidence.squares, 2);
}

// Users around one common parameter, `apart` in each feature; returns the estimate of τ.
double FoundDeviation(double apart) {
  RandomStream random({8, 0}, 1);
  const std::vector<double> taste = linalg::RandomVector(random, kDepartureDim);
  linalg::GaussianPosterior model(linalg::LinearPrior::Isotropic(kDepartureDim, 1, kNoise));
  DepartureEvidence evidence;
  for (int user = 0; user < 60; ++user) {
    std::vector<double> own = taste;
    for (std::size_t i = 0; i < kDepartureFeatures; ++i) own[i] += apart * random.Normal();
    linalg::SufficientStats data(kDepartureDim);
    for (int i = 0; i < 40; ++i) {
      std::vector<double> x = linalg::RandomVector(random, kDepartureDim);
      x.back() = 1;
      const double r =
          linalg::ToEigen(x).dot(linalg::ToEigen(own)) + std::sqrt(kNoise) * random.Normal();
      if (user > 0 && i > 0) {
        evidence.Add(DepartureEvidence::Of(model, data, kDepartureFeatures, x, r));
      }
      data.Add(x, r);
      model.Add(x, r);
    }
  }
  return std::sqrt(evidence.Variance(kNoise, 0.04));
}

TEST(DepartureTest, FindsTheVarianceOfTheRandomEffects) {
  EXPECT_NEAR(FoundDeviation(0.5), 0.5, 0.1);
  EXPECT_NEAR(FoundDeviation(0.2), 0.2, 0.05);
  EXPECT_LT(FoundDeviation(0), 0.05);
}

// Users of one model, of whom the first likes feature 0 more and the second less than the others:
// what both are expected to give for it.
std::pair<double, double> Expected(const std::string& departure) {
  const auto policy =
      std::move(
          MakePolicy("codband:hyper=fixed,sigma=1,lambda=1,a=0.01,b=10,intercept=no,departure=" +
                         departure,
                     {.dim = kDepartureFeatures}))
          .value();
  RandomStream random({9, 0}, 1);
  std::uint64_t event = 0;
  for (int round = 0; round < 60; ++round) {
    for (UserId user = 0; user < 10; ++user) {
      const std::vector<double> arm = linalg::RandomVector(random, kDepartureFeatures);
      const EventKey key{1, ++event};
      const Decision decision = policy->Choose(user, {arm, kDepartureFeatures}, key);
      const double liking = user == 0 ? 1.3 : user == 1 ? 0.7 : 1;
      policy->Learn(decision, liking * arm[0] + 0.5 * random.Normal(), key);
    }
  }
  EXPECT_EQ(policy->model_count(), 1U);
  const std::vector<double> feature = {1, 0, 0};
  return {policy->Choose(0, {feature, kDepartureFeatures}, {1, 0}).mean,
          policy->Choose(1, {feature, kDepartureFeatures}, {1, 0}).mean};
}

TEST(DepartureTest, UsersOfOneModelHaveTheirOwnEstimates) {
  const auto [more, less] = Expected("learned");
  EXPECT_GT(more, 1.1);
  EXPECT_LT(less, 0.95);
  const auto [same, again] = Expected("none");
  EXPECT_NEAR(same, again, 0.01);
}

}  // namespace
}  // namespace codband
