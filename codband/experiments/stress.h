#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codband/base/status.h"
#include "codband/experiments/stress_cells.h"
#include "codband/sim/runner.h"

namespace codband::experiments {

// A mean over seeds with its 95% interval (Student's t), mean ± margin.
struct Paired {
  double mean = 0;
  std::optional<double> margin = {};  // none of a single seed
};
// Precondition: at least one number.
Paired PairedMean(std::span<const double> differences);

// The policies on the population of one cell; the first policy is the one under test.
struct StressOutcome {
  StressCell cell;
  std::vector<sim::PolicyResults> policies;
  std::vector<double> regret;  // mean over seeds, by policy
  std::size_t best_other =
      0;                   // the policy with the least regret, yardsticks and the first left out
  Paired difference = {};  // regret of the first less that of the best other, seed by seed

  double ratio() const { return regret[0] / regret[best_other]; }
  // By more than noise: the whole interval is above 0. Of a single seed noise is not known.
  bool lost() const { return difference.mean > difference.margin.value_or(0); }
};

// All cells of `codband stress`.
struct StressRecord {
  std::vector<std::string> policies;  // the one under test first
  std::uint64_t first_seed = 1;
  std::size_t seeds = 3;
  std::vector<StressOutcome> outcomes = {};
  std::string command = {};  // that repeats it
  double seconds = 0;

  std::vector<std::string> lost() const;  // names of cells
};

// kInvalidArgument unless there is a policy under test and one that it can lose to.
Status CheckStressPolicies(const std::vector<std::string>& policies);

// Preconditions: the policies pass CheckStressPolicies, and each has at least one run.
StressOutcome JudgeCell(StressCell cell, std::vector<sim::PolicyResults> policies);

// Plays the record's policies in the cells, and fills its outcomes.
Status PlayStress(const std::vector<StressCell>& cells, std::size_t threads,
                  const sim::ProgressFunction& progress, StressRecord& record);

// "codband loses 2 of 22 cells: close, drift".
std::string Conclusion(const StressRecord& record);

// For people: a row for each cell, then the conclusion.
std::string ToText(const StressRecord& record);
// One JSON object.
std::string ToJson(const StressRecord& record);
// One line for each run.
std::string ToCsv(const StressRecord& record);
// report.html, differences.svg, results.json and runs.csv in an existing directory.
Status WriteReport(const StressRecord& record, const std::string& directory);

}  // namespace codband::experiments
