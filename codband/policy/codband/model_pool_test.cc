#include "codband/policy/codband/model_pool.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codband/base/check.h"
#include "codband/base/random.h"

namespace codband {
namespace {

const std::vector<double> kPoolX = {1, 2};
const std::vector<double> kPoolY = {-1, 1};

linalg::SufficientStats Stats(std::initializer_list<std::pair<std::vector<double>, double>> data) {
  linalg::SufficientStats stats(2);
  for (const auto& [x, r] : data) stats.Add(x, r);
  return stats;
}

class ModelPoolTest : public testing::Test {
 protected:
  const linalg::GaussianPosterior& Posterior(ModelId id) const {
    return pool_.model(pool_.IndexOf(id).value()).posterior;
  }

  linalg::LinearPrior prior_ = linalg::LinearPrior::Isotropic(2, 0.5, 0.25);
  ModelPool pool_{prior_};
};

TEST_F(ModelPoolTest, ModelsAreOrderedByAgeAndIdsAreNeverUsedAgain) {
  const ModelId first = pool_.Create();
  pool_.AddPeriods(first, 1, Stats({}));
  const ModelId second = pool_.Create();
  pool_.AddPeriods(second, 1, Stats({}));
  EXPECT_EQ(pool_.IndexOf(first), 0U);
  EXPECT_EQ(pool_.IndexOf(second), 1U);
  pool_.RemovePeriods(first, 1, Stats({}));
  EXPECT_EQ(pool_.IndexOf(first), std::nullopt);
  EXPECT_EQ(pool_.IndexOf(second), 0U);
  const ModelId third = pool_.Create();
  EXPECT_GT(third, second);
  EXPECT_EQ(pool_.IndexOf(third), 1U);
  EXPECT_EQ(pool_.IndexOf(kNoModel), std::nullopt);
}

TEST_F(ModelPoolTest, PosteriorIsThatOfAllPeriodsOnTheModel) {
  const ModelId id = pool_.Create();
  pool_.AddPeriods(id, 1, Stats({}));
  pool_.Observe(id, kPoolX, 3);
  pool_.AddPeriods(id, 2, Stats({{kPoolY, 1}, {kPoolX, 2}}));
  pool_.Withdraw(id, kPoolX, 3);
  linalg::GaussianPosterior expected(prior_);
  expected.Add(Stats({{kPoolY, 1}, {kPoolX, 2}}));
  EXPECT_EQ(Posterior(id).stats().m(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_NEAR(Posterior(id).mean()[i], expected.mean()[i], 1e-12);
  }
  EXPECT_NEAR(Posterior(id).Variance(kPoolX), expected.Variance(kPoolX), 1e-12);
}

TEST_F(ModelPoolTest, PeriodsAreCountedAndTheLastOneTakesTheModelAlong) {
  const ModelId id = pool_.Create();
  pool_.AddPeriods(id, 1, Stats({{kPoolX, 3}}));
  const ModelId other = pool_.Create();
  pool_.AddPeriods(other, 3, Stats({{kPoolY, 1}}));
  EXPECT_EQ(pool_.total_periods(), 4U);
  pool_.RemovePeriods(other, 2, Stats({}));
  EXPECT_EQ(pool_.total_periods(), 2U);
  EXPECT_EQ(pool_.model(1).periods, 1U);
  EXPECT_EQ(Posterior(other).stats().m(), 1U);
  pool_.RemovePeriods(id, 1, Stats({{kPoolX, 3}}));
  EXPECT_EQ(pool_.size(), 1U);
  EXPECT_EQ(pool_.total_periods(), 1U);
  EXPECT_THROW(pool_.RemovePeriods(other, 2, Stats({})), InternalError);
  EXPECT_THROW(pool_.Observe(id, kPoolX, 1), InternalError);
}

TEST_F(ModelPoolTest, UsersOfAModelAreCounted) {
  const ModelId id = pool_.Create();
  pool_.AddPeriods(id, 2, Stats({}));
  pool_.CountUser(id, 1);
  pool_.CountUser(id, 1);
  pool_.CountUser(id, -1);
  EXPECT_EQ(pool_.model(0).users, 1U);
  pool_.CountUser(id, -1);
  EXPECT_THROW(pool_.CountUser(id, -1), InternalError);
}

TEST_F(ModelPoolTest, AnotherPriorHoldsForModelsThereAreAndWillBe) {
  const ModelId id = pool_.Create();
  pool_.AddPeriods(id, 1, Stats({{kPoolX, 3}}));
  const linalg::LinearPrior other = linalg::LinearPrior::Isotropic(2, 7, 0.5);
  pool_.SetPrior(other);
  linalg::GaussianPosterior expected(other);
  expected.Add(Stats({{kPoolX, 3}}));
  EXPECT_NEAR(Posterior(id).mean()[1], expected.mean()[1], 1e-12);
  EXPECT_EQ(Posterior(pool_.Create()).prior_precision()[0], 7);
}

TEST_F(ModelPoolTest, ClockCountsObservationsAndRecencyFadesByIt) {
  const ModelId id = pool_.Create();
  pool_.AddPeriods(id, 1, Stats({}));
  Recency one;
  one.Add(pool_.clock(), 1);
  pool_.AddRecency(id, one);
  EXPECT_EQ(pool_.model(0).recency.At(pool_.clock(), 0), 1);
  for (int i = 0; i < 10; ++i) pool_.Observe(id, kPoolX, 1);
  pool_.Withdraw(id, kPoolX, 1);  // none that comes
  EXPECT_EQ(pool_.clock().now, 10U);
  EXPECT_NEAR(pool_.model(0).recency.At(pool_.clock(), 0), std::exp(-10 / 1e3), 1e-15);
  pool_.RemoveRecency(id, one);
  EXPECT_NEAR(pool_.model(0).recency.At(pool_.clock(), 0), 0, 1e-15);
}

TEST_F(ModelPoolTest, CorrectionChangesTheSumsAndTheMean) {
  const ModelId id = pool_.Create();
  pool_.AddPeriods(id, 1, Stats({{kPoolX, 3}}));
  const double mean = Posterior(id).mean()[0];
  pool_.Correct(id, Stats({{kPoolX, 3}}), Stats({{kPoolX, 3.0000001}}));
  EXPECT_NEAR(Posterior(id).stats().c()[0], 3.0000001, 1e-12);
  EXPECT_EQ(Posterior(id).stats().m(), 1U);
  EXPECT_NEAR(Posterior(id).mean()[0] / mean, 1 + 1e-7 / 3, 1e-14);
}

TEST_F(ModelPoolTest, WhatIsSavedIsReadBackAndGoesOnAsBefore) {
  pool_.AddPeriods(pool_.Create(), 1, Stats({}));
  const ModelId id = pool_.Create();
  pool_.AddPeriods(id, 3, Stats({{kPoolX, 3}}));
  pool_.RemovePeriods(0, 1, Stats({}));
  pool_.CountUser(id, 1);
  pool_.Observe(id, kPoolY, 2);
  ByteWriter out;
  pool_.Save(out);
  ModelPool restored(prior_);
  ByteReader in(out.bytes());
  restored.Load(in);
  in.ExpectEnd();
  ASSERT_TRUE(in.ok()) << in.status().ToString();
  EXPECT_EQ(restored.size(), 1U);
  EXPECT_EQ(restored.total_periods(), 3U);
  EXPECT_EQ(restored.model(0).users, 1U);
  EXPECT_EQ(restored.clock().now, 1U);
  EXPECT_EQ(restored.model(0).posterior.mean()[0], Posterior(id).mean()[0]);
  EXPECT_EQ(restored.Create(), id + 1);
}

// Of so many features that covariances are kept: they stay known while periods come and leave, and
// under another prior.
TEST(WideModelPoolTest, CovariancesFollowTheirModels) {
  constexpr std::size_t kDim = linalg::Covariance::kNarrow + 16;
  RandomStream random({3, 1}, 824);
  const auto period = [&](std::size_t visits) {
    linalg::SufficientStats data = linalg::SufficientStats::OfColumns(true);
    for (std::size_t i = 0; i < visits; ++i) {
      std::vector<double> x(kDim, 0.0);
      for (int name = 0; name < 6; ++name) x[random.Below(kDim)] = 1;
      x.back() = 1;
      data.Add(x, random.Normal());
    }
    return data;
  };
  ModelPool pool(linalg::LinearPrior::Isotropic(kDim, 0.5, 0.25));
  const ModelId id = pool.Create();
  std::vector<linalg::SufficientStats> periods;
  for (std::size_t i = 1; i <= 12; ++i) {
    periods.push_back(period(1 + i));
    pool.AddPeriods(id, 1, periods.back());
    if (i % 3 == 0) {
      pool.RemovePeriods(id, 1, periods.front());
      periods.erase(periods.begin());
    }
    if (i == 8) pool.SetPrior(linalg::LinearPrior::Isotropic(kDim, 2, 0.3));
    const PoolModel& model = pool.model(0);
    ASSERT_TRUE(model.covariance.known()) << i;
    std::vector<double> inverse(linalg::PackedSize(kDim));
    model.posterior.factor().Invert(inverse);
    for (std::size_t entry = 0; entry < inverse.size(); ++entry) {
      ASSERT_NEAR(model.covariance.packed()[entry], inverse[entry], 1e-11) << i;
    }
    // The factor is that of the sums.
    linalg::GaussianPosterior anew = model.posterior;
    anew.SetPrior(linalg::LinearPrior::Isotropic(kDim, i < 8 ? 0.5 : 2, i < 8 ? 0.25 : 0.3));
    EXPECT_NEAR(model.posterior.log_determinant(), anew.log_determinant(), 1e-9);
    for (std::size_t j = 0; j < kDim; ++j) {
      ASSERT_NEAR(model.posterior.mean()[j], anew.mean()[j], 1e-10);
    }
  }
}

TEST_F(ModelPoolTest, APartitionTellsWhatItsOwnUsersBrought) {
  pool_.BePartition(2);
  const ModelId id = pool_.Create();
  pool_.AddPeriods(id, 1, Stats({}));
  pool_.Observe(id, kPoolX, 3);
  pool_.Observe(id, kPoolY, 1);
  pool_.Withdraw(id, kPoolX, 3);
  const std::vector<ModelSums> own = pool_.OwnSums();
  ASSERT_EQ(own.size(), 1U);
  EXPECT_EQ(own[0].id, id);
  EXPECT_EQ(own[0].data.m(), 1U);
  EXPECT_NEAR(own[0].data.c()[0], -1, 1e-12);
  EXPECT_NEAR(own[0].data.c()[1], 1, 1e-12);
}

TEST_F(ModelPoolTest, APeriodThatComesOrLeavesIsNewsAndAnObservationOfManyIsNone) {
  pool_.BePartition(2);
  const ModelId id = pool_.Create();
  pool_.AddPeriods(id, 1, Stats({}));
  for (int i = 0; i < 100; ++i) pool_.Observe(id, kPoolX, 3);
  pool_.MarkPublished();
  pool_.Observe(id, kPoolX, 3);
  EXPECT_FALSE(pool_.HasNews());
  pool_.AddPeriods(id, 1, Stats({}));
  EXPECT_TRUE(pool_.HasNews());
  pool_.MarkPublished();
  pool_.RemovePeriods(id, 1, Stats({}));
  EXPECT_TRUE(pool_.HasNews());
}

TEST_F(ModelPoolTest, OwnSumsGrowBeforeTheIntercept) {
  pool_.BePartition(2);
  const ModelId id = pool_.Create();
  pool_.AddPeriods(id, 1, Stats({{{3, 1}, 2}}));
  pool_.Grow(linalg::LinearPrior::Isotropic(4, 0.5, 0.25), true);
  const std::vector<ModelSums> own = pool_.OwnSums();
  ASSERT_EQ(own.size(), 1U);
  const std::vector<double> expected = {6, 0, 0, 2};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(own[0].data.c()[i], expected[i]) << i;
}

// A model that others have as well stays when its last period of this partition leaves, and nothing
// of that period with it: no rounding either.
TEST_F(ModelPoolTest, OfAModelThatOnlyOthersHaveThereAreNoOwnSums) {
  pool_.BePartition(2);
  const ModelId id = pool_.Create();
  pool_.AddPeriods(id, 1, Stats({}));
  for (const double reward : {0.1, 0.2, 0.3}) pool_.Observe(id, kPoolX, reward);
  pool_.Import(std::vector<ModelSums>{{.id = id, .periods = 2, .data = Stats({{kPoolY, 1}})}}, {},
               prior_);
  pool_.RemovePeriods(id, 1, Stats({{kPoolX, 0.3}, {kPoolX, 0.2}, {kPoolX, 0.1}}));
  EXPECT_EQ(pool_.size(), 1U);
  EXPECT_EQ(pool_.own_size(), 0U);
  EXPECT_EQ(pool_.model(0).own_data().m(), 0U);
  EXPECT_EQ(pool_.model(0).own_data().q(), 0);
  EXPECT_EQ(pool_.model(0).own_data().c()[0], 0);
  EXPECT_EQ(Posterior(id).stats().m(), 1U);
}

TEST_F(ModelPoolTest, LoadingReplacesAPartitionAndTheNamesOfItsModels) {
  ByteWriter out;
  pool_.AddPeriods(pool_.Create(), 1, Stats({{kPoolX, 3}}));
  pool_.Save(out);
  ModelPool restored(prior_);
  restored.BePartition(2);
  const ModelId to = restored.Create();
  restored.AddPeriods(to, 1, Stats({}));
  const ModelId from = restored.Create();
  restored.AddPeriods(from, 1, Stats({}));
  ModelAliases aliases;
  ASSERT_EQ(aliases.Join(from, to), from);
  restored.Import({}, aliases, prior_);
  ASSERT_EQ(restored.Resolve(from), to);
  ByteReader in(out.bytes());
  restored.Load(in);
  ASSERT_TRUE(in.ok()) << in.status().ToString();
  EXPECT_FALSE(restored.is_partition());
  EXPECT_EQ(restored.Resolve(from), from);
}

TEST_F(ModelPoolTest, ModelsOutOfOrderAreRefused) {
  pool_.AddPeriods(pool_.Create(), 1, Stats({}));
  ByteWriter out;
  pool_.Save(out);
  std::string bytes = out.Take();
  bytes[8] = 0;  // the next id is not beyond that of the model
  ModelPool restored(prior_);
  ByteReader in(bytes);
  restored.Load(in);
  EXPECT_FALSE(in.ok());
  EXPECT_NE(in.status().message().find("model id"), std::string::npos) << in.status().message();
}

}  // namespace
}  // namespace codband
