// codband stress: one policy against others on many populations, to find where it loses.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "codband/base/text.h"
#include "codband/base/version.h"
#include "codband/cli/command.h"
#include "codband/experiments/comparison_output.h"
#include "codband/experiments/result_figures.h"
#include "codband/experiments/stress_cells.h"
#include "codband/policy/registry.h"
#include "codband/report/progress.h"
#include "codband/sim/summary.h"

namespace codband::cli {
namespace {

using Json = nlohmann::ordered_json;

struct StressFlags {
  bool quick = false;
  bool strict = false;
  RunFlags runs;
  std::string cells;
  std::string policies = "codband,codband:paper,linucb,dlinucb";
  std::string format = "table";
};

constexpr std::string_view kFooter = R"(
The first policy is judged against the others. Every cell is one population: the base (50 users with
10 tastes, 1500 rounds, changes every 300 to 1000 rounds, 25 features, noise 0.1) with one thing
changed. 'ratio' is the regret of the judged policy over that of the best other one; above 1 it loses
the cell. Yardsticks (oracle-…) are shown but beat nobody.

Examples:
  codband stress --quick                        the same shape, fewer users and rounds
  codband stress --cells clicks,counts,ratings --seeds 5
  codband stress --policies codband:paper,linucb,club,sclub --format json
  codband stress --quick --strict               for scripts: exit code 1 if a cell is lost

Cells: {}.)";

// A cell, played.
struct Outcome {
  experiments::StressCell cell;
  sim::Comparison comparison;
  std::vector<double> regret;  // mean over seeds, by policy
  std::size_t best_other = 0;  // among the policies

  double ratio() const { return regret[0] / regret[best_other]; }
  bool lost() const { return regret[0] > regret[best_other]; }
};

struct StressRecord {
  std::vector<std::string> policies;  // the judged one first
  std::uint64_t first_seed = 1;
  std::size_t seeds = 3;
  std::vector<Outcome> outcomes;

