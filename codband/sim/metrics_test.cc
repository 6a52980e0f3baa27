#include "codband/sim/metrics.h"

#include <gtest/gtest.h>

namespace codband::sim {
namespace {

TEST(ChangeTrackerTest, FirstAlarmAfterAChangeDetectsItAndOthersAreFalse) {
  ChangeTracker tracker(1);
  // step:          0      1      2      3      4      5      6      7
  const bool changed[] = {false, false, true, false, false, false, true, false};
  const bool alarm[] = {false, true, false, false, true, true, false, false};
  for (int i = 0; i < 8; ++i) tracker.Step(0, changed[i], alarm[i]);
  const ChangeMetrics& metrics = tracker.metrics();
  EXPECT_EQ(metrics.true_changes, 2U);
  EXPECT_EQ(metrics.detected, 1U);
  EXPECT_EQ(metrics.missed(), 1U);
  EXPECT_EQ(metrics.delays, std::vector<std::uint32_t>{2});
  EXPECT_EQ(metrics.false_alarms, 2U);  // steps 1 and 5
  EXPECT_EQ(metrics.stable_steps, 3U);  // steps 0, 1 and 5
  EXPECT_DOUBLE_EQ(metrics.false_alarms_per_1000(), 2000.0 / 3);
}

TEST(ChangeTrackerTest, ChangeOvertakenByTheNextIsMissed) {
  ChangeTracker tracker(2);
  tracker.Step(1, true, false);
  tracker.Step(1, true, true);
  EXPECT_EQ(tracker.metrics().true_changes, 2U);
  EXPECT_EQ(tracker.metrics().detected, 1U);
  EXPECT_EQ(tracker.metrics().delays, std::vector<std::uint32_t>{0});
}

TEST(ChangeMetricsTest, MedianOfDelays) {
  ChangeMetrics metrics;
  EXPECT_FALSE(metrics.median_delay().has_value());
  metrics.delays = {9, 1, 4};
  EXPECT_EQ(metrics.median_delay(), 4);
  metrics.delays = {9, 1, 4, 5};
  EXPECT_EQ(metrics.median_delay(), 4.5);
}

TEST(ClusterMetricsTest, CountsPairsOfUsers) {
  // Truth {0,1,2} {3,4}; models {0,1} {2,3} {4}: pairs on one model 2, in one group 4, both 1.
  const std::vector<ModelId> models = {7, 7, 8, 8, 9};
  const std::vector<ModelId> truth = {0, 0, 0, 1, 1};
  const ClusterMetrics metrics = CompareClusters(models, truth);
  EXPECT_EQ(metrics.same_model, 2U);
  EXPECT_EQ(metrics.same_truth, 4U);
  EXPECT_EQ(metrics.same_both, 1U);
  EXPECT_EQ(metrics.precision(), 0.5);
  EXPECT_EQ(metrics.recall(), 0.25);
}

TEST(ClusterMetricsTest, WithoutPairsThereIsNoPrecision) {
  EXPECT_FALSE(CompareClusters(std::vector<ModelId>{1, 2}, std::vector<ModelId>{0, 0})
                   .precision()
                   .has_value());
}

}  // namespace
}  // namespace codband::sim
