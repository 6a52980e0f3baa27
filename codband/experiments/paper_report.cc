#include "codband/experiments/paper_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>

#include "codband/base/file.h"
#include "codband/base/version.h"
#include "codband/experiments/result_figures.h"
#include "codband/experiments/theory_check.h"
#include "codband/policy/registry.h"
#include "codband/report/html_page.h"
#include "codband/report/png.h"
#include "codband/report/strip_chart.h"
#include "codband/sim/summary.h"

namespace codband::experiments {
namespace {

// The experiment of the strip charts: changes are frequent, yet far enough apart to be seen.
constexpr std::string_view kStripExperiment = "row5";

struct Figure {
  std::string name;  // of its files
  std::string svg;
  std::string caption;
};

std::optional<std::size_t> IndexOf(const PaperRecord& record, std::string_view experiment) {
  const auto found = std::ranges::find(record.experiments, experiment, &PaperExperiment::name);
  if (found == record.experiments.end()) return std::nullopt;
  return static_cast<std::size_t>(found - record.experiments.begin());
}

// oracle-greedy + oracle-filter: the cost of learning the parameters plus that of finding out who
// has which, a practical lower limit for policies that must do both.
std::optional<double> Limit(const std::vector<sim::PolicyResults>& results) {
  double sum = 0;
  for (const char* part : {"oracle-greedy", "oracle-filter"}) {
    const auto found = std::ranges::find(results, part, &sim::PolicyResults::spec);
    if (found == results.end()) return std::nullopt;
    sum += sim::Summarise(*found).mean_regret;
  }
  return sum;
}

std::optional<double> Published(const PaperExperiment& experiment, const std::string& policy) {
  const auto found = experiment.published.find(policy);
  if (found == experiment.published.end()) return std::nullopt;
  return found->second;
}

std::vector<std::size_t> Rounds(const PaperRecord& record, std::size_t experiment) {
  return sim::CheckpointRounds(record.experiments[experiment].environment.rounds,
                               record.results[experiment].front().runs.front().regret.size());
}

// One row for each experiment, one column for each policy; cell(experiment, policy).
template <typename Cell>
report::ReportTable PolicyTable(const PaperRecord& record, const Cell& cell) {
  // codband first, so that it is in sight however many there are.
  std::vector<std::size_t> order(record.policies.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_partition(
      order, [&](std::size_t p) { return record.policies[p].starts_with("codband"); });
  std::vector<report::TableColumn> columns = {{"experiment"}};
  for (const std::size_t p : order) columns.push_back({record.policies[p], report::Align::kRight});
  report::ReportTable table(std::move(columns));
  for (std::size_t e = 0; e < record.experiments.size(); ++e) {
    std::vector<std::string> cells = {
        fmt::format("{}: {}", record.experiments[e].name, record.experiments[e].title)};
    std::optional<std::size_t> best;
    for (std::size_t column = 0; column < order.size(); ++column) {
      const std::size_t p = order[column];
      cells.push_back(cell(e, p));
      const auto regret = [&](std::size_t i) {
        return sim::Summarise(record.results[e][i]).mean_regret;
      };
      if (IsYardstick(record.policies[p])) continue;
      if (!best || regret(p) < regret(order[*best])) best = column;
    }
    table.AddRow(std::move(cells));
    if (best) table.Emphasise(e, *best + 1);
  }
  return table;
}

report::ReportTable LimitTable(const PaperRecord& record) {
  return PolicyTable(record, [&](std::size_t e, std::size_t p) -> std::string {
    const auto limit = Limit(record.results[e]);
    if (!limit) return "–";
    return fmt::format("{:.2f}", sim::Summarise(record.results[e][p]).mean_regret / *limit);
  });
}

report::ReportTable DiagnosisTable(const PaperRecord& record) {
  std::vector<report::TableColumn> columns = {{"experiment"}, {"policy"}};
  std::ranges::copy(DiagnosisColumns(), std::back_inserter(columns));
  columns.push_back({"µs/step", report::Align::kRight});
  report::ReportTable table(std::move(columns));
  for (std::size_t e = 0; e < record.experiments.size(); ++e) {
    for (const sim::PolicyResults& policy : record.results[e]) {
      const auto info = FindPolicy(policy.spec);
      if (IsYardstick(policy.spec) ||
          !(info.value()->detects_changes || info.value()->shares_between_users)) {
        continue;
      }
      const sim::RunSummary summary = sim::Summarise(policy);
      std::vector<std::string> cells = {record.experiments[e].name, policy.spec};
      std::ranges::copy(DiagnosisCells(policy.spec, summary), std::back_inserter(cells));
      cells.push_back(fmt::format("{:.1f}", summary.us_per_step));
      table.AddRow(std::move(cells));
    }
  }
  return table;
}

std::string TableCsv(const PaperRecord& record) {
  report::ReportTable table({{"experiment"},
                             {"models"},
                             {"period_min"},
                             {"period_max"},
                             {"noise"},
                             {"policy"},
                             {"seeds"},
                             {"regret_mean"},
                             {"regret_sd"},
                             {"paper"},
                             {"ratio_to_paper"},
                             {"ratio_to_limit"},
                             {"changes_true"},
                             {"changes_detected"},
                             {"median_delay"},
                             {"false_alarms_per_1000"},
                             {"pool_models"},
                             {"precision"},
                             {"recall"}});
  const auto text = [](std::optional<double> value) {
    return value ? fmt::format("{}", *value) : "";
  };
  for (std::size_t e = 0; e < record.experiments.size(); ++e) {
    const PaperExperiment& experiment = record.experiments[e];
    const auto limit = Limit(record.results[e]);
    for (const sim::PolicyResults& policy : record.results[e]) {
      const sim::RunSummary summary = sim::Summarise(policy);
      const auto published = Published(experiment, policy.spec);
      const auto ratio = [&](std::optional<double> to) {
        return to ? text(summary.mean_regret / *to) : "";
      };
      table.AddRow({experiment.name, fmt::format("{}", experiment.environment.models),
                    fmt::format("{}", experiment.environment.period_min),
                    fmt::format("{}", experiment.environment.period_max),
                    fmt::format("{}", experiment.environment.noise), policy.spec,
                    fmt::format("{}", record.seeds), text(summary.mean_regret),
                    text(summary.sd_regret), text(published), ratio(published), ratio(limit),
                    fmt::format("{}", summary.changes.true_changes),
                    fmt::format("{}", summary.changes.detected),
                    text(summary.changes.median_delay()),
                    text(summary.changes.false_alarms_per_1000()), text(summary.models),
                    text(summary.clusters.precision()), text(summary.clusters.recall())});
    }
  }
  return table.ToCsv();
}

std::string CurvesCsv(const PaperRecord& record) {
  report::ReportTable table(
      {{"experiment"}, {"policy"}, {"rounds"}, {"regret_mean"}, {"regret_sd"}});
  for (std::size_t e = 0; e < record.experiments.size(); ++e) {
    const std::vector<std::size_t> rounds = Rounds(record, e);
    for (const sim::PolicyResults& policy : record.results[e]) {
      const sim::RunSummary summary = sim::Summarise(policy);
      for (std::size_t i = 0; i < rounds.size(); ++i) {
        table.AddRow({record.experiments[e].name, policy.spec, fmt::format("{}", rounds[i]),
                      fmt::format("{}", summary.curve_mean[i]),
                      fmt::format("{}", summary.curve_sd[i])});
      }
    }
  }
  return table.ToCsv();
}

std::vector<Figure> RegretFigures(const PaperRecord& record) {
  constexpr struct {
    std::string_view experiment;
    std::string_view file;
    std::string_view title;
  } kFigures[] = {
      {"setting1", "figure2a", "Figure 2 (a): setting 1, users move to popular or new tastes"},
      {"row1", "figure2b", "Figure 2 (b): setting 2, users move among ten tastes"},
      {"setting3", "figure2c", "Figure 2 (c): setting 3, users never change"},
  };
  std::vector<Figure> figures;
  for (const auto& [experiment, file, title] : kFigures) {
    const auto e = IndexOf(record, experiment);
    if (!e) continue;
    figures.push_back(
        {std::string(file),
         RegretChart(std::string(title), Rounds(record, *e), record.results[*e],
                     report::Scale::kLog),
         fmt::format("Log scale.{}{}",
                     record.seeds > 1 ? " Bands: ± one standard deviation between seeds." : "",
                     YardstickNote(record.policies))});
  }
  return figures;
}

// The model of every user over time.
report::StripChart MakeStrip(const PaperExperiment& experiment, const sim::PolicyResults& policy) {
  const sim::RunResult& run = policy.runs.front();
  const std::vector<std::size_t> rounds =
      sim::CheckpointRounds(experiment.environment.rounds, run.user_models.size());
  // Models are numbered by how much they were used, so that the most used have colours of their
  // own.
  std::map<ModelId, std::size_t> uses;
  for (const std::vector<ModelId>& users : run.user_models) {
    for (const ModelId model : users) ++uses[model];
  }
  uses.erase(kNoModel);
  std::vector<std::pair<ModelId, std::size_t>> order(uses.begin(), uses.end());
  std::ranges::stable_sort(order, std::greater{}, &std::pair<ModelId, std::size_t>::second);
  std::map<ModelId, int> category = {{kNoModel, -1}};
  for (const auto& [model, count] : order) {
    category.emplace(model, static_cast<int>(category.size() - 1));
  }
  report::StripChart chart{.title = fmt::format("{}: the model of each user", policy.spec),
                           .x_label = "rounds",
                           .mark_name = "true change"};
  for (UserId user = 0; user < experiment.environment.users; ++user) {
    report::StripRow row{.label = fmt::format("{}", user)};
    double begin = 0;
    for (std::size_t i = 0; i < rounds.size(); ++i) {
      const auto end = static_cast<double>(rounds[i]);
      row.segments.push_back({begin, end, category.at(run.user_models[i][user])});
      begin = end;
    }
    for (const auto& [who, round] : run.true_changes) {
      if (who == user) row.marks.push_back(static_cast<double>(round));
    }
    chart.rows.push_back(std::move(row));
  }
  return chart;
}

std::vector<Figure> StripFigures(const PaperRecord& record) {
  std::vector<Figure> figures;
  for (std::size_t e = 0; e < record.experiments.size(); ++e) {
    for (std::size_t p = 0; p < record.policies.size(); ++p) {
      if (!NeedsUserModels(record, e, p)) continue;
      std::string name = "strip-" + record.policies[p];
      std::ranges::replace_if(
          name, [](char c) { return c == ':' || c == ',' || c == '='; }, '-');
      figures.push_back(
          {std::move(name),
           report::RenderSvg(MakeStrip(record.experiments[e], record.results[e][p])),
           fmt::format("{} ({}), seed {}. One line for each user; colour: the model of the pool "
                       "that the user is assigned to; ticks: the user's true changes. Users of one "
                       "colour share what is learned; a colour should begin at a tick.",
                       record.experiments[e].name, record.experiments[e].title,
                       record.first_seed)});
    }
  }
  return figures;
}

std::string MachineText() {
  std::string model = "unknown processor";
  if (const auto text = ReadFile("/proc/cpuinfo"); text.ok()) {
    const std::size_t line = text.value().find("model name");
    const std::size_t colon = text.value().find(':', line);
    if (line != std::string::npos && colon != std::string::npos) {
      model = text.value().substr(colon + 2, text.value().find('\n', colon) - colon - 2);
    }
  }
  return fmt::format("{}, {} cores", model, std::thread::hardware_concurrency());
}

// What a quick run shows of the full experiment. The orders named here are those of the full run
// (docs/evaluation.md) and of `codband paper --quick --seeds 3`.
constexpr std::string_view kQuickNote =
    "A quick run: two fifths of the users, a third of the rounds, periods a third as long. It "
    "shows "
    "that everything works, and the large differences: policies that do not detect changes "
    "(linucb, "
    "club, sclub) are far behind codband. It shows neither the numbers nor always the order of the "
    "full experiment, since in shorter periods more of the regret is that of learning anew after a "
    "change. adts cannot detect a change before a user's 850th visit, so it falls "
    "behind linucb here, but is ahead of it in rows 1 to 8 of the full experiment. With 100 tastes "
    "(row 3) codband:paper and dlinucb are about equal here, while codband:paper is ahead in full.";

void AddRegret(const PaperRecord& record, const std::vector<Figure>& figures,
               report::HtmlPage& page) {
  page.AddHeading("Regret over time");
  for (const Figure& figure : figures) page.AddFigure(figure.svg, figure.caption);
  page.AddHeading("The table");
  page.AddTable(RegretTable(record),
                record.quick ? "Mean accumulated regret. Bold: the best learner of the row."
                             : "Mean accumulated regret; in brackets the paper's number. Bold: the "
                               "best learner of the row.");
  page.AddTable(
      LimitTable(record),
      "The same as a multiple of the limit, the regret of oracle-greedy (cost of learning "
      "the tastes) plus that of oracle-filter (cost of finding out who has which).");
  if (std::ranges::any_of(record.experiments, [](const PaperExperiment& experiment) {
        return experiment.environment.setting == sim::Setting::kDirichletProcess;
      })) {
    page.AddParagraph(
        "In setting 1 the paper's own parameters are used: linucb with alpha = 0.3, adts with v = "
        "1, club with alpha = 0.1 and alpha2 = 2.");
  }
}

void AddTheory(const TheoryCheck& theory, report::HtmlPage& page) {
  if (theory.figures.empty()) return;
  page.AddHeading("Does regret grow as the theory says?");
  page.AddParagraph(
      "The paper bounds the regret by O(σ d √T log T Σ√p_k + K ΣΓ): T steps, a share p_k of them "
      "with taste k, K tastes, ΣΓ changes of all users. On each of these scales the bound is "
      "linear; dashed is the least-squares fit.");
  for (const auto& [name, svg] : theory.figures) page.AddFigure(svg);
  page.AddTable(theory.slopes, "Slopes of the fits; r² near 1: linear.");
}

std::string ReportPage(const PaperRecord& record, const std::vector<Figure>& regret,
                       const std::vector<Figure>& strips, const TheoryCheck& theory) {
  report::HtmlPage page("Collaborative dynamic bandits: the synthetic experiments");
  page.AddParagraph(fmt::format(
      "Regret is the expected reward of the best arm offered minus that of the chosen arm, summed "
      "over all users and rounds: lower is better. All policies play the same rounds. Means over "
      "{} seed{}.",
      record.seeds, record.seeds == 1 ? "" : "s"));
  if (record.quick) page.AddParagraph(kQuickNote);
  AddRegret(record, regret, page);
  page.AddHeading("Changes and groups");
  page.AddTable(DiagnosisTable(record));
  page.AddParagraph(DiagnosisLegend());
  for (const Figure& figure : strips) page.AddFigure(figure.svg, figure.caption);
  AddTheory(theory, page);
  page.AddHeading("How to repeat it");
  page.AddCommand(record.command);
  page.AddKeyValues({{"codband", std::string(kVersion)},
                     {"seeds", SeedsText(record.first_seed, record.seeds)},
                     {"machine", MachineText()},
                     {"took", fmt::format("{:.0f} s, with {} runs found on disk", record.seconds,
                                          record.resumed_runs)}});
  return page.ToHtml();
}

Status WriteFigure(const std::string& directory, const std::string& name, const std::string& svg) {
  const std::string path = directory + "/" + name;
  CODBAND_RETURN_IF_ERROR(WriteFileDurably(path + ".svg", svg));
  const Status status = report::WritePng(path + ".svg", path + ".png");
  // The figure is there as SVG; a missing converter must not lose the rest of the report.
  return status.code() == StatusCode::kUnavailable ? Status() : status;
}

}  // namespace

bool NeedsUserModels(const PaperRecord& record, std::size_t experiment, std::size_t policy) {
  return record.experiments[experiment].name == kStripExperiment &&
         (record.policies[policy] == "codband" || record.policies[policy] == "codband:paper");
}

report::ReportTable RegretTable(const PaperRecord& record) {
  return PolicyTable(record, [&](std::size_t e, std::size_t p) {
    const auto published = Published(record.experiments[e], record.policies[p]);
    return fmt::format("{:.0f}{}", sim::Summarise(record.results[e][p]).mean_regret,
                       published ? fmt::format(" ({:.0f})", *published) : "");
  });
}

Status WritePaperReport(const PaperRecord& record, const std::string& directory) {
  const std::vector<Figure> regret = RegretFigures(record);
  const std::vector<Figure> strips = StripFigures(record);
  const TheoryCheck theory = CheckTheory(record);
  for (const Figure& figure : regret) {
    CODBAND_RETURN_IF_ERROR(WriteFigure(directory, figure.name, figure.svg));
  }
  for (const Figure& figure : strips) {
    CODBAND_RETURN_IF_ERROR(WriteFigure(directory, figure.name, figure.svg));
  }
  for (const auto& [name, svg] : theory.figures) {
    CODBAND_RETURN_IF_ERROR(WriteFigure(directory, name, svg));
  }
  CODBAND_RETURN_IF_ERROR(
      WriteFileDurably(directory + "/table.md",
                       RegretTable(record).ToMarkdown() + "\n" + LimitTable(record).ToMarkdown()));
  CODBAND_RETURN_IF_ERROR(WriteFileDurably(directory + "/table.csv", TableCsv(record)));
  CODBAND_RETURN_IF_ERROR(WriteFileDurably(directory + "/curves.csv", CurvesCsv(record)));
  return WriteFileDurably(directory + "/report.html", ReportPage(record, regret, strips, theory));
}

}  // namespace codband::experiments
