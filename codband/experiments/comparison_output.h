#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "codband/base/status.h"
#include "codband/report/table.h"
#include "codband/sim/runner.h"
#include "codband/sim/synthetic.h"

namespace codband::experiments {

// A finished comparison, with what is needed to report and to repeat it.
struct ComparisonRecord {
  sim::SyntheticOptions environment;
  std::uint64_t first_seed = 1;
  std::size_t seeds = 1;
  std::string command;  // that repeats it
  double seconds = 0;
  sim::Comparison comparison;
  // Of several partitions: the same population, policies and seeds with one.
  std::optional<sim::Comparison> alone = {};
};

// JSON that several commands share: mean, standard deviation and runs of one policy, by regret or
// by any other number of a run; the seeds.
nlohmann::ordered_json RegretJson(const sim::PolicyResults& policy);
nlohmann::ordered_json SpreadJson(const std::vector<double>& runs);
nlohmann::ordered_json SeedsJson(std::uint64_t first, std::size_t count);

// One JSON object. A function of environment, seeds and policies, apart from timings.
std::string ToJson(const ComparisonRecord& record);

// The summary, for people.
std::string ToText(const ComparisonRecord& record);

// One line for each run: policy, seed, regret, changes, clusters, time.
std::string ToCsv(const ComparisonRecord& record);

// One row for each policy, for people.
report::ReportTable SummaryTable(const ComparisonRecord& record);

// report.html, regret.svg, results.json, runs.csv and curves.csv in an existing directory.
Status WriteReport(const ComparisonRecord& record, const std::string& directory);

}  // namespace codband::experiments
