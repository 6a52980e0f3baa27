#include "codband/cli/comparison_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "codband/base/file.h"
#include "codband/base/version.h"
#include "codband/policy/registry.h"
#include "codband/report/html_page.h"
#include "codband/report/line_chart.h"

namespace codband {
namespace {

using Json = nlohmann::ordered_json;

// The runs of one policy put together.
struct Summary {
  ChangeMetrics changes;
  ClusterMetrics clusters;
  double models = 0;
  double us_per_step = 0;
  double us_first_half = 0;
  double us_second_half = 0;
};

Summary Summarise(const PolicyResults& policy) {
  Summary summary;
  const auto n = static_cast<double>(policy.runs.size());
  for (const RunResult& run : policy.runs) {
    summary.changes.Add(run.changes);
    summary.clusters.Add(run.clusters);
    summary.models += static_cast<double>(run.models) / n;
    summary.us_per_step += run.us_per_step / n;
    summary.us_first_half += run.us_per_step_first_half / n;
    summary.us_second_half += run.us_per_step_second_half / n;
  }
  return summary;
}

struct Curve {
  std::vector<double> mean;
  std::vector<double> sd;
};

Curve MeanCurve(const PolicyResults& policy) {
  const std::size_t points = policy.runs.front().regret.size();
  const auto n = static_cast<double>(policy.runs.size());
  Curve curve{std::vector<double>(points), std::vector<double>(points)};
  for (std::size_t i = 0; i < points; ++i) {
    for (const RunResult& run : policy.runs) curve.mean[i] += run.regret[i] / n;
    double squares = 0;
    for (const RunResult& run : policy.runs) {
      squares += (run.regret[i] - curve.mean[i]) * (run.regret[i] - curve.mean[i]);
    }
    if (n > 1) curve.sd[i] = std::sqrt(squares / (n - 1));
  }
  return curve;
}

Json OrNull(std::optional<double> value) { return value ? Json(*value) : Json(nullptr); }

std::string OrDash(std::optional<double> value, std::string_view format) {
  return value ? fmt::format(fmt::runtime(format), *value) : "–";
}

bool Detects(const std::string& spec) {
  const auto info = FindPolicy(spec);
  return info.ok() && info.value()->detects_changes;
}

Json EnvironmentJson(const SyntheticOptions& environment) {
  Json json{{"setting", static_cast<int>(environment.setting)},
            {"users", environment.users},
            {"models", environment.models},
            {"rounds", environment.rounds}};
  if (environment.setting == Setting::kStationary) {
    json["period"] = nullptr;
  } else {
    json["period"] = {environment.period_min, environment.period_max};
  }
  json["noise"] = environment.noise;
  json["arms"] = environment.arms;
  json["pool"] = environment.pool;
  json["dim"] = environment.dim;
  return json;
}

Json PolicyJson(const PolicyResults& policy) {
  const Summary summary = Summarise(policy);
  const Curve curve = MeanCurve(policy);
  Json runs = Json::array();
  for (const RunResult& run : policy.runs) runs.push_back(run.total_regret());
  return {{"name", policy.spec},
          {"regret",
           {{"mean", policy.mean_regret()}, {"sd", policy.sd_regret()}, {"runs", std::move(runs)}}},
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
          {"regret_curve", {{"mean", curve.mean}, {"sd", curve.sd}}}};
}

std::string CurvesCsv(const ComparisonRecord& record) {
  std::string csv = "policy,rounds,regret_mean,regret_sd\n";
  for (const PolicyResults& policy : record.comparison.policies) {
    const Curve curve = MeanCurve(policy);
    for (std::size_t i = 0; i < curve.mean.size(); ++i) {
      csv += fmt::format("\"{}\",{},{},{}\n", policy.spec, record.comparison.checkpoint_rounds[i],
                         curve.mean[i], curve.sd[i]);
    }
  }
  return csv;
}

std::string RegretChart(const ComparisonRecord& record, Scale scale) {
  LineChart chart{.title = "Accumulated regret over time",
                  .x_label = "rounds (every user comes once a round)",
                  .y_label = "regret, all users together",
                  .y_scale = scale};
  const std::vector<std::size_t>& rounds = record.comparison.checkpoint_rounds;
  for (const PolicyResults& policy : record.comparison.policies) {
    Curve curve = MeanCurve(policy);
    LineSeries series{.name = policy.spec,
                      .x = std::vector<double>(rounds.begin(), rounds.end()),
                      .y = curve.mean};
    if (record.seeds > 1) {
      for (std::size_t i = 0; i < curve.mean.size(); ++i) {
        series.low.push_back(curve.mean[i] - curve.sd[i]);
        series.high.push_back(curve.mean[i] + curve.sd[i]);
      }
    }
    const auto info = FindPolicy(policy.spec);
    series.dashed = info.ok() && info.value()->knows_truth;
    chart.series.push_back(std::move(series));
  }
  return RenderSvg(chart);
}

std::string DescribeChanges(const SyntheticOptions& environment) {
  const std::string period =
      fmt::format("every {} to {} rounds", environment.period_min, environment.period_max);
  switch (environment.setting) {
    case Setting::kDirichletProcess:
      return period + ", to a popular taste or a new one";
    case Setting::kFixedSet:
      return period + ", to another of the same tastes";
    case Setting::kStationary:
      break;
  }
  return "never";
}

std::string ReportPage(const ComparisonRecord& record) {
  const SyntheticOptions& environment = record.environment;
  HtmlPage page("Policies compared on people who change their minds");
  page.AddParagraph(fmt::format(
      "{} simulated users with {} tastes at the start; users change {}. Regret is what the best "
      "arm on offer would have brought on average, less what the chosen arm brings: lower is "
      "better. Every policy plays the same rounds.",
      environment.users, environment.models, DescribeChanges(environment)));
  page.AddHeading("Regret");
  page.AddFigure(RegretChart(record, Scale::kLog),
                 "Log scale: the same distance is the same ratio. Dashed: yardsticks that are told "
                 "what no learner can know.");
  page.AddFigure(RegretChart(record, Scale::kLinear), "The same on a linear scale.");
  page.AddHeading("Numbers");
  page.AddTable(SummaryTable(record),
                fmt::format("Mean over {} seed{}, ± standard deviation between seeds.",
                            record.seeds, record.seeds == 1 ? "" : "s"));
  page.AddParagraph(
      "Detected: true changes that the policy noticed before the user's next one; delay: median, "
      "in visits of the user. False alarms: per 1000 steps at which no change was pending. "
      "Precision and recall: over pairs of users, on one model against of one taste.");
  page.AddHeading("How to repeat it");
  page.AddCommand(record.command);
  page.AddKeyValues(
      {{"codband", std::string(kVersion)},
       {"seeds", fmt::format("{} to {}", record.first_seed, record.first_seed + record.seeds - 1)},
       {"noise", fmt::format("{}", environment.noise)},
       {"arms on offer", fmt::format("{} of {}", environment.arms, environment.pool)},
       {"features", fmt::format("{}", environment.dim)},
       {"took", fmt::format("{:.0f} s", record.seconds)}});
  return page.ToHtml();
}

}  // namespace

std::string ToJson(const ComparisonRecord& record) {
  std::vector<std::uint64_t> seeds(record.seeds);
  std::iota(seeds.begin(), seeds.end(), record.first_seed);
  Json policies = Json::array();
  for (const PolicyResults& policy : record.comparison.policies) {
    policies.push_back(PolicyJson(policy));
  }
  const Json json{{"version", kVersion},
                  {"environment", EnvironmentJson(record.environment)},
                  {"seeds", seeds},
                  {"policies", std::move(policies)},
                  {"checkpoint_rounds", record.comparison.checkpoint_rounds}};
  return json.dump(2) + "\n";
}

std::string ToCsv(const ComparisonRecord& record) {
  Table table({{"policy"},
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
  for (const PolicyResults& policy : record.comparison.policies) {
    for (std::size_t s = 0; s < policy.runs.size(); ++s) {
      const RunResult& run = policy.runs[s];
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

Table SummaryTable(const ComparisonRecord& record) {
  Table table({{"policy"},
               {"regret", Align::kRight},
               {"±", Align::kRight},
               {"detected", Align::kRight},
               {"delay", Align::kRight},
               {"false/1000", Align::kRight},
               {"models", Align::kRight},
               {"precision", Align::kRight},
               {"recall", Align::kRight},
               {"µs/step", Align::kRight}});
  for (const PolicyResults& policy : record.comparison.policies) {
    const Summary summary = Summarise(policy);
    const bool detects = Detects(policy.spec);
    table.AddRow(
        {policy.spec, fmt::format("{:.0f}", policy.mean_regret()),
         fmt::format("{:.0f}", policy.sd_regret()),
         detects ? fmt::format("{} of {}", summary.changes.detected, summary.changes.true_changes)
                 : "–",
         detects ? OrDash(summary.changes.median_delay(), "{:.0f}") : "–",
         detects ? fmt::format("{:.2f}", summary.changes.false_alarms_per_1000()) : "–",
         fmt::format("{:.0f}", summary.models), OrDash(summary.clusters.precision(), "{:.2f}"),
         OrDash(summary.clusters.recall(), "{:.2f}"), fmt::format("{:.1f}", summary.us_per_step)});
  }
  return table;
}

Status WriteReport(const ComparisonRecord& record, const std::string& directory) {
  CODBAND_RETURN_IF_ERROR(
      WriteFileDurably(directory + "/regret.svg", RegretChart(record, Scale::kLog)));
  CODBAND_RETURN_IF_ERROR(WriteFileDurably(directory + "/results.json", ToJson(record)));
  CODBAND_RETURN_IF_ERROR(WriteFileDurably(directory + "/runs.csv", ToCsv(record)));
  CODBAND_RETURN_IF_ERROR(WriteFileDurably(directory + "/curves.csv", CurvesCsv(record)));
  return WriteFileDurably(directory + "/report.html", ReportPage(record));
}

}  // namespace codband
