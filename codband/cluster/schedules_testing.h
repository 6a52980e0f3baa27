#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "codband/cluster/cluster_simulation.h"

namespace codband::cluster {

// Runs the schedules of these seeds, and fails at the first that breaks something.
inline ClusterSimulation::Counts RunSchedules(std::uint64_t first, std::uint64_t last) {
  ClusterSimulation::Counts all;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    ClusterSimulation simulation(seed);
    std::string problems;
    for (const std::string& problem : simulation.Run()) problems += "\n" + problem;
    EXPECT_EQ(problems, "") << "seed " << seed;
    if (!problems.empty()) return all;
    const auto counts = simulation.counts();
    all.acknowledged += counts.acknowledged;
    all.refused += counts.refused;
    all.crashes += counts.crashes;
    all.stops += counts.stops;
    all.cuts += counts.cuts;
    all.jumps += counts.jumps;
    all.drains += counts.drains;
    all.takeovers += counts.takeovers;
    all.checkpoints += counts.checkpoints;
    all.ready += counts.ready;
    all.anew += counts.anew;
  }
  return all;
}

}  // namespace codband::cluster
