#pragma once

#include <string>
#include <vector>

#include "codband/base/status.h"
#include "codband/eval/evaluate.h"
#include "codband/eval/log_reader.h"

namespace codband::experiments {

// A finished evaluation, with what is needed to report and to repeat it.
struct EvaluationRecord {
  std::string command;  // that repeats it
  std::vector<std::string> files;
  eval::LogSummary log;
  bool sorted = false;  // by time
  std::size_t dim = 0;
  std::size_t users = 0;
  std::size_t actions = 0;
  eval::EvaluationOptions options;
  eval::Evaluation evaluation;
};

// For people: estimates, how well the log supports them, warnings.
std::string ToText(const EvaluationRecord& record);

// One JSON object: a function of the log, the seed and the policies.
std::string ToJson(const EvaluationRecord& record);

// One line for each estimate.
std::string ToCsv(const EvaluationRecord& record);

// report.html, estimates.svg, results.json and estimates.csv in an existing directory.
Status WriteReport(const EvaluationRecord& record, const std::string& directory);

}  // namespace codband::experiments
