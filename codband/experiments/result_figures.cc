#include "codband/experiments/result_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "codband/policy/registry.h"
#include "codband/report/line_chart.h"

namespace codband::experiments {
namespace {

std::string OrDash(std::optional<double> value, int decimals) {
  return value ? fmt::format("{:.{}f}", *value, decimals) : "–";
}

}  // namespace

bool DetectsChanges(const std::string& spec) {
  const auto info = FindPolicy(spec);
  return info.ok() && info.value()->detects_changes;
}

bool IsYardstick(const std::string& spec) {
  const auto info = FindPolicy(spec);
  return info.ok() && info.value()->knows_truth;
}

std::string_view YardstickNote(std::span<const std::string> specs) {
  return std::ranges::any_of(specs, IsYardstick)
             ? " Dashed: yardsticks, which know the ground truth."
             : "";
}

std::string SeedsText(std::uint64_t first, std::size_t count) {
  return count == 1 ? fmt::format("{}", first) : fmt::format("{} to {}", first, first + count - 1);
}

int PolicyColour(const std::string& spec) {
  // In the order of their colours (report/svg_parts.h), then of dash patterns.
  constexpr std::string_view kOrder[] = {"codband", "linucb", "dlinucb", "adts",  "club",
                                         "",        "sclub",  "lints",   "random"};
  constexpr int kPaper = 5;          // the paper's codband: lighter than the default
  constexpr int kOtherCodband = 12;  // the same with another dash pattern
  const std::string_view name = std::string_view(spec).substr(0, spec.find(':'));
  if (spec == "oracle-greedy") return report::kNeutralColour;
  if (spec == "oracle-filter") return 6;
  if (name.starts_with("oracle-")) return PolicyColour(std::string(name.substr(7)));
  if (name == "codband" && spec != name) return spec == "codband:paper" ? kPaper : kOtherCodband;
  const auto found = std::ranges::find(kOrder, name);
  if (found != std::end(kOrder)) return static_cast<int>(found - std::begin(kOrder));
  // Any other: a number of its own, from its name.
  int number = 0;
  for (const char c : name) number = (number * 31 + static_cast<unsigned char>(c)) % 1000;
  return 13 + number % 8;
}

std::string RegretChart(const std::string& title, std::span<const std::size_t> checkpoint_rounds,
                        std::span<const sim::PolicyResults> policies, report::Scale scale) {
  report::LineChart chart{.title = title,
                          .x_label = "rounds (one visit per user on average)",
                          .y_label = "accumulated regret of all users",
                          .y_scale = scale};
  for (const sim::PolicyResults& policy : policies) {
    const sim::RunSummary summary = sim::Summarise(policy);
    report::LineSeries series{.name = policy.spec,
                              .x = {checkpoint_rounds.begin(), checkpoint_rounds.end()},
                              .y = summary.curve_mean,
                              .dashed = IsYardstick(policy.spec),
                              .strong = policy.spec == "codband",
                              .colour = PolicyColour(policy.spec)};
    if (policy.runs.size() > 1) {
      for (std::size_t i = 0; i < summary.curve_mean.size(); ++i) {
        series.low.push_back(summary.curve_mean[i] - summary.curve_sd[i]);
        series.high.push_back(summary.curve_mean[i] + summary.curve_sd[i]);
      }
    }
    chart.series.push_back(std::move(series));
  }
  return report::RenderSvg(chart);
}

std::vector<report::TableColumn> DiagnosisColumns() {
  return {{"detected", report::Align::kRight},   {"delay", report::Align::kRight},
          {"false/1000", report::Align::kRight}, {"models", report::Align::kRight},
          {"precision", report::Align::kRight},  {"recall", report::Align::kRight}};
}

std::vector<std::string> DiagnosisCells(const std::string& spec, const sim::RunSummary& summary) {
  const sim::ChangeMetrics& changes = summary.changes;
  const bool detects = DetectsChanges(spec);
  return {detects ? fmt::format("{} of {}", changes.detected, changes.true_changes) : "–",
          detects ? OrDash(changes.median_delay(), 0) : "–",
          detects ? OrDash(changes.false_alarms_per_1000(), 2) : "–",
          fmt::format("{:.0f}", summary.models),
          OrDash(summary.clusters.precision(), 2),
          OrDash(summary.clusters.recall(), 2)};
}

std::string_view DiagnosisLegend() {
  return "Detected: true changes for which the policy raised an alarm before the user's next "
         "change; delay: median, in visits of the user. False alarms: per 1000 steps at which no "
         "change awaited its alarm. Precision and recall: over pairs of users, sharing a model "
         "against sharing a taste.";
}

}  // namespace codband::experiments
