#pragma once

#include <vector>

#include "codband/sim/metrics.h"
#include "codband/sim/runner.h"

namespace codband {

// The runs of one policy over several seeds, put together.
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

}  // namespace codband
