#include "codband/sim/schedule.h"

#include <algorithm>
#include <functional>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

#include "codband/base/parallel.h"

namespace codband::sim {

Status RunJobs(std::span<const double> costs, const ScheduleOptions& options,
               const JobFunction& run) {
  std::vector<std::size_t> order(costs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t job) { return costs[job]; });
  const double total = std::accumulate(costs.begin(), costs.end(), 0.0);

  std::mutex mutex;
  Status failure;
  ParallelFor(order.size(), options.threads, [&](std::size_t i) {
    const std::size_t job = order[i];
    {
      const std::lock_guard lock(mutex);
      if (!failure.ok()) return;
    }
    Status status = run(job, [&](double share) {
      if (options.progress) options.progress(share * costs[job] / total);
    });
    if (status.ok()) return;
    const std::lock_guard lock(mutex);
    if (failure.ok()) failure = std::move(status);
  });
  return failure;
}

}  // namespace codband::sim
