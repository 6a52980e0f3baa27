#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "codband/cluster/schedules_testing.h"

namespace codband::cluster {
namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr std::uint64_t kSchedules = 25;
#else
constexpr std::uint64_t kSchedules = 500;
#endif

// One epoch appends at a time, sequences have no gaps, what was acknowledged is in the log, once,
// and every state is what its checkpoint and its log make; and in the end everybody is served.
TEST(ClusterSimulationTest, NothingAcknowledgedIsLostOnAnySchedule) {
  const auto counts = RunSchedules(1, kSchedules);
  // The schedules were not idle.
  EXPECT_GT(counts.acknowledged, 200 * kSchedules);
  EXPECT_GT(counts.refused, 20 * kSchedules);
  EXPECT_GT(std::min({counts.crashes, counts.stops, counts.cuts, counts.jumps, counts.drains}),
            kSchedules);
  EXPECT_GT(counts.takeovers, 4 * kSchedules);
  EXPECT_GT(counts.checkpoints, kSchedules);
  // Many takeovers find a copy that has followed; some were overtaken by a checkpoint before.
  EXPECT_GT(counts.ready, 2 * kSchedules);
  EXPECT_GT(counts.anew, kSchedules / 10);
}

TEST(ClusterSimulationTest, TheSameSeedGivesTheSameRun) {
  const auto run = [] {
    ClusterSimulation simulation(7);
    static_cast<void>(simulation.Run());
    const auto counts = simulation.counts();
    return fmt::format("{} {} {} {}", counts.acknowledged, counts.refused, counts.crashes,
                       counts.takeovers);
  };
  EXPECT_EQ(run(), run());
}

}  // namespace
}  // namespace codband::cluster
