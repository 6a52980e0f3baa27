#include "codband/experiments/comparison_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>

#include "codband/base/file.h"
#include "codband/base/version.h"
#include "codband/experiments/or_null.h"
#include "codband/experiments/partition_cost.h"
#include "codband/experiments/result_figures.h"
#include "codband/experiments/simulation_settings.h"
#include "codband/report/html_page.h"
#include "codband/sim/summary.h"

namespace codband::experiments {
namespace {

using Json = nlohmann::ordered_json;

Json PolicyJson(const sim::PolicyResults& policy) {
  const sim::RunSummary summary = sim::Summarise(policy);
  return {{"name", policy.spec},
          {"regret", RegretJson(policy)},
          {"us_per_step", summary.us_per_step},
          {"us_per_step_halves", {summary.us_first_half, summary.us_second_half}},
          {"changes",
           {{"true", summary.changes.true_changes},
            {"detected", summary.changes.detected},
            {"median_delay", OrNull(summary.changes.median_delay())},
            {"false_alarms_per_1000", summary.changes.false_alarms_per_1000()},
            {"missed", summary.changes.missed()}}},
          {"models", summary.models},
          {"cluster",
           {{"precision", OrNull(summary.clusters.precision())},
            {"recall", OrNull(summary.clusters.recall())}}},
          {"regret_curve", {{"mean", summary.curve_mean}, {"sd", summary.curve_sd}}}};
}

std::string CurvesCsv(const ComparisonRecord& record) {
  std::string csv = "policy,rounds,regret_mean,regret_sd\n";
  for (const sim::PolicyResults& policy : record.comparison.policies) {
    const sim::RunSummary summary = sim::Summarise(policy);
    for (std::size_t i = 0; i < summary.curve_mean.size(); ++i) {
      csv += fmt::format("\"{}\",{},{},{}\n", policy.spec, record.comparison.checkpoint_rounds[i],
                         summary.curve_mean[i], summary.curve_sd[i]);
    }
  }
  return csv;
}

std::string RegretFigure(const ComparisonRecord& record, report::Scale scale) {
  return RegretChart("Accumulated regret over time", record.comparison.checkpoint_rounds,
                     record.comparison.policies, scale);
}

std::string DescribeChanges(const sim::SyntheticOptions& environment) {
  const std::string period =
      fmt::format("every {} to {} rounds{}", environment.period_min, environment.period_max,
                  environment.drift ? ", gradually" : "");
  switch (environment.setting) {
    case sim::Setting::kDirichletProcess:
      return period + ", to a popular taste or a new one";
    case sim::Setting::kFixedSet:
      return period + ", to another of the same tastes";
    case sim::Setting::kNovel:
      return period + ", to a new taste that no user had before";
    case sim::Setting::kStationary:
      break;
  }
  return "never";
}

std::string DescribeRewards(const sim::SyntheticOptions& environment) {
  const std::string_view name = sim::RewardName(environment.rewards);
  if (!sim::HasNoise(environment.rewards)) return std::string(name);
  return fmt::format("{}, noise {}", name, environment.noise);
}

std::string CostCaption(const ComparisonRecord& record) {
  return fmt::format(
      "Regret of {} partitions beside that of one, on the same rounds, ± standard error.",
      record.environment.partitions);
}

std::string ReportPage(const ComparisonRecord& record) {
  const sim::SyntheticOptions& environment = record.environment;
  report::HtmlPage page("Policies compared on users whose preferences change");
  page.AddParagraph(fmt::format(
      "{} simulated users with {} tastes at the start; users change {}. Regret is the expected "
      "reward of the best arm offered minus that of the chosen arm: lower is better. Every policy "
      "plays the same rounds.",
      environment.users, environment.models, DescribeChanges(environment)));
  page.AddHeading("Regret");
  std::vector<std::string> specs;
  for (const sim::PolicyResults& policy : record.comparison.policies) specs.push_back(policy.spec);
  page.AddFigure(
      RegretFigure(record, report::Scale::kLog),
      fmt::format("Log scale: equal distances are equal ratios.{}{}",
                  record.seeds > 1 ? " Bands: ± one standard deviation between seeds." : "",
                  YardstickNote(specs)));
  page.AddFigure(RegretFigure(record, report::Scale::kLinear), "The same on a linear scale.");
  page.AddHeading("Numbers");
  page.AddTable(SummaryTable(record),
                fmt::format("Mean over {} seed{}, ± standard deviation between seeds.",
                            record.seeds, record.seeds == 1 ? "" : "s"));
  page.AddParagraph(DiagnosisLegend());
  if (record.alone) {
    page.AddHeading("Partitions");
    page.AddTable(CostTable(*record.alone, record.comparison), CostCaption(record));
  }
  page.AddHeading("How to repeat it");
  page.AddCommand(record.command);
  page.AddKeyValues(
      {{"codband", std::string(kVersion)},
       {"seeds", SeedsText(record.first_seed, record.seeds)},
       {"rewards", DescribeRewards(environment)},
       {"visits",
        environment.order == sim::VisitOrder::kRandom ? "by random users" : "by all users in turn"},
       {"tastes", environment.separation ? fmt::format("about {} apart", *environment.separation)
                                         : "spread over the sphere"},
       {"arms offered", fmt::format("{} of {}", environment.arms, environment.pool)},
       {"features", fmt::format("{}", environment.dim)},
       {"took", fmt::format("{:.0f} s", record.seconds)}});
  return page.ToHtml();
}

}  // namespace

Json RegretJson(const sim::PolicyResults& policy) {
  return SpreadJson(
      sim::Collect(policy.runs, [](const sim::RunResult& run) { return run.total_regret(); }));
}

Json SpreadJson(const std::vector<double>& runs) {
  const sim::MeanAndSd spread = sim::Spread(runs);
  return {{"mean", spread.mean}, {"sd", spread.sd}, {"runs", runs}};
}

Json SeedsJson(std::uint64_t first, std::size_t count) {
  std::vector<std::uint64_t> seeds(count);
  std::iota(seeds.begin(), seeds.end(), first);
  return seeds;
}

std::string ToJson(const ComparisonRecord& record) {
  Json policies = Json::array();
  for (std::size_t i = 0; i < record.comparison.policies.size(); ++i) {
    const sim::PolicyResults& policy = record.comparison.policies[i];
    policies.push_back(PolicyJson(policy));
    if (!record.alone) continue;
    policies.back()["partitions"] = CostJson(
        CostOfPartitions(record.comparison.checkpoint_rounds, record.alone->policies[i], policy));
  }
  const Json json{{"version", kVersion},
                  {"environment", SimulationJson(record.environment)},
                  {"seeds", SeedsJson(record.first_seed, record.seeds)},
                  {"policies", std::move(policies)},
                  {"checkpoint_rounds", record.comparison.checkpoint_rounds}};
  return json.dump(2) + "\n";
}

std::string ToCsv(const ComparisonRecord& record) {
  report::ReportTable table({{"policy"},
                             {"seed"},
                             {"regret"},
                             {"changes_true"},
                             {"changes_detected"},
                             {"median_delay"},
                             {"false_alarms_per_1000"},
                             {"models"},
                             {"precision"},
                             {"recall"},
                             {"us_per_step"}});
  const auto or_empty = [](std::optional<double> value) {
    return value ? fmt::format("{}", *value) : "";
  };
  for (const sim::PolicyResults& policy : record.comparison.policies) {
    for (std::size_t s = 0; s < policy.runs.size(); ++s) {
      const sim::RunResult& run = policy.runs[s];
      table.AddRow({policy.spec, fmt::format("{}", record.first_seed + s),
                    fmt::format("{}", run.total_regret()),
                    fmt::format("{}", run.changes.true_changes),
                    fmt::format("{}", run.changes.detected), or_empty(run.changes.median_delay()),
                    fmt::format("{}", run.changes.false_alarms_per_1000()),
                    fmt::format("{}", run.models), or_empty(run.clusters.precision()),
                    or_empty(run.clusters.recall()), fmt::format("{}", run.us_per_step)});
    }
  }
  return table.ToCsv();
}

report::ReportTable SummaryTable(const ComparisonRecord& record) {
  std::vector<report::TableColumn> columns = {
      {"policy"}, {"regret", report::Align::kRight}, {"±", report::Align::kRight}};
  std::ranges::copy(DiagnosisColumns(), std::back_inserter(columns));
  columns.push_back({"µs/step", report::Align::kRight});
  report::ReportTable table(std::move(columns));
  for (const sim::PolicyResults& policy : record.comparison.policies) {
    const sim::RunSummary summary = sim::Summarise(policy);
    std::vector<std::string> cells = {policy.spec, fmt::format("{:.0f}", summary.mean_regret),
                                      fmt::format("{:.0f}", summary.sd_regret)};
    std::ranges::copy(DiagnosisCells(policy.spec, summary), std::back_inserter(cells));
    cells.push_back(fmt::format("{:.1f}", summary.us_per_step));
    table.AddRow(std::move(cells));
  }
  return table;
}

Status WriteReport(const ComparisonRecord& record, const std::string& directory) {
  CODBAND_RETURN_IF_ERROR(
      WriteFileDurably(directory + "/regret.svg", RegretFigure(record, report::Scale::kLog)));
  CODBAND_RETURN_IF_ERROR(WriteFileDurably(directory + "/results.json", ToJson(record)));
  CODBAND_RETURN_IF_ERROR(WriteFileDurably(directory + "/runs.csv", ToCsv(record)));
  CODBAND_RETURN_IF_ERROR(WriteFileDurably(directory + "/curves.csv", CurvesCsv(record)));
  return WriteFileDurably(directory + "/report.html", ReportPage(record));
}

std::string ToText(const ComparisonRecord& record) {
  std::string text = SummaryTable(record).ToText();
  if (record.alone) {
    text += fmt::format("\n{}\n{}", CostCaption(record),
                        CostTable(*record.alone, record.comparison).ToText());
  }
  return text;
}

}  // namespace codband::experiments
