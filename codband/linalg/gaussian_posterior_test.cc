#include "codband/linalg/gaussian_posterior.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "codband/base/check.h"
#include "codband/linalg/test_support.h"

namespace codband::linalg {
namespace {

void ExpectEqualsDense(const GaussianPosterior& posterior, const DenseModel& dense,
                       double tolerance) {
  const Eigen::MatrixXd lower = LowerToEigen(posterior.factor().packed(), posterior.dim());
  EXPECT_LT(RelativeError(lower * lower.transpose(), dense.precision), tolerance);
  EXPECT_LT(RelativeError(ToEigen(posterior.mean()), dense.mean()), tolerance);
}

TEST(GaussianPosteriorTest, PriorHasZeroMeanAndItsVariance) {
  const GaussianPosterior prior(4, 25, 0.01);
  EXPECT_EQ(ToEigen(prior.mean()).norm(), 0);
  EXPECT_NEAR(prior.Variance(std::vector<double>{1, 0, 0, 0}), 1 / 25.0, 1e-15);
  EXPECT_NEAR(prior.log_determinant(), 4 * std::log(25), 1e-12);
}

TEST(GaussianPosteriorTest, OneDimensionEqualsTheClosedForm) {
  // Prior N(0, 1/2), noise variance 1/4, observations (1, 3) and (2, 1):
  // precision 2 + 4·(1 + 4) = 22, information 4·(3 + 2) = 20.
  GaussianPosterior posterior(1, 2, 0.25);
  posterior.Add(std::vector<double>{1}, 3);
  posterior.Add(std::vector<double>{2}, 1);
  EXPECT_NEAR(posterior.mean()[0], 20.0 / 22, 1e-14);
  EXPECT_NEAR(posterior.Variance(std::vector<double>{1}), 1.0 / 22, 1e-15);
  EXPECT_NEAR(posterior.explained(), 400.0 / 22, 1e-12);
}

TEST(GaussianPosteriorTest, CorrectedSumsAreTheSameAfterSavingAndLoading) {
  const std::vector<Observation> all = RandomObservations(5, 40, 4);
  GaussianPosterior posterior(4, 1, 0.25);
  for (const auto& [x, r] : all) posterior.Add(x, r);
  const SufficientStats part = StatsOf(4, std::span(all).first(20));
  SufficientStats rounded = part;
  rounded.RoundToFloat();
  posterior.Correct(part, rounded);
  ByteWriter out;
  posterior.Save(out);
  GaussianPosterior loaded(4, 1, 0.25);
  ByteReader in(out.bytes());
  loaded.Load(in);
  ASSERT_TRUE(in.ok());
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(loaded.mean()[i], posterior.mean()[i]);
  EXPECT_EQ(loaded.explained(), posterior.explained());
}

RC_GTEST_PROP(GaussianPosteriorTest, AnySequenceOfAddAndRemoveEqualsTheDenseModel, ()) {
  const auto dim = *rc::gen::inRange<std::size_t>(1, 30);
  const auto seed = *rc::gen::arbitrary<std::uint32_t>();
  const double noise_variance = *rc::gen::element(0.01, 0.25, 1.0);
  const double prior = *rc::gen::element(0.1, 1.0, 25.0);
  const std::vector<Observation> all = RandomObservations(seed, 120, dim);
  GaussianPosterior posterior(dim, prior, noise_variance);
  for (const auto& [x, r] : all) posterior.Add(x, r);
  // Out: ten one by one, the next thirty at once; and twenty of these back in.
  for (std::size_t i = 0; i < 10; ++i) posterior.Remove(all[i].first, all[i].second);
  SufficientStats thirty(dim);
  SufficientStats twenty(dim);
  for (std::size_t i = 10; i < 40; ++i) thirty.Add(all[i].first, all[i].second);
  for (std::size_t i = 20; i < 40; ++i) twenty.Add(all[i].first, all[i].second);
  posterior.Remove(thirty);
  posterior.Add(twenty);
  DenseModel dense(dim, prior);
  dense.Add(std::span(all).subspan(20), noise_variance);
  ExpectEqualsDense(posterior, dense, 1e-9);
  RC_ASSERT(posterior.stats().m() == 100U);
}

RC_GTEST_PROP(GaussianPosteriorTest, PriorWithDifferentPrecisionsAndAMeanEqualsTheDenseModel, ()) {
  const auto dim = *rc::gen::inRange<std::size_t>(1, 30);
  const auto seed = *rc::gen::arbitrary<std::uint32_t>();
  const double noise_variance = *rc::gen::element(0.01, 0.25, 1.0);
  const LinearPrior prior = RandomPrior(seed, dim, noise_variance);
  const std::vector<Observation> all = RandomObservations(seed, 60, dim);
  GaussianPosterior posterior(prior);
  ExpectEqualsDense(posterior, DenseModel(prior), 1e-12);
  for (const auto& [x, r] : all) posterior.Add(x, r);
  for (std::size_t i = 0; i < 5; ++i) posterior.Remove(all[i].first, all[i].second);
  posterior.Remove(StatsOf(dim, std::span(all).subspan(5, 20)));
  posterior.Add(StatsOf(dim, std::span(all).subspan(5, 10)));
  DenseModel dense(prior);
  dense.Add(std::span(all).subspan(5, 10), noise_variance);
  dense.Add(std::span(all).subspan(25), noise_variance);
  ExpectEqualsDense(posterior, dense, 1e-9);
  const Eigen::VectorXd x = ToEigen(all[0].first);
  const double variance = x.dot(dense.covariance() * x);
  RC_ASSERT(std::abs(posterior.Variance(all[0].first) - variance) < 1e-9 * variance);
  const Eigen::MatrixXd lower = dense.precision.llt().matrixL();
  RC_ASSERT(std::abs(posterior.log_determinant() - 2 * lower.diagonal().array().log().sum()) <
            1e-9);
  const double explained = dense.information.dot(dense.mean());
  RC_ASSERT(std::abs(posterior.explained() - explained) < 1e-8 * (1 + explained));
}

RC_GTEST_PROP(GaussianPosteriorTest, ReplacedPriorEqualsStartingWithIt, ()) {
  const auto dim = *rc::gen::inRange<std::size_t>(1, 30);
  const auto seed = *rc::gen::arbitrary<std::uint32_t>();
  const std::vector<Observation> all = RandomObservations(seed, 50, dim);
  GaussianPosterior posterior(RandomPrior(seed, dim, 0.25));
  for (std::size_t i = 0; i < 40; ++i) posterior.Add(all[i].first, all[i].second);
  const LinearPrior other = RandomPrior(seed + 1, dim, 0.04);
  posterior.SetPrior(other);
  RC_ASSERT(posterior.noise_variance() == 0.04);
  DenseModel dense(other);
  dense.Add(std::span(all).first(40), 0.04);
  ExpectEqualsDense(posterior, dense, 1e-9);
  // And goes on so.
  for (std::size_t i = 40; i < 50; ++i) posterior.Add(all[i].first, all[i].second);
  dense.Add(std::span(all).subspan(40), 0.04);
  ExpectEqualsDense(posterior, dense, 1e-9);
  posterior.Clear();
  ExpectEqualsDense(posterior, DenseModel(other), 1e-12);
}

TEST(GaussianPosteriorTest, HalfAMillionChangesStayWithin1e8OfTheDenseModel) {
  constexpr std::size_t kDim = 25;
  constexpr double kNoiseVariance = 0.01;
  RandomStream random({1, 0}, 9);
  GaussianPosterior posterior(kDim, 0.1, kNoiseVariance);
  std::vector<Observation> held;
  // A window of 1000 observations slides over 250,000: each comes and goes by rank-one changes.
  for (int step = 0; step < 250'000; ++step) {
    std::vector<double> x = RandomVector(random, kDim, 0.2);
    const double r = random.Normal();
    posterior.Add(x, r);
    if (held.size() < 1000) {
      held.emplace_back(std::move(x), r);
    } else {
      Observation& oldest = held[static_cast<std::size_t>(step) % 1000];
      posterior.Remove(oldest.first, oldest.second);
      oldest = {std::move(x), r};
    }
  }
  DenseModel dense(kDim, 0.1);
  dense.Add(held, kNoiseVariance);
  ExpectEqualsDense(posterior, dense, 1e-8);
}

RC_GTEST_PROP(GaussianPosteriorTest, VarianceShareIsABoundWhateverHappens, ()) {
  const auto dim = *rc::gen::inRange<std::size_t>(1, 12);
  const auto seed = *rc::gen::inRange<std::uint64_t>(0, 1000);
  const LinearPrior prior = RandomPrior(seed, dim, 0.3);
  GaussianPosterior posterior(prior);
  const std::vector<Observation> data = RandomObservations(seed, 60, dim);
  RandomStream random({seed, dim}, 80);
  std::size_t added = 0;
  for (int step = 0; step < 80; ++step) {
    const std::uint64_t what = random.Below(8);
    if (what == 0 && added > 0) {
      --added;
      posterior.Remove(data[added].first, data[added].second);
    } else if (what == 1) {
      posterior.RefreshVarianceShare();
      RC_ASSERT(!posterior.VarianceShareIsOld());
    } else if (what == 2) {
      posterior.SetPrior(prior);
    } else if (added < data.size()) {
      posterior.Add(data[added].first, data[added].second);
      ++added;
    }
    const std::vector<double> x = RandomVector(random, dim);
    double before = 0;
    for (std::size_t j = 0; j < dim; ++j) before += x[j] * x[j] / prior.precision[j];
    RC_ASSERT(posterior.variance_share() <= 1);
    RC_ASSERT(posterior.Variance(x) <= posterior.variance_share() * before * (1 + 1e-9));
  }
}

TEST(GaussianPosteriorTest, VarianceShareFallsWithWhatIsKnown) {
  GaussianPosterior posterior(5, 2, 0.1);
  EXPECT_EQ(posterior.variance_share(), 1);
  for (const auto& [x, r] : RandomObservations(3, 500, 5)) posterior.Add(x, r);
  EXPECT_TRUE(posterior.VarianceShareIsOld());
  posterior.RefreshVarianceShare();
  EXPECT_LT(posterior.variance_share(), 0.05);
  EXPECT_FALSE(posterior.VarianceShareIsOld());
}

TEST(GaussianPosteriorTest, GuardedDowndateIsReplacedByARebuildAndCounted) {
  // One observation weighs 1e10 times the prior: taking it out by a rotation would leave noise.
  GaussianPosterior posterior(3, 1e-4, 1e-6);
  posterior.Add(std::vector<double>{1, 0.5, 0.2}, 1);
  posterior.Remove(std::vector<double>{1, 0.5, 0.2}, 1);
  EXPECT_EQ(posterior.guarded_downdates(), 1U);
  EXPECT_NEAR(posterior.Variance(std::vector<double>{1, 0, 0}), 1e4, 1e-6);
  EXPECT_EQ(ToEigen(posterior.mean()).norm(), 0);
}

TEST(GaussianPosteriorTest, DrawsHaveThePosteriorsMeanAndCovariance) {
  constexpr std::size_t kDim = 3;
  GaussianPosterior posterior(kDim, 2, 0.5);
  const std::vector<Observation> data = RandomObservations(3, 8, kDim);
  for (const auto& [x, r] : data) posterior.Add(x, r);
  DenseModel dense(kDim, 2);
  dense.Add(data, 0.5);
  RandomStream random({8, 0}, 1);
  constexpr int kDraws = 100'000;
  constexpr double kScale = 0.7;
  Eigen::Vector3d sum = Eigen::Vector3d::Zero();
  Eigen::Matrix3d products = Eigen::Matrix3d::Zero();
  std::vector<double> theta(kDim);
  for (int i = 0; i < kDraws; ++i) {
    posterior.Sample(random, kScale, theta);
    const Eigen::Vector3d centred = ToEigen(theta) - dense.mean();
    sum += centred;
    products += centred * centred.transpose();
  }
  EXPECT_LT((sum / kDraws).norm(), 0.01);
  EXPECT_LT(RelativeError(products / kDraws, kScale * kScale * dense.covariance()), 0.02);
}

TEST(GaussianPosteriorTest, SaveLoadContinueIsBitIdentical) {
  constexpr std::size_t kDim = 7;
  const std::vector<Observation> data = RandomObservations(5, 60, kDim);
  GaussianPosterior original(kDim, 0.1, 0.01);
  for (std::size_t i = 0; i < 30; ++i) original.Add(data[i].first, data[i].second);
  ByteWriter out;
  original.Save(out);
  EXPECT_EQ(out.bytes().size(), GaussianPosterior::SavedBytes(kDim));
  GaussianPosterior restored(kDim, 0.1, 0.01);
  ByteReader in(out.bytes());
  restored.Load(in);
  in.ExpectEnd();
  ASSERT_TRUE(in.ok());
  for (std::size_t i = 30; i < 60; ++i) {
    original.Add(data[i].first, data[i].second);
    restored.Add(data[i].first, data[i].second);
  }
  ByteWriter again;
  ByteWriter restored_again;
  original.Save(again);
  restored.Save(restored_again);
  EXPECT_EQ(again.bytes(), restored_again.bytes());
  EXPECT_EQ(ToEigen(original.mean()), ToEigen(restored.mean()));
}

TEST(GaussianPosteriorTest, SaveLoadUnderALearnedPriorKeepsTheMean) {
  constexpr std::size_t kDim = 4;
  GaussianPosterior original(kDim, 0.1, 0.01);
  for (const auto& [x, r] : RandomObservations(6, 9, kDim)) original.Add(x, r);
  const LinearPrior prior = RandomPrior(6, kDim, 0.5);
  original.SetPrior(prior);
  ByteWriter out;
  original.Save(out);
  GaussianPosterior restored(prior);
  ByteReader in(out.bytes());
  restored.Load(in);
  in.ExpectEnd();
  ASSERT_TRUE(in.ok());
  EXPECT_EQ(ToEigen(original.mean()), ToEigen(restored.mean()));
  EXPECT_EQ(original.explained(), restored.explained());
  EXPECT_EQ(original.log_determinant(), restored.log_determinant());
}

TEST(GaussianPosteriorTest, InvalidPriorIsRefused) {
  LinearPrior prior = RandomPrior(1, 2, 1);
  GaussianPosterior posterior(prior);
  prior.precision[1] = 0;
  EXPECT_THROW(posterior.SetPrior(prior), InternalError);
  prior = RandomPrior(1, 2, 0);
  EXPECT_THROW(posterior.SetPrior(prior), InternalError);
  EXPECT_THROW(posterior.SetPrior(RandomPrior(1, 3, 1)), InternalError);
}

}  // namespace
}  // namespace codband::linalg