  std::vector<std::string> lost() const {
    std::vector<std::string> names;
    for (const Outcome& outcome : outcomes) {
      if (outcome.lost()) names.push_back(outcome.cell.name);
    }
    return names;
  }
};

Outcome Judge(experiments::StressCell cell, sim::Comparison comparison) {
  Outcome outcome{.cell = std::move(cell), .comparison = std::move(comparison), .regret = {}};
  for (const sim::PolicyResults& policy : outcome.comparison.policies) {
    outcome.regret.push_back(sim::Summarise(policy).mean_regret);
  }
  for (std::size_t p = 1; p < outcome.regret.size(); ++p) {
    if (experiments::IsYardstick(outcome.comparison.policies[p].spec)) continue;
    if (outcome.best_other == 0 || outcome.regret[p] < outcome.regret[outcome.best_other]) {
      outcome.best_other = p;
    }
  }
  return outcome;
}

std::string Conclusion(const StressRecord& record) {
  const std::vector<std::string> lost = record.lost();
  return fmt::format("{} loses {} of {} cell{}{}{}", record.policies[0], lost.size(),
                     record.outcomes.size(), record.outcomes.size() == 1 ? "" : "s",
                     lost.empty() ? "" : ": ", fmt::join(lost, ", "));
}

std::string ToText(const StressRecord& record) {
  std::vector<report::TableColumn> columns = {{"cell"}, {"changed"}};
  for (const std::string& policy : record.policies)
    columns.push_back({policy, report::Align::kRight});
  columns.push_back({"ratio", report::Align::kRight});
  columns.push_back({"loses to"});
  report::ReportTable table(std::move(columns));
  for (const Outcome& outcome : record.outcomes) {
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
  for (const Outcome& outcome : record.outcomes) {
    Json policies = Json::array();
    for (const sim::PolicyResults& policy : outcome.comparison.policies) {
      policies.push_back({{"name", policy.spec}, {"regret", experiments::RegretJson(policy)}});
    }
    cells.push_back({{"name", outcome.cell.name},
                     {"changed", outcome.cell.changed},
                     {"environment", experiments::EnvironmentJson(outcome.cell.environment)},
                     {"policies", std::move(policies)},
                     {"best_other", record.policies[outcome.best_other]},
                     {"ratio", outcome.ratio()},
                     {"lost", outcome.lost()}});
  }
  const Json json{{"version", kVersion},
                  {"judged", record.policies[0]},
                  {"seeds", experiments::SeedsJson(record.first_seed, record.seeds)},
                  {"cells", std::move(cells)},
                  {"lost", record.lost()}};
  return json.dump(2) + "\n";
}

std::string ToCsv(const StressRecord& record) {
  report::ReportTable table({{"cell"}, {"policy"}, {"seed"}, {"regret"}});
  for (const Outcome& outcome : record.outcomes) {
    for (const sim::PolicyResults& policy : outcome.comparison.policies) {
      for (std::size_t s = 0; s < policy.runs.size(); ++s) {
        table.AddRow({outcome.cell.name, policy.spec, fmt::format("{}", record.first_seed + s),
                      fmt::format("{}", policy.runs[s].total_regret())});
      }
    }
  }
  return table.ToCsv();
}

Status Play(std::vector<experiments::StressCell> cells, std::size_t threads, StressRecord& record) {
  std::vector<sim::MakeEnvironment> kinds;
  for (const experiments::StressCell& cell : cells) {
    kinds.emplace_back([options = cell.environment](std::uint64_t seed) {
      return sim::MakeSynthetic(options, seed);
    });
  }
  report::Progress progress({.total = 100});
  progress.SetLabel(
      fmt::format("% of {} runs", cells.size() * record.policies.size() * record.seeds));
  auto comparisons =
      sim::CompareAll(kinds, {.policies = record.policies,
                              .first_seed = record.first_seed,
                              .seeds = record.seeds,
                              .threads = threads,
                              .progress = [&](double share) { progress.Advance(100 * share); }});
  if (!comparisons.ok()) return comparisons.status();
  for (std::size_t c = 0; c < cells.size(); ++c) {
    record.outcomes.push_back(Judge(std::move(cells[c]), std::move(comparisons.value()[c])));
  }
  return {};
}

Status RunStress(const StressFlags& flags) {
  StressRecord record{.policies = SplitPolicyList(flags.policies), .outcomes = {}};
  if (flags.quick) record.seeds = 1;
  std::size_t threads = 1;
  CODBAND_RETURN_IF_ERROR(flags.runs.Parse(record.first_seed, record.seeds, threads));
  const auto format = ParseFormat(flags.format);
  if (!format.ok()) return format.status();
  if (record.policies.size() < 2 ||
      std::all_of(record.policies.begin() + 1, record.policies.end(), experiments::IsYardstick)) {
    return Status::InvalidArgument(fmt::format(
        "--policies = '{}', expected the judged policy and at least one other that is no yardstick",
        flags.policies));
  }
  const auto cells = SelectByName("--cells", flags.cells, experiments::StressCells(flags.quick));
  if (!cells.ok()) return cells.status();
  CODBAND_RETURN_IF_ERROR(Play(cells.value(), threads, record));
  fmt::print("{}", Format(record, format.value()));
  if (!flags.strict || record.lost().empty()) return {};
  return {StatusCode::kCheckFailed, Conclusion(record)};
}

}  // namespace

void AddStressCommand(CLI::App& app, Status& status) {
  auto flags = std::make_shared<StressFlags>();
  std::vector<std::string> names;
  for (const experiments::StressCell& cell : experiments::StressCells(false))
    names.push_back(cell.name);
  const Command command(app, "stress", "Find the populations on which a policy loses to others",
                        fmt::format(kFooter, fmt::join(names, ", ")));
  command.Switch("--quick", flags->quick, "Fewer users, rounds and seeds");
  command.Switch("--strict", flags->strict, "Exit code 1 if the judged policy loses a cell");
  command.Option("--policies", flags->policies, "LIST",
                 "The judged one first (default codband,codband:paper,linucb,dlinucb)");
  command.Option("--cells", flags->cells, "LIST", "Only these cells (default: all)");
  command.Option("--seed", flags->runs.seed, "S", "First seed (default 1)");
  command.Option("--seeds", flags->runs.seeds, "n", "How many seeds (default 3; 1 with --quick)");
  command.Option("--threads", flags->runs.threads, "n", "Runs at a time (default: one per core)");
  command.Option("--format", flags->format, "table|json|csv", "What is printed (default table)");
  command.Run(status, [flags] { return RunStress(*flags); });
}

}  // namespace codband::cli
