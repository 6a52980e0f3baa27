#include "codband/experiments/theory_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "codband/base/check.h"
#include "codband/report/line_chart.h"
#include "codband/sim/summary.h"

namespace codband::experiments {
namespace {

struct Points {
  std::vector<double> x;
  std::vector<double> y;
};

// Adds the points of a policy and their fitted line to a chart, and the fit to the table.
void AddFit(const std::string& scale, const std::string& policy, int colour, const Points& points,
            report::SeriesDraw draw, report::LineChart& chart, report::ReportTable& slopes) {
  chart.series.push_back(
      {.name = policy, .x = points.x, .y = points.y, .draw = draw, .colour = colour});
  const auto [low, high] = std::ranges::minmax(points.x);
  // Experiments may have the same number of changes by chance: there is no line through them.
  if (low == high) return;
  const LineFit fit = FitLine(points.x, points.y);
  chart.series.push_back({.x = {low, high},
                          .y = {fit.intercept + fit.slope * low, fit.intercept + fit.slope * high},
                          .dashed = true,
                          .colour = colour});
  slopes.AddRow({scale, policy, fmt::format("{:.3g}", fit.slope),
                 fmt::format("{:.3g}", fit.intercept), fmt::format("{:.3f}", fit.r_squared)});
}

// Places of the experiments that the record has.
std::vector<std::size_t> Present(const PaperRecord& record,
                                 std::initializer_list<std::string_view> names) {
  std::vector<std::size_t> indices;
  for (const std::string_view name : names) {
    const auto found = std::ranges::find(record.experiments, name, &PaperExperiment::name);
    if (found != record.experiments.end()) {
      indices.push_back(static_cast<std::size_t>(found - record.experiments.begin()));
    }
  }
  return indices;
}

// The policies that the bound is about, in the order of their colours.
std::vector<std::size_t> Subjects(const PaperRecord& record) {
  std::vector<std::size_t> subjects;
  for (std::size_t p = 0; p < record.policies.size(); ++p) {
    const std::string& policy = record.policies[p];
    if (policy.starts_with("codband")) subjects.push_back(p);
  }
  return subjects;
}

// Without changes: the regret curve of setting3 against √T log T.
void CheckSteps(const PaperRecord& record, const std::vector<std::size_t>& subjects,
                TheoryCheck& check) {
  const std::vector<std::size_t> stationary = Present(record, {"setting3"});
  if (stationary.empty()) return;
  const std::size_t e = stationary.front();
  const sim::SyntheticOptions& environment = record.experiments[e].environment;
  report::LineChart chart{.title = "Without changes: regret against √T log T",
                          .x_label = "√T log T, T steps of all users",
                          .y_label = "accumulated regret"};
  int colour = 0;
  for (const std::size_t p : subjects) {
    Points points;
    const sim::RunSummary summary = sim::Summarise(record.results[e][p]);
    const auto rounds = sim::CheckpointRounds(environment.rounds, summary.curve_mean.size());
    for (std::size_t i = 0; i < rounds.size(); ++i) {
      const auto steps = static_cast<double>(rounds[i] * environment.users);
      points.x.push_back(std::sqrt(steps) * std::log(steps));
      points.y.push_back(summary.curve_mean[i]);
    }
    AddFit("√T log T", record.policies[p], colour++, points, report::SeriesDraw::kLine, chart,
           check.slopes);
  }
  check.figures.emplace_back("theory-steps", report::RenderSvg(chart));
}

// A scale on which experiments differ: total regret against x.
struct Scale {
  std::initializer_list<std::string_view> experiments;
  const char* name;
  const char* file;
  const char* title;
  const char* x_label;
  double (*x)(const PaperRecord& record, const PaperExperiment& experiment,
              const sim::RunSummary& summary);
};

void CheckAcross(const PaperRecord& record, const std::vector<std::size_t>& subjects,
                 const Scale& scale, TheoryCheck& check) {
  const std::vector<std::size_t> present = Present(record, scale.experiments);
  if (present.size() < 2) return;
  report::LineChart chart{
      .title = scale.title, .x_label = scale.x_label, .y_label = "accumulated regret"};
  int colour = 0;
  for (const std::size_t p : subjects) {
    Points points;
    for (const std::size_t e : present) {
      const sim::RunSummary summary = sim::Summarise(record.results[e][p]);
      points.x.push_back(scale.x(record, record.experiments[e], summary));
      points.y.push_back(summary.mean_regret);
    }
    AddFit(scale.name, record.policies[p], colour++, points, report::SeriesDraw::kMarkers, chart,
           check.slopes);
  }
  check.figures.emplace_back(scale.file, report::RenderSvg(chart));
}

}  // namespace

LineFit FitLine(const std::vector<double>& x, const std::vector<double>& y) {
  CODBAND_CHECK(x.size() == y.size() && x.size() >= 2);
  const auto n = static_cast<double>(x.size());
  double mean_x = 0;
  double mean_y = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    mean_x += x[i] / n;
    mean_y += y[i] / n;
  }
  double xx = 0;
  double xy = 0;
  double yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
  }
  CODBAND_CHECK(xx > 0);
  const double slope = xy / xx;
  return {.intercept = mean_y - slope * mean_x,
          .slope = slope,
          .r_squared = yy > 0 ? xy * xy / (xx * yy) : 1};
}

TheoryCheck CheckTheory(const PaperRecord& record) {
  TheoryCheck check{{},
                    report::ReportTable({{"against"},
                                         {"policy"},
                                         {"slope", report::Align::kRight},
                                         {"intercept", report::Align::kRight},
                                         {"r²", report::Align::kRight}})};
  const std::vector<std::size_t> subjects = Subjects(record);
  if (subjects.empty()) return check;
  CheckSteps(record, subjects, check);
  CheckAcross(
      record, subjects,
      {{"row1", "row6", "row5", "row4"},
       "changes",
       "theory-changes",
       "Regret against the number of changes (rows 1, 6, 5, 4)",
       "changes of all users, ΣΓ",
       [](const PaperRecord& played, const PaperExperiment&, const sim::RunSummary& summary) {
         return static_cast<double>(summary.changes.true_changes) /
                static_cast<double>(played.seeds);
       }},
      check);
  CheckAcross(record, subjects,
              {{"row1", "row2", "row3"},
               "tastes",
               "theory-models",
               "Regret against the number of tastes (rows 1, 2, 3)",
               "tastes, K",
               [](const PaperRecord&, const PaperExperiment& experiment, const sim::RunSummary&) {
                 return static_cast<double>(experiment.environment.models);
               }},
              check);
  return check;
}

}  // namespace codband::experiments
