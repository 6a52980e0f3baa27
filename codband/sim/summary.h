#pragma once

#include <span>
#include <type_traits>
#include <vector>

#include "codband/sim/metrics.h"
#include "codband/sim/runner.h"

namespace codband::sim {

struct MeanAndSd {
  double mean = 0;
  double sd = 0;  // sample standard deviation; 0 for a single value
};

// Precondition: at least one value.
MeanAndSd Spread(std::span<const double> values);

// Mean and standard deviation at each checkpoint.
struct CurveSpread {
  std::vector<double> mean;
  std::vector<double> sd;
};

// Precondition: at least one curve, all with the same checkpoints.
CurveSpread SpreadOfCurves(std::span<const std::vector<double>> curves);

// get(run) of each run.
template <typename Run, typename Get>
auto Collect(const std::vector<Run>& runs, const Get& get) {
  std::vector<std::decay_t<decltype(get(runs.front()))>> values;
  for (const Run& run : runs) values.push_back(get(run));
  return values;
}

// The runs of one policy over several seeds, summarised.
struct RunSummary {
  double mean_regret = 0;
  double sd_regret = 0;  // between seeds; 0 for a single one
  ChangeMetrics changes;
  ClusterMetrics clusters;
  double models = 0;  // mean number at the end
  double us_per_step = 0;
  double us_first_half = 0;
  double us_second_half = 0;
  // Regret at each checkpoint.
  std::vector<double> curve_mean;
  std::vector<double> curve_sd;
};

// Precondition: at least one run, all with the same checkpoints.
RunSummary Summarise(const PolicyResults& policy);

}  // namespace codband::sim
