#include "codband/sim/summary.h"

#include <cmath>

#include "codband/base/check.h"

namespace codband {
namespace {

struct MeanAndSd {
  double mean = 0;
  double sd = 0;
};

template <typename Get>
MeanAndSd Over(const std::vector<RunResult>& runs, const Get& get) {
  const auto n = static_cast<double>(runs.size());
  MeanAndSd result;
  for (const RunResult& run : runs) result.mean += get(run) / n;
  double squares = 0;
  for (const RunResult& run : runs) {
    squares += (get(run) - result.mean) * (get(run) - result.mean);
  }
  if (runs.size() > 1) result.sd = std::sqrt(squares / (n - 1));
  return result;
}

}  // namespace

RunSummary Summarise(const PolicyResults& policy) {
  const std::vector<RunResult>& runs = policy.runs;
  CODBAND_CHECK(!runs.empty());
  RunSummary summary;
  const MeanAndSd regret = Over(runs, [](const RunResult& run) { return run.total_regret(); });
  summary.mean_regret = regret.mean;
  summary.sd_regret = regret.sd;
  for (const RunResult& run : runs) {
    summary.changes.Add(run.changes);
    summary.clusters.Add(run.clusters);
  }
  const auto mean = [&](auto get) { return Over(runs, get).mean; };
  summary.models = mean([](const RunResult& run) { return static_cast<double>(run.models); });
  summary.us_per_step = mean([](const RunResult& run) { return run.us_per_step; });
  summary.us_first_half = mean([](const RunResult& run) { return run.us_per_step_first_half; });
  summary.us_second_half = mean([](const RunResult& run) { return run.us_per_step_second_half; });
  for (std::size_t i = 0; i < runs.front().regret.size(); ++i) {
    const MeanAndSd point = Over(runs, [&](const RunResult& run) { return run.regret.at(i); });
    summary.curve_mean.push_back(point.mean);
    summary.curve_sd.push_back(point.sd);
  }
  return summary;
}

}  // namespace codband
