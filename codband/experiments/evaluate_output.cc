#include "codband/experiments/evaluate_output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "codband/base/file.h"
#include "codband/base/text.h"
#include "codband/base/version.h"
#include "codband/eval/verdict.h"
#include "codband/experiments/or_null.h"
#include "codband/report/html_page.h"
#include "codband/report/interval_chart.h"
#include "codband/report/table.h"

namespace codband::experiments {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr const char* kNone = "–";

std::string Percent(const EvaluationRecord& record) {
  return fmt::format("{:g}%", 100 * record.options.confidence);
}

std::string Text(const std::optional<double>& value) {
  return value ? FormatNumber(*value) : kNone;
}

std::string Text(const std::optional<eval::Interval>& interval) {
  if (!interval) return kNone;
  return fmt::format("{} … {}", FormatNumber(interval->low), FormatNumber(interval->high));
}

std::optional<eval::Interval> BootstrapOf(const eval::Estimate& estimate) {
  if (!estimate.bootstrap) return std::nullopt;
  return estimate.bootstrap->interval;
}

report::ReportTable EstimateTable(const EvaluationRecord& record) {
  report::ReportTable table({{"policy"},
                             {"estimator"},
                             {"value", report::Align::kRight},
                             {"± error", report::Align::kRight},
                             {Percent(record) + " bootstrap", report::Align::kRight},
                             {Percent(record) + " guaranteed", report::Align::kRight}});
  for (const eval::TargetReport& target : record.evaluation.targets) {
    for (const eval::Estimate& estimate : target.estimates) {
      table.AddRow({target.name, std::string(eval::EstimatorName(estimate.estimator)),
                    Text(estimate.value),
                    estimate.bootstrap ? FormatNumber(estimate.bootstrap->standard_error) : kNone,
                    Text(BootstrapOf(estimate)), Text(estimate.guaranteed)});
    }
  }
  return table;
}

report::ReportTable SupportTable(const EvaluationRecord& record) {
  report::ReportTable table({{"policy"},
                             {"effective events", report::Align::kRight},
                             {"replay events", report::Align::kRight},
                             {"largest weight", report::Align::kRight},
                             {"mean weight", report::Align::kRight},
                             {"outside the log", report::Align::kRight}});
  for (const eval::TargetReport& target : record.evaluation.targets) {
    table.AddRow({target.name, fmt::format("{:.0f}", target.effective_sample),
                  fmt::format("{}", target.accepted), FormatNumber(target.largest_weight),
                  fmt::format("{:.3f}", target.mean_weight),
                  target.unsupported ? fmt::format("{:.1f}%", 100 * *target.unsupported) : kNone});
  }
  return table;
}

// Of the log, then of each policy.
std::vector<std::string> Warnings(const EvaluationRecord& record) {
  std::vector<std::string> warnings;
  if (record.log.skipped > 0) {
    warnings.push_back(fmt::format(
        "{} of {} lines left out{}; the first: {}", record.log.skipped, record.log.lines,
        record.log.duplicates > 0 ? fmt::format(" ({} of them duplicates)", record.log.duplicates)
                                  : "",
        record.log.first_problem));
  }
  for (const std::string& warning : record.evaluation.warnings) warnings.push_back(warning);
  for (const eval::TargetReport& target : record.evaluation.targets) {
    for (const std::string& warning : target.warnings) {
      warnings.push_back(fmt::format("{}: {}", target.name, warning));
    }
  }
  return warnings;
}

std::string LogSubject(const EvaluationRecord& record) {
  return fmt::format(
      "{} decisions for {} user{} among {} action{}; features: {}; rewards from {} to {}{}; "
      "smallest propensity {}{}; events in the order of {}.",
      GroupThousands(fmt::format("{}", record.evaluation.events)), record.users,
      record.users == 1 ? "" : "s", record.actions, record.actions == 1 ? "" : "s",
      record.log.features, FormatNumber(record.evaluation.range.low),
      FormatNumber(record.evaluation.range.high),
      record.options.reward_low && record.options.reward_high ? " (as given)" : " (from the data)",
      FormatNumber(record.evaluation.smallest_propensity),
      record.options.smallest_propensity ? " (as given)" : " (from the data)",
      record.sorted ? "time" : "the log");
}

Json IntervalJson(const std::optional<eval::Interval>& interval) {
  return interval ? Json{interval->low, interval->high} : Json(nullptr);
}

Json TargetJson(const eval::TargetReport& target) {
  Json estimates = Json::array();
  for (const eval::Estimate& estimate : target.estimates) {
    estimates.push_back(
        {{"estimator", eval::EstimatorName(estimate.estimator)},
         {"value", OrNull(estimate.value)},
         {"standard_error",
          estimate.bootstrap ? Json(estimate.bootstrap->standard_error) : Json(nullptr)},
         {"bootstrap", IntervalJson(BootstrapOf(estimate))},
         {"guaranteed", IntervalJson(estimate.guaranteed)}});
  }
  return {{"name", target.name},
          {"on_policy", target.on_policy},
          {"estimates", std::move(estimates)},
          {"effective_sample", target.effective_sample},
          {"replay_events", target.accepted},
          {"largest_weight", target.largest_weight},
          {"weight_bound", target.weight_bound},
          {"mean_weight", target.mean_weight},
          {"unsupported", OrNull(target.unsupported)},
          {"warnings", target.warnings}};
}

std::string EstimatesFigure(const EvaluationRecord& record) {
  report::IntervalChart chart{.title = "Estimated mean reward of each policy",
                              .x_label = "mean reward per decision",
                              .series = {"mean (of the log)", "replay", "ips", "snips", "dr", "dm"},
                              .rows = {},
                              .inner_name = Percent(record) + " bootstrap",
                              .outer_name = Percent(record) + " guaranteed"};
  for (const eval::TargetReport& target : record.evaluation.targets) {
    report::IntervalRow row{.label = target.name};
    for (const eval::Estimate& estimate : target.estimates) {
      const eval::Interval none{kNan, kNan};
      const eval::Interval inner = BootstrapOf(estimate).value_or(none);
      const eval::Interval outer = estimate.guaranteed.value_or(none);
      row.marks.push_back({.series = static_cast<int>(estimate.estimator),
                           .value = estimate.value.value_or(kNan),
                           .low = inner.low,
                           .high = inner.high,
                           .outer_low = outer.low,
                           .outer_high = outer.high});
    }
    chart.rows.push_back(std::move(row));
  }
  return report::RenderSvg(chart);
}

std::string ReportPage(const EvaluationRecord& record) {
  report::HtmlPage page("What other policies would have earned");
  page.AddLead(eval::Verdict(record.evaluation, record.options.confidence));
  page.AddParagraph(LogSubject(record));
  page.AddFigure(
      EstimatesFigure(record),
      "A dot is an estimate of the mean reward per decision. Thick: bootstrap interval, "
      "approximate. Thin: confidence interval that holds for any distribution of rewards within "
      "their range, if the log's propensities are right. An arrowhead: an interval extends "
      "further; a triangle: the estimate itself is beyond the axis.");
  const std::vector<std::string> warnings = Warnings(record);
  if (!warnings.empty()) page.AddHeading("Warnings");
  for (const std::string& warning : warnings) page.AddParagraph(warning);
  page.AddHeading("Estimates");
  page.AddTable(EstimateTable(record),
                "replay: mean over events where policy and log agree. ips: inverse propensity "
                "scoring. snips: self-normalised ips. dr: doubly robust. dm: direct method, the "
                "reward model alone, for reference.");
  page.AddHeading("How well the log supports them");
  page.AddTable(
      SupportTable(record),
      "Effective events: effective sample size, about how many on-policy decisions the "
      "log is worth. Mean weight: near 1 if the log's propensities are right. Outside the "
      "log: probability that the policy puts on actions that the log could not choose; – "
      "if the log does not have all probabilities.");
  page.AddHeading("How to repeat it");
  page.AddCommand(record.command);
  page.AddKeyValues({{"codband", std::string(kVersion)},
                     {"files", fmt::format("{}", fmt::join(record.files, ", "))},
                     {"resamples", fmt::format("{}", record.options.resamples)},
                     {"seed", fmt::format("{}", record.options.seed)},
                     {"learning from", record.options.learn == eval::LearnFrom::kAll
                                           ? "every logged reward, after the event was scored"
                                           : "rewards of events that replay accepts"}});
  return page.ToHtml();
}

}  // namespace

