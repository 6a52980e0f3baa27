#include "codband/experiments/stress.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "codband/base/check.h"
#include "codband/base/file.h"
#include "codband/base/text.h"
#include "codband/base/version.h"
#include "codband/experiments/comparison_output.h"
#include "codband/experiments/or_null.h"
#include "codband/experiments/result_figures.h"
#include "codband/experiments/simulation_settings.h"
#include "codband/report/html_page.h"
#include "codband/report/interval_chart.h"
#include "codband/report/table.h"
#include "codband/sim/summary.h"

namespace codband::experiments {
namespace {

using Json = nlohmann::ordered_json;

// The 97.5% quantile of Student's t.
double TQuantile(std::size_t degrees) {
  constexpr std::array<double, 30> kQuantiles = {
      12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
      2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
      2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
  return degrees <= kQuantiles.size() ? kQuantiles[degrees - 1]
                                      : 1.96 + 2.5 / static_cast<double>(degrees);
}

// "-12 ± 3".
std::string DifferenceText(const Paired& difference) {
  const std::string mean = FormatNumber(difference.mean);
  return difference.margin ? fmt::format("{} ± {}", mean, FormatNumber(*difference.margin)) : mean;
}

report::ReportTable CellTable(const StressRecord& record) {
  std::vector<report::TableColumn> columns = {{"cell"}, {"changed"}};
  for (const std::string& policy : record.policies) {
    columns.push_back({policy, report::Align::kRight});
  }
  columns.push_back({"ratio", report::Align::kRight});
  columns.push_back({"difference", report::Align::kRight});
  columns.push_back({"loses to"});
  report::ReportTable table(std::move(columns));
  for (const StressOutcome& outcome : record.outcomes) {
    std::vector<std::string> cells = {outcome.cell.name, outcome.cell.changed};
    for (const double regret : outcome.regret) cells.push_back(FormatNumber(regret));
    cells.push_back(fmt::format("{:.2f}", outcome.ratio()));
    cells.push_back(DifferenceText(outcome.difference));
    cells.push_back(outcome.lost() ? record.policies[outcome.best_other] : "");
    table.AddRow(std::move(cells));
    table.Emphasise(table.row_count() - 1, 2 + outcome.best_other);
  }
  return table;
}

// Differences in percent of the best other policy's regret.
std::string DifferenceChart(const StressRecord& record) {
  report::IntervalChart chart{.title = "Regret compared with the best other policy",
                              .x_label = "% more regret; below 0: less",
                              .series = {record.policies[0]},
                              .inner_name = "95% interval of the paired difference",
                              .reference = 0};
  constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
  for (const StressOutcome& outcome : record.outcomes) {
    const double percent = 100 / outcome.regret[outcome.best_other];
    const double value = percent * outcome.difference.mean;
    const double margin =
        outcome.difference.margin ? percent * *outcome.difference.margin : kNoNumber;
    chart.rows.push_back({.label = outcome.cell.name,
                          .marks = {{.value = value,
                                     .low = value - margin,
                                     .high = value + margin,
                                     .outer_low = kNoNumber,
                                     .outer_high = kNoNumber}}});
  }
  return report::RenderSvg(chart);
}

std::string StressPage(const StressRecord& record) {
  report::HtmlPage page(fmt::format("{} on many populations", record.policies[0]));
  page.AddParagraph(Conclusion(record) + ".");
  page.AddParagraph(
      "Regret is the expected reward of the best arm offered minus that of the chosen arm: lower "
      "is better. Every policy plays the same rounds. 'difference' is the regret of the first "
      "policy less that of the best other one, seed by seed, with a 95% interval; a cell is lost "
      "if all of the interval is above 0. Yardsticks, which know the ground truth, do not count.");
  page.AddFigure(DifferenceChart(record));
  page.AddTable(CellTable(record), "Mean regret over seeds; the best other policy is emphasised.");
  page.AddHeading("How to repeat it");
  page.AddCommand(record.command);
  page.AddKeyValues({{"codband", std::string(kVersion)},
                     {"seeds", SeedsText(record.first_seed, record.seeds)},
                     {"took", fmt::format("{:.0f} s", record.seconds)}});
  return page.ToHtml();
}

}  // namespace

Paired PairedMean(std::span<const double> differences) {
  const sim::MeanAndSd spread = sim::Spread(differences);
  Paired paired{.mean = spread.mean};
  if (const std::size_t n = differences.size(); n > 1) {
    paired.margin = TQuantile(n - 1) * spread.sd / std::sqrt(static_cast<double>(n));
  }
  return paired;
}

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
  const std::vector<sim::RunResult>& other = outcome.policies[outcome.best_other].runs;
  std::vector<double> differences;
  for (std::size_t s = 0; s < other.size(); ++s) {
    differences.push_back(outcome.policies[0].runs[s].total_regret() - other[s].total_regret());
  }
  outcome.difference = PairedMean(differences);
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
  return CellTable(record).ToText() + "\n" + Conclusion(record) + "\n";
}

std::string ToJson(const StressRecord& record) {
  Json cells = Json::array();
  for (const StressOutcome& outcome : record.outcomes) {
    Json policies = Json::array();
    for (const sim::PolicyResults& policy : outcome.policies) {
      policies.push_back({{"name", policy.spec}, {"regret", RegretJson(policy)}});
    }
    cells.push_back(
        {{"name", outcome.cell.name},
         {"changed", outcome.cell.changed},
         {"environment", SimulationJson(outcome.cell.environment)},
         {"policies", std::move(policies)},
         {"best_other", record.policies[outcome.best_other]},
         {"ratio", outcome.ratio()},
         {"difference",
          {{"mean", outcome.difference.mean}, {"margin", OrNull(outcome.difference.margin)}}},
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

Status WriteReport(const StressRecord& record, const std::string& directory) {
  CODBAND_RETURN_IF_ERROR(
      WriteFileDurably(directory + "/differences.svg", DifferenceChart(record)));
  CODBAND_RETURN_IF_ERROR(WriteFileDurably(directory + "/results.json", ToJson(record)));
  CODBAND_RETURN_IF_ERROR(WriteFileDurably(directory + "/runs.csv", ToCsv(record)));
  return WriteFileDurably(directory + "/report.html", StressPage(record));
}

}  // namespace codband::experiments
