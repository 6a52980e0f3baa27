#pragma once

#include <string>

#include "codband/base/status.h"
#include "codband/experiments/replay_output.h"

namespace codband::experiments {

// report.html, reward.svg, normalised.svg, clouds-POLICY.svg, results.json, runs.csv, curves.csv
// and changes.csv in an existing directory.
Status WriteReport(const ReplayRecord& record, const std::string& directory);

}  // namespace codband::experiments
