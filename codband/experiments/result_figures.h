#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codband/report/axis.h"
#include "codband/report/table.h"
#include "codband/sim/runner.h"
#include "codband/sim/summary.h"

namespace codband::experiments {

// Parts that the reports of several commands share.

// Regret over rounds: a line for each policy, a band of ± one standard deviation where there are
// several seeds; yardsticks dashed. SVG.
std::string RegretChart(const std::string& title, std::span<const std::size_t> checkpoint_rounds,
                        std::span<const sim::PolicyResults> policies, report::Scale scale);

// How well changes and groups were found, as cells of a table: detected, delay, false alarms per
// 1000 stable steps, models, precision, recall. A dash where it does not apply to the policy.
std::vector<report::TableColumn> DiagnosisColumns();
std::vector<std::string> DiagnosisCells(const std::string& spec, const sim::RunSummary& summary);

// What the columns mean, in three sentences.
std::string_view DiagnosisLegend();

// Whether the policy reports changes of users.
bool DetectsChanges(const std::string& spec);

// Whether the policy is a yardstick, which knows the ground truth.
bool IsYardstick(const std::string& spec);

// What a dashed line means, for the caption of a figure; nothing if none of them is a yardstick.
std::string_view YardstickNote(std::span<const std::string> specs);

// The seeds of a comparison for people: "1 to 5".
std::string SeedsText(std::uint64_t first, std::size_t count);

// The colour of a policy in every figure (LineSeries::colour): the same whatever else is shown.
int PolicyColour(const std::string& spec);

}  // namespace codband::experiments