std::string ToText(const EvaluationRecord& record) {
  std::string text = eval::Verdict(record.evaluation, record.options.confidence) + "\n\n" +
                     LogSubject(record) + "\n\n" + EstimateTable(record).ToText() + "\n" +
                     SupportTable(record).ToText();
  const std::vector<std::string> warnings = Warnings(record);
  if (!warnings.empty()) text += "\nWarnings:\n";
  for (const std::string& warning : warnings) text += "  " + OneLine(warning) + "\n";
  return text;
}

std::string ToJson(const EvaluationRecord& record) {
  Json policies = Json::array();
  for (const eval::TargetReport& target : record.evaluation.targets) {
    policies.push_back(TargetJson(target));
  }
  const eval::Evaluation& evaluation = record.evaluation;
  const Json json{
      {"version", kVersion},
      {"verdict", eval::Verdict(record.evaluation, record.options.confidence)},
      {"log",
       {{"files", record.files},
        {"events", evaluation.events},
        {"lines", record.log.lines},
        {"skipped", record.log.skipped},
        {"duplicates", record.log.duplicates},
        {"first_problem",
         record.log.first_problem.empty() ? Json(nullptr) : Json(record.log.first_problem)},
        {"users", record.users},
        {"actions", record.actions},
        {"dim", record.dim},
        {"order", record.sorted ? "time" : "log"},
        {"reward_range", {evaluation.range.low, evaluation.range.high}},
        {"smallest_propensity", evaluation.smallest_propensity},
        {"all_probabilities", evaluation.all_probabilities},
        {"warnings", evaluation.warnings}}},
      {"confidence", record.options.confidence},
      {"resamples", record.options.resamples},
      {"seed", record.options.seed},
      {"learn", record.options.learn == eval::LearnFrom::kAll ? "all" : "accepted"},
      {"policies", std::move(policies)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string ToCsv(const EvaluationRecord& record) {
  report::ReportTable table({{"policy"},
                             {"estimator"},
                             {"value"},
                             {"standard_error"},
                             {"bootstrap_low"},
                             {"bootstrap_high"},
                             {"guaranteed_low"},
                             {"guaranteed_high"},
                             {"effective_sample"},
                             {"replay_events"},
                             {"largest_weight"}});
  const auto text = [](bool there, double value) { return there ? fmt::format("{}", value) : ""; };
  for (const eval::TargetReport& target : record.evaluation.targets) {
    for (const eval::Estimate& estimate : target.estimates) {
      const bool inner = estimate.bootstrap.has_value();
      const bool outer = estimate.guaranteed.has_value();
      const eval::BootstrapResult bootstrap = estimate.bootstrap.value_or(eval::BootstrapResult{});
      const eval::Interval guaranteed = estimate.guaranteed.value_or(eval::Interval{});
      table.AddRow({target.name, std::string(eval::EstimatorName(estimate.estimator)),
                    text(estimate.value.has_value(), estimate.value.value_or(0)),
                    text(inner, bootstrap.standard_error), text(inner, bootstrap.interval.low),
                    text(inner, bootstrap.interval.high), text(outer, guaranteed.low),
                    text(outer, guaranteed.high), fmt::format("{}", target.effective_sample),
                    fmt::format("{}", target.accepted), fmt::format("{}", target.largest_weight)});
    }
  }
  return table.ToCsv();
}

Status WriteReport(const EvaluationRecord& record, const std::string& directory) {
  CODBAND_RETURN_IF_ERROR(WriteFileDurably(directory + "/estimates.svg", EstimatesFigure(record)));
  CODBAND_RETURN_IF_ERROR(WriteFileDurably(directory + "/results.json", ToJson(record)));
  CODBAND_RETURN_IF_ERROR(WriteFileDurably(directory + "/estimates.csv", ToCsv(record)));
  return WriteFileDurably(directory + "/report.html", ReportPage(record));
}

}  // namespace codband::experiments
