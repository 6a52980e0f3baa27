#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "codband/base/status.h"

namespace codband::sim {

// Called with the share of the work done since the last call, from any thread.
using ProgressFunction = std::function<void(double share)>;

struct ScheduleOptions {
  std::size_t threads = 1;
  ProgressFunction progress = {};  // of all jobs together, weighted by their costs
};

// Does job number `job`; reports its own progress through the second argument.
using JobFunction = std::function<Status(std::size_t job, const ProgressFunction& progress)>;

// Runs one job for each cost on up to `threads` threads and returns when all have ended. The most
// expensive jobs start first, equal ones in their order, so that no thread is left with a long job
// at the end. After a failure no further job starts, and the first failure is returned.
// Costs are positive and relative to each other.
Status RunJobs(std::span<const double> costs, const ScheduleOptions& options,
               const JobFunction& run);

}  // namespace codband::sim
