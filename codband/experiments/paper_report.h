#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codband/base/status.h"
#include "codband/experiments/paper_experiments.h"
#include "codband/report/table.h"
#include "codband/sim/runner.h"

namespace codband::experiments {

// All runs of `codband paper`, with what is needed to report and to repeat them.
struct PaperRecord {
  bool quick = false;
  std::uint64_t first_seed = 1;
  std::size_t seeds = 5;
  std::vector<PaperExperiment> experiments = {};
  std::vector<std::string> policies = {};  // as asked for
  // By experiment, then by policy; the name is the one asked for.
  std::vector<std::vector<sim::PolicyResults>> results = {};
  std::string command = {};
  double seconds = 0;            // of this call
  std::size_t resumed_runs = 0;  // found on disk, not played by this call
};

// Whether the report draws the users' models over time for this experiment and policy, so that the
// first seed's run must record them.
bool NeedsUserModels(const PaperRecord& record, std::size_t experiment, std::size_t policy);

// Mean regret: one row for each experiment, one column for each policy, the paper's number in
// brackets. The best learner of each row is emphasised.
report::ReportTable RegretTable(const PaperRecord& record);

// report.html, table.md, table.csv, curves.csv and the figures (SVG, and PNG where rsvg-convert is
// installed) in an existing directory.
Status WritePaperReport(const PaperRecord& record, const std::string& directory);

}  // namespace codband::experiments
