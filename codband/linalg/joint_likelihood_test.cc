#include "codband/linalg/joint_likelihood.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <numbers>

#include "codband/linalg/test_support.h"

namespace codband::linalg {
namespace {

constexpr double kNoiseVariance = 0.04;

GaussianPosterior Learned(std::size_t dim, double prior, std::span<const Observation> data) {
  GaussianPosterior posterior(dim, prior, kNoiseVariance);
  for (const auto& [x, r] : data) posterior.Add(x, r);
  return posterior;
}

// ln N(r | Xμ, σ²I + XΣXᵀ), straight from the definition.
double DenseLogDensity(const DenseModel& model, std::span<const Observation> data) {
  const auto m = static_cast<Eigen::Index>(data.size());
  Eigen::MatrixXd X(m, model.information.size());
  Eigen::VectorXd r(m);
  for (Eigen::Index i = 0; i < m; ++i) {
    X.row(i) = ToEigen(data[static_cast<std::size_t>(i)].first);
    r(i) = data[static_cast<std::size_t>(i)].second;
  }
  const Eigen::MatrixXd covariance =
      kNoiseVariance * Eigen::MatrixXd::Identity(m, m) + X * model.covariance() * X.transpose();
  const Eigen::LLT<Eigen::MatrixXd> llt(covariance);
  const Eigen::VectorXd residual = r - X * model.mean();
  const Eigen::MatrixXd lower = llt.matrixL();
  return -0.5 * (static_cast<double>(m) * std::log(2 * std::numbers::pi) +
                 2 * lower.diagonal().array().log().sum() + residual.dot(llt.solve(residual)));
}

RC_GTEST_PROP(JointLikelihoodTest, EqualsTheDenseGaussianForEveryModelAtOnce, ()) {
  const auto dim = *rc::gen::inRange<std::size_t>(1, 20);
  const auto count = *rc::gen::inRange<std::size_t>(1, 40);
  const auto models = *rc::gen::inRange<std::size_t>(1, 10);
  const auto seed = *rc::gen::arbitrary<std::uint32_t>();
  const std::vector<Observation> data = RandomObservations(seed, count, dim);
  std::vector<GaussianPosterior> posteriors;
  std::vector<double> expected;
  for (std::size_t k = 0; k < models; ++k) {
    const std::vector<Observation> others = RandomObservations(seed + 1 + k, 5 * k, dim);
    posteriors.push_back(Learned(dim, 0.5, others));
    DenseModel dense(dim, 0.5);
    dense.Add(others, kNoiseVariance);
    expected.push_back(DenseLogDensity(dense, data));
    // Every second model has learned from the data already.
    if (k % 2 == 1) posteriors.back().Add(StatsOf(dim, data));
  }
  std::vector<JointLikelihood::Model> queries;
  for (std::size_t k = 0; k < models; ++k) {
    queries.push_back({.posterior = &posteriors[k], .contains_data = k % 2 == 1});
  }
  std::vector<double> actual(models);
  JointLikelihood(dim).LogDensities(StatsOf(dim, data), queries, actual);
  for (std::size_t k = 0; k < models; ++k) {
    RC_ASSERT(std::abs(actual[k] - expected[k]) < 1e-7 * (1 + std::abs(expected[k])));
  }
}

RC_GTEST_PROP(JointLikelihoodTest, EqualsTheChainOfOneStepPredictives, ()) {
  const auto dim = *rc::gen::inRange<std::size_t>(1, 20);
  const auto seed = *rc::gen::arbitrary<std::uint32_t>();
  const std::vector<Observation> data = RandomObservations(seed, 40, dim);
  const GaussianPosterior start = Learned(dim, 2, RandomObservations(seed + 1, 15, dim));
  double chain = 0;
  GaussianPosterior model = start;
  for (const auto& [x, r] : data) {
    const double variance = kNoiseVariance + model.Variance(x);
    const double residual = r - ToEigen(x).dot(ToEigen(model.mean()));
    chain -= 0.5 * (std::log(2 * std::numbers::pi * variance) + residual * residual / variance);
    model.Add(x, r);
  }
  const JointLikelihood::Model query{.posterior = &start, .contains_data = false};
  double actual = 0;
  JointLikelihood(dim).LogDensities(StatsOf(dim, data), {&query, 1}, {&actual, 1});
  RC_ASSERT(std::abs(actual - chain) < 1e-8 * (1 + std::abs(chain)));
}

RC_GTEST_PROP(JointLikelihoodTest, PriorsThatDifferAndHaveAMeanEqualDenseGaussianAndChain, ()) {
  const auto dim = *rc::gen::inRange<std::size_t>(1, 15);
  const auto count = *rc::gen::inRange<std::size_t>(1, 30);
  const auto models = *rc::gen::inRange<std::size_t>(1, 7);
  const auto seed = *rc::gen::arbitrary<std::uint32_t>();
  const std::vector<Observation> data = RandomObservations(seed, count, dim);
  std::vector<GaussianPosterior> posteriors;
  std::vector<double> dense_densities;
  std::vector<double> chains;
  for (std::size_t k = 0; k < models; ++k) {
    // Every model with a prior of its own: no lane may take another's.
    const LinearPrior prior = RandomPrior(seed + k, dim, kNoiseVariance);
    const std::vector<Observation> others = RandomObservations(seed + 1 + k, 4 * k, dim);
    DenseModel dense(prior);
    dense.Add(others, kNoiseVariance);
    dense_densities.push_back(DenseLogDensity(dense, data));
    GaussianPosterior posterior(prior);
    posterior.Add(StatsOf(dim, others));
    const GaussianPosterior without = posterior;
    double chain = 0;
    for (const auto& [x, r] : data) {
      const double variance = kNoiseVariance + posterior.Variance(x);
      const double residual = r - ToEigen(x).dot(ToEigen(posterior.mean()));
      chain -= 0.5 * (std::log(2 * std::numbers::pi * variance) + residual * residual / variance);
      posterior.Add(x, r);
    }
    chains.push_back(chain);
    posteriors.push_back(k % 2 == 1 ? posterior : without);
  }
  std::vector<JointLikelihood::Model> queries;
  for (std::size_t k = 0; k < models; ++k) {
    queries.push_back({.posterior = &posteriors[k], .contains_data = k % 2 == 1});
  }
  std::vector<double> actual(models);
  JointLikelihood(dim).LogDensities(StatsOf(dim, data), queries, actual);
  for (std::size_t k = 0; k < models; ++k) {
    RC_ASSERT(std::abs(actual[k] - dense_densities[k]) < 1e-7 * (1 + std::abs(actual[k])));
    RC_ASSERT(std::abs(actual[k] - chains[k]) < 1e-7 * (1 + std::abs(actual[k])));
  }
}

RC_GTEST_PROP(JointLikelihoodTest, MeansAreThoseOfModelsThatHaveLearnedFromTheData, ()) {
  const auto dim = *rc::gen::inRange<std::size_t>(1, 15);
  const auto count = *rc::gen::inRange<std::size_t>(1, 30);
  const auto models = *rc::gen::inRange<std::size_t>(1, 7);
  const auto seed = *rc::gen::arbitrary<std::uint32_t>();
  const std::vector<Observation> data = RandomObservations(seed, count, dim);
  std::vector<GaussianPosterior> posteriors;
  std::vector<Eigen::VectorXd> expected;
  for (std::size_t k = 0; k < models; ++k) {
    const LinearPrior prior = RandomPrior(seed + k, dim, kNoiseVariance);
    const std::vector<Observation> others = RandomObservations(seed + 1 + k, 4 * k, dim);
    posteriors.emplace_back(prior).Add(StatsOf(dim, others));
    DenseModel dense(prior);
    dense.Add(others, kNoiseVariance);
    dense.Add(data, kNoiseVariance);
    expected.push_back(dense.mean());
  }
  std::vector<JointLikelihood::Model> queries;
  for (const GaussianPosterior& posterior : posteriors) {
    queries.push_back({.posterior = &posterior, .contains_data = false});
  }
  std::vector<double> means(models * dim);
  JointLikelihood(dim).Means(StatsOf(dim, data), queries, means);
  for (std::size_t k = 0; k < models; ++k) {
    const Eigen::VectorXd actual = ToEigen(std::span(means).subspan(k * dim, dim));
    RC_ASSERT((actual - expected[k]).norm() < 1e-8 * (1 + expected[k].norm()));
  }
}

TEST(JointLikelihoodTest, ModelOfOnlyTheDataIsThePriorWithoutThem) {
  constexpr std::size_t kDim = 25;
  const std::vector<Observation> data = RandomObservations(4, 3000, kDim);
  const GaussianPosterior prior(kDim, 0.1, kNoiseVariance);
  const GaussianPosterior own = Learned(kDim, 0.1, data);
  const JointLikelihood::Model queries[] = {{.posterior = &prior, .contains_data = false},
                                            {.posterior = &own, .contains_data = true}};
  double densities[2];
  JointLikelihood(kDim).LogDensities(StatsOf(kDim, data), queries, densities);
  EXPECT_NEAR(densities[0], densities[1], 1e-6 * std::abs(densities[0]));
}

}  // namespace
}  // namespace codband::linalg
