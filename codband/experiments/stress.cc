#include "codband/experiments/stress.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "codband/base/check.h"
#include "codband/base/text.h"
#include "codband/base/version.h"
#include "codband/experiments/comparison_output.h"
#include "codband/experiments/result_figures.h"
#include "codband/experiments/simulation_settings.h"
#include "codband/report/table.h"
#include "codband/sim/summary.h"

namespace codband::experiments {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

std::vector<std::string> StressRecord::lost() const {
  std::vector<std::string> names;
  for (const StressOutcome& outcome : outcomes) {
    if (outcome.lost()) names.push_back(outcome.cell.name);
  }
  return names;
}

Status CheckStressPolicies(const std::vector<std::string>& policies) {
  if (policies.size() >= 2 && !std::all_of(policies.begin() + 1, policies.end(), IsYardstick)) {
    return {};
  }
  return Status::InvalidArgument(fmt::format(
      "--policies = '{}', expected the policy under test and at least one other that is no "
      "yardstick",
      fmt::join(policies, ",")));
}

StressOutcome JudgeCell(StressCell cell, std::vector<sim::PolicyResults> policies) {
  StressOutcome outcome{.cell = std::move(cell), .policies = std::move(policies), .regret = {}};
  for (const sim::PolicyResults& policy : outcome.policies) {
    outcome.regret.push_back(sim::Summarise(policy).mean_regret);
  }
  for (std::size_t p = 1; p < outcome.regret.size(); ++p) {
    if (IsYardstick(outcome.policies[p].spec)) continue;
    if (outcome.best_other == 0 || outcome.regret[p] < outcome.regret[outcome.best_other]) {
      outcome.best_other = p;
    }
  }
  CODBAND_CHECK(outcome.best_other > 0);
  return outcome;
}

Status PlayStress(const std::vector<StressCell>& cells, std::size_t threads,
                  const sim::ProgressFunction& progress, StressRecord& record) {
  std::vector<sim::MakeEnvironment> kinds;
  for (const StressCell& cell : cells) {
    kinds.emplace_back([options = cell.environment](std::uint64_t seed) {
      return sim::MakeSynthetic(options, seed);
    });
  }
  auto comparisons = sim::CompareAll(kinds, {.policies = record.policies,
                                             .first_seed = record.first_seed,
                                             .seeds = record.seeds,
                                             .threads = threads,
                                             .progress = progress});
  if (!comparisons.ok()) return comparisons.status();
  for (std::size_t c = 0; c < cells.size(); ++c) {
    record.outcomes.push_back(JudgeCell(cells[c], std::move(comparisons.value()[c].policies)));
  }
  return {};
}

std::string Conclusion(const StressRecord& record) {
  const std::vector<std::string> lost = record.lost();
  return fmt::format("{} loses {} of {} cell{}{}{}", record.policies[0], lost.size(),
                     record.outcomes.size(), record.outcomes.size() == 1 ? "" : "s",
                     lost.empty() ? "" : ": ", fmt::join(lost, ", "));
}

std::string ToText(const StressRecord& record) {
  std::vector<report::TableColumn> columns = {{"cell"}, {"changed"}};
  for (const std::string& policy : record.policies) {
    columns.push_back({policy, report::Align::kRight});
  }
  columns.push_back({"ratio", report::Align::kRight});
  columns.push_back({"loses to"});
  report::ReportTable table(std::move(columns));
  for (const StressOutcome& outcome : record.outcomes) {
    std::vector<std::string> cells = {outcome.cell.name, outcome.cell.changed};
    for (const double regret : outcome.regret) cells.push_back(FormatNumber(regret));
    cells.push_back(fmt::format("{:.2f}", outcome.ratio()));
    cells.push_back(outcome.lost() ? record.policies[outcome.best_other] : "");
    table.AddRow(std::move(cells));
  }
  return table.ToText() + "\n" + Conclusion(record) + "\n";
}

std::string ToJson(const StressRecord& record) {
  Json cells = Json::array();
  for (const StressOutcome& outcome : record.outcomes) {
    Json policies = Json::array();
    for (const sim::PolicyResults& policy : outcome.policies) {
      policies.push_back({{"name", policy.spec}, {"regret", RegretJson(policy)}});
    }
    cells.push_back({{"name", outcome.cell.name},
                     {"changed", outcome.cell.changed},
                     {"environment", SimulationJson(outcome.cell.environment)},
                     {"policies", std::move(policies)},
                     {"best_other", record.policies[outcome.best_other]},
                     {"ratio", outcome.ratio()},
                     {"lost", outcome.lost()}});
  }
  const Json json{{"version", kVersion},
                  {"judged", record.policies[0]},
                  {"seeds", SeedsJson(record.first_seed, record.seeds)},
                  {"cells", std::move(cells)},
                  {"lost", record.lost()}};
  return json.dump(2) + "\n";
}

std::string ToCsv(const StressRecord& record) {
  report::ReportTable table({{"cell"}, {"policy"}, {"seed"}, {"regret"}});
  for (const StressOutcome& outcome : record.outcomes) {
    for (const sim::PolicyResults& policy : outcome.policies) {
      for (std::size_t s = 0; s < policy.runs.size(); ++s) {
        table.AddRow({outcome.cell.name, policy.spec, fmt::format("{}", record.first_seed + s),
                      fmt::format("{}", policy.runs[s].total_regret())});
      }
    }
  }
  return table.ToCsv();
}

}  // namespace codband::experiments
