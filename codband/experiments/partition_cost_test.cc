#include "codband/experiments/partition_cost.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace codband::experiments {
namespace {

TEST(PartitionCostTest, IsARatioOfMeansWithTheErrorOfPairs) {
  const Cost cost = CostOf(std::vector<double>{100, 300}, std::vector<double>{120, 320});
  EXPECT_EQ(cost.alone, 200);
  EXPECT_EQ(cost.partitioned, 220);
  EXPECT_NEAR(*cost.share, 0.1, 1e-12);
  // 120 - 1.1 * 100 = 10 and 320 - 1.1 * 300 = -10.
  EXPECT_NEAR(*cost.error, std::sqrt(200.0) / std::sqrt(2.0) / 200, 1e-12);
  // Populations that differ say nothing of it: every pair costs the same share.
  const Cost alike = CostOf(std::vector<double>{100, 300}, std::vector<double>{110, 330});
  EXPECT_NEAR(*alike.error, 0, 1e-12);
}

TEST(PartitionCostTest, WhatIsNotKnownIsNone) {
  const Cost single = CostOf(std::vector<double>{50}, std::vector<double>{60});
  EXPECT_NEAR(*single.share, 0.2, 1e-12);
  EXPECT_FALSE(single.error.has_value());
  EXPECT_FALSE(CostOf(std::vector<double>{0, 0}, std::vector<double>{1, 2}).share.has_value());
}

TEST(PartitionCostTest, TheFirstTenthEndsAtACheckpoint) {
  const auto results = [](std::vector<double> regret) {
    sim::RunResult run;
    run.regret = std::move(regret);
    return sim::PolicyResults{"codband", {run}};
  };
  // Of 60 rounds the first tenth is 6; the checkpoint at 7 is the first beyond it.
  const std::vector<std::size_t> rounds = {5, 7, 30, 60};
  const PartitionCost cost =
      CostOfPartitions(rounds, results({10, 20, 30, 40}), results({40, 50, 60, 75}));
  EXPECT_EQ(cost.in_all.alone, 40);
  EXPECT_EQ(cost.in_all.partitioned, 75);
  EXPECT_EQ(cost.after_first_tenth.alone, 20);
  EXPECT_EQ(cost.after_first_tenth.partitioned, 25);
  EXPECT_NEAR(*cost.after_first_tenth.share, 0.25, 1e-12);
  // Exactly at a tenth.
  EXPECT_EQ(CostOfPartitions(std::vector<std::size_t>{10, 100}, results({3, 10}), results({4, 12}))
                .after_first_tenth.partitioned,
            8);
}

}  // namespace
}  // namespace codband::experiments
