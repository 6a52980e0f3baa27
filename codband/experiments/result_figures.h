#pragma once

#include <span>
#include <string>
#include <vector>

#include "codband/report/axis.h"
#include "codband/report/table.h"
#include "codband/sim/runner.h"
#include "codband/sim/summary.h"

namespace codband::experiments {

// What the reports of several commands show alike.

// Regret over rounds: a line for each policy, a band of ± one standard deviation where there are
// several seeds; yardsticks dashed. SVG.
std::string RegretChart(const std::string& title, std::span<const std::size_t> checkpoint_rounds,
                        std::span<const sim::PolicyResults> policies, report::Scale scale);

// How well changes and groups were found, as cells of a table: detected, delay, false alarms per
// 1000 stable steps, models, precision, recall. A dash where the policy has no such thing.
std::vector<report::TableColumn> DiagnosisColumns();
std::vector<std::string> DiagnosisCells(const std::string& spec, const sim::RunSummary& summary);

// Why the columns mean what they mean, in three sentences.
std::string_view DiagnosisLegend();

// Whether the policy is a yardstick that is told the truth.
bool IsYardstick(const std::string& spec);

}  // namespace codband::experiments
