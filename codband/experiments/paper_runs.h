#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codband/base/status.h"
#include "codband/experiments/paper_report.h"
#include "codband/sim/runner.h"

namespace codband::experiments {

// Every run that the record asks for: by experiment, then by policy, then by seed, each with its
// estimated cost and its identity. Nothing is played.
// kInvalidArgument for a policy that cannot be made, and for two policies of the list that are the
// same in an experiment.
Result<std::vector<sim::PlannedRun>> PlanPaperRuns(const PaperRecord& record);

// Plays what was planned for the record, and fills its results and resumed_runs.
Status PlayPaperRuns(const std::vector<sim::PlannedRun>& runs, const sim::PlayOptions& options,
                     PaperRecord& record);

// The key of a run in the archive: everything that determines its result, the version of the
// program included. `run` is planned in a population made from `environment`.
std::string RunIdentity(const sim::SyntheticOptions& environment, const sim::PlannedRun& run);

// The command that repeats the record; `rows` and `policies` as typed, empty where not given.
std::string PaperCommand(const PaperRecord& record, std::string_view rows,
                         std::string_view policies);

}  // namespace codband::experiments
