#include "codband/sim/summary.h"

#include <cmath>
#include <utility>

#include "codband/base/check.h"

namespace codband::sim {

MeanAndSd Spread(std::span<const double> values) {
  CODBAND_CHECK(!values.empty());
  const auto n = static_cast<double>(values.size());
  MeanAndSd spread;
  for (const double value : values) spread.mean += value / n;
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  if (values.size() > 1) spread.sd = std::sqrt(squares / (n - 1));
  return spread;
}

CurveSpread SpreadOfCurves(std::span<const std::vector<double>> curves) {
  CODBAND_CHECK(!curves.empty());
  CurveSpread spread;
  std::vector<double> at_checkpoint(curves.size());
  for (std::size_t i = 0; i < curves.front().size(); ++i) {
    for (std::size_t c = 0; c < curves.size(); ++c) at_checkpoint[c] = curves[c].at(i);
    const MeanAndSd point = Spread(at_checkpoint);
    spread.mean.push_back(point.mean);
    spread.sd.push_back(point.sd);
  }
  return spread;
}

RunSummary Summarise(const PolicyResults& policy) {
  const std::vector<RunResult>& runs = policy.runs;
  CODBAND_CHECK(!runs.empty());
  RunSummary summary;
  const auto spread = [&](auto get) { return Spread(Collect(runs, get)); };
  const MeanAndSd regret = spread([](const RunResult& run) { return run.total_regret(); });
  summary.mean_regret = regret.mean;
  summary.sd_regret = regret.sd;
  for (const RunResult& run : runs) {
    summary.changes.Add(run.changes);
    summary.clusters.Add(run.clusters);
  }
  const auto mean = [&](auto get) { return spread(get).mean; };
  summary.models = mean([](const RunResult& run) { return static_cast<double>(run.models); });
  summary.us_per_step = mean([](const RunResult& run) { return run.us_per_step; });
  summary.us_first_half = mean([](const RunResult& run) { return run.us_per_step_first_half; });
  summary.us_second_half = mean([](const RunResult& run) { return run.us_per_step_second_half; });
  CurveSpread curve =
      SpreadOfCurves(Collect(runs, [](const RunResult& run) { return run.regret; }));
  summary.curve_mean = std::move(curve.mean);
  summary.curve_sd = std::move(curve.sd);
  return summary;
}

}  // namespace codband::sim
