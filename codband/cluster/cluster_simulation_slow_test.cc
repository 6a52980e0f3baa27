#include <fmt/format.h>
#include <gtest/gtest.h>

#include "codband/cluster/schedules_testing.h"

namespace codband::cluster {
namespace {

TEST(ClusterSimulationSlowTest, NothingAcknowledgedIsLostOnTenThousandSchedules) {
  const auto counts = RunSchedules(1001, 11'000);
  fmt::print(
      "{} acknowledged, {} refused, {} crashes, {} stops, {} cuts, {} jumps of the clock, {} "
      "drains, {} takeovers\n",
      counts.acknowledged, counts.refused, counts.crashes, counts.stops, counts.cuts, counts.jumps,
      counts.drains, counts.takeovers);
  EXPECT_GT(counts.acknowledged, 2'000'000U);
}

}  // namespace
}  // namespace codband::cluster
