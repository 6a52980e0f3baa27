#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "codband/base/status.h"
#include "codband/report/table.h"
#include "codband/sim/runner.h"
#include "codband/sim/synthetic.h"

namespace codband::experiments {

// A finished comparison with all that is needed to tell and to repeat it.
struct ComparisonRecord {
  sim::SyntheticOptions environment;
  std::uint64_t first_seed = 1;
  std::size_t seeds = 1;
  std::string command;  // that repeats it
  double seconds = 0;
  sim::Comparison comparison;
};

// What the JSON of several commands has alike: all options of a population; mean, deviation and
// runs of one policy, by regret or any other number of a run; the seeds.
nlohmann::ordered_json EnvironmentJson(const sim::SyntheticOptions& environment);
nlohmann::ordered_json RegretJson(const sim::PolicyResults& policy);
nlohmann::ordered_json SpreadJson(const std::vector<double>& runs);
nlohmann::ordered_json SeedsJson(std::uint64_t first, std::size_t count);

// One JSON object; apart from timings it is a function of environment, seeds and policies.
std::string ToJson(const ComparisonRecord& record);

// The summary, for people.
std::string ToText(const ComparisonRecord& record);

// One line a run: policy, seed, regret, changes, clusters, time.
std::string ToCsv(const ComparisonRecord& record);

// One row a policy, for people.
report::ReportTable SummaryTable(const ComparisonRecord& record);

// report.html, regret.svg, results.json, runs.csv and curves.csv in an existing directory.
Status WriteReport(const ComparisonRecord& record, const std::string& directory);

}  // namespace codband::experiments
