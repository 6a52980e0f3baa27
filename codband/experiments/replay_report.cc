#include "codband/experiments/replay_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "codband/base/file.h"
#include "codband/base/text.h"
#include "codband/base/version.h"
#include "codband/experiments/result_figures.h"
#include "codband/report/html_page.h"
#include "codband/report/line_chart.h"
#include "codband/report/word_cloud.h"

namespace codband::experiments {
namespace {

std::string CloudFigure(const ReplayRecord& record, const replay::ReplayResults& policy,
                        const std::vector<Group>& groups) {
  std::vector<report::WordCloud> clouds;
  for (const Group& group : groups) {
    report::WordCloud cloud{
        .title = fmt::format("Model {}: {} of {} users", clouds.size() + 1, group.model.users,
                             record.stream.user_count),
        .subtitle = fmt::format("learned from {} events",
                                GroupThousands(fmt::format("{}", group.model.observations)))};
    for (const replay::WeightedTag& tag : group.tags) {
      cloud.words.push_back({.text = tag.tag, .weight = tag.weight});
    }
    clouds.push_back(std::move(cloud));
  }
  return report::RenderSvg(fmt::format("{}: tags of its most popular models", policy.spec), clouds);
}

std::string StreamName(const ReplayRecord& record) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::weakly_canonical(record.directory, error);
  return error || path.filename().empty() ? record.directory : path.filename().string();
}

// curves(policy) is what is drawn for a policy.
template <typename Curves>
std::string CurveFigure(const ReplayRecord& record, const std::string& title,
                        const std::string& y_label, const Curves& curves) {
  report::LineChart chart{.title = title, .x_label = "events", .y_label = y_label};
  const std::vector<std::size_t>& events = record.comparison.checkpoint_events;
  for (const replay::ReplayResults& policy : record.comparison.policies) {
    const sim::CurveSpread spread = curves(policy);
    report::LineSeries series{.name = policy.spec,
                              .x = {events.begin(), events.end()},
                              .y = spread.mean,
                              .strong = policy.spec == "codband",
                              .colour = PolicyColour(policy.spec)};
    if (policy.spec == "random") {
      series.dashed = true;
      series.colour = report::kNeutralColour;
    }
    if (policy.runs.size() > 1) {
      for (std::size_t i = 0; i < spread.mean.size(); ++i) {
        series.low.push_back(spread.mean[i] - spread.sd[i]);
        series.high.push_back(spread.mean[i] + spread.sd[i]);
      }
    }
    chart.series.push_back(std::move(series));
  }
  return report::RenderSvg(chart);
}

std::string RewardFigure(const ReplayRecord& record) {
  return CurveFigure(
      record, (record.stream.logged ? "Clicks on " : "Accumulated reward on ") + StreamName(record),
      record.stream.logged ? "clicks on events that count" : "positives chosen",
      [](const replay::ReplayResults& policy) { return RewardCurves(policy); });
}

std::string NormalisedFigure(const ReplayRecord& record) {
  return CurveFigure(
      record,
      (record.stream.logged ? "Normalised CTR on " : "Normalised reward on ") + StreamName(record),
      record.stream.logged ? "CTR over that of the log"
                           : "accumulated reward over that of random choice",
      [&](const replay::ReplayResults& policy) { return NormalisedCurves(record, policy); });
}

// By policy: the name of the file, and the SVG.
std::vector<std::pair<std::string, std::string>> CloudFigures(const ReplayRecord& record) {
  std::vector<std::pair<std::string, std::string>> figures;
  for (const replay::ReplayResults& policy : record.comparison.policies) {
    const std::vector<Group> groups = Groups(record, policy);
    if (groups.empty()) continue;
    std::string name = "clouds-" + policy.spec;
    std::ranges::replace_if(
        name, [](char c) { return c == ':' || c == ',' || c == '=' || c == '/'; }, '-');
    figures.emplace_back(std::move(name), CloudFigure(record, policy, groups));
  }
  return figures;
}

void AddClouds(const ReplayRecord& record, report::HtmlPage& page) {
  page.AddHeading("What taste groups like");
  const auto figures = CloudFigures(record);
  if (!record.tags) {
    page.AddParagraph(
        "There are no word clouds: the stream has no tags.tsv with the tags of items (item id, "
        "tag, "
        "count).");
  } else if (figures.empty()) {
    page.AddParagraph(
        "There are no word clouds: none of these policies describes models that users share; "
        "codband does.");
  }
  for (const auto& [name, svg] : figures) {
    page.AddFigure(
        svg,
        fmt::format(
            "The models with the most users at the end of the run with seed {}. Tags of the {} "
            "items that each model scores highest. Every item has weight 1, divided among its tags "
            "in proportion to their counts. The area of a word's letters is proportional to its "
            "weight, down to a minimum size.",
            record.first_seed, kBestItems));
  }
}

void AddBoundaries(const ReplayRecord& record, report::HtmlPage& page) {
  page.AddHeading("Detected changes and true boundaries");
  const auto table = BoundaryTable(record);
  if (table) {
    page.AddTable(*table, BoundaryLegend(record));
  } else if (record.stream.logged) {
    page.AddParagraph("The true changes are unknown: a log does not record them.");
  } else if (!record.origins) {
    page.AddParagraph(
        "The true changes are unknown: the stream has no origins.tsv with the origin of each event "
        "(user and group in the data set).");
  } else {
    page.AddParagraph(
        "There is nothing to compare: none of these policies detects changes, or all events of a "
        "user come from the same user of the data set.");
  }
}

// What was played, and what is better.
std::string ReportSubject(const ReplayRecord& record) {
  const replay::RecordedStream& stream = record.stream;
  const std::string events = GroupThousands(fmt::format("{}", stream.events.size()));
  if (stream.logged) {
    return fmt::format(
        "{} logged events of {} users, with {} clicks on items shown at random. An event counts "
        "only if a policy chooses the item that was shown, and the policy learns from these events "
        "alone: its click-through rate (CTR) over them is an unbiased estimate of the one it would "
        "have had online. Higher is better.",
        events, stream.user_count, GroupThousands(fmt::format("{:.0f}", stream.total_reward())));
  }
  return fmt::format(
      "{} recorded events of {} users{}. At each event a policy chooses one of the candidates; the "
      "reward is 1 if it is the one that the user chose, else 0: higher is better. Random choice "
      "has an expected reward of {}. Every policy plays the same events.",
      events, stream.user_count, record.order == "interleaved" ? ", users mixed at random" : "",
      GroupThousands(fmt::format("{:.0f}", stream.chance())));
}

std::string ReportPage(const ReplayRecord& record) {
  const std::size_t seeds = record.comparison.policies.front().runs.size();
  report::HtmlPage page("Policies compared on " + StreamName(record));
  page.AddParagraph(ReportSubject(record));
  page.AddHeading("Reward");
  const std::string bands =
      seeds > 1 ? fmt::format(" Bands: ± one standard deviation between {} seeds.", seeds) : "";
  page.AddFigure(NormalisedFigure(record),
                 (record.stream.logged
                      ? "CTR so far, over the events that count, divided by the CTR of the log so "
                        "far: 1 is the policy that made the log."
                      : "Reward so far, divided by the expected reward of random choice so far: 1 "
                        "is chance.") +
                     bands);
  page.AddFigure(RewardFigure(record), (record.stream.logged ? "Clicks so far, not normalised."
                                                             : "Reward so far, not normalised.") +
                                           bands);
  page.AddHeading("Numbers");
  page.AddTable(SummaryTable(record),
                fmt::format("Mean over {} seed{}, ± standard deviation between seeds. Bold: the "
                            "best. Models: at the end.",
                            seeds, seeds == 1 ? "" : "s"));
  AddClouds(record, page);
  AddBoundaries(record, page);
  page.AddHeading("How to repeat it");
  page.AddCommand(record.command);
  page.AddKeyValues({{"codband", std::string(kVersion)},
                     {"seeds", SeedsText(record.first_seed, seeds)},
                     {"items", fmt::format("{}", record.stream.item_count())},
                     {"features", fmt::format("{}", record.stream.dim)},
                     {"took", fmt::format("{:.0f} s", record.seconds)}});
  return page.ToHtml();
}

std::string CurvesCsv(const ReplayRecord& record) {
  report::ReportTable table({{"policy"},
                             {"events"},
                             {"reward_mean"},
                             {"reward_sd"},
                             {"normalised_mean"},
                             {"normalised_sd"}});
  for (const replay::ReplayResults& policy : record.comparison.policies) {
    const sim::CurveSpread reward = RewardCurves(policy);
    const sim::CurveSpread normalised = NormalisedCurves(record, policy);
    for (std::size_t i = 0; i < reward.mean.size(); ++i) {
      table.AddRow({policy.spec, fmt::format("{}", record.comparison.checkpoint_events[i]),
                    fmt::format("{}", reward.mean[i]), fmt::format("{}", reward.sd[i]),
                    fmt::format("{}", normalised.mean[i]), fmt::format("{}", normalised.sd[i])});
    }
  }
  return table.ToCsv();
}

// Every detected change. Events are numbered from 0 by their line in the file, in whichever order
// they were played.
std::string ChangesCsv(const ReplayRecord& record) {
  report::ReportTable table({{"policy"}, {"seed"}, {"event"}, {"user"}});
  for (const replay::ReplayResults& policy : record.comparison.policies) {
    for (std::size_t s = 0; s < policy.runs.size(); ++s) {
      for (const std::size_t event : policy.runs[s].changes) {
        table.AddRow({policy.spec, fmt::format("{}", record.first_seed + s),
                      fmt::format("{}", record.stream.events[event].number),
                      fmt::format("{}", record.stream.events[event].user)});
      }
    }
  }
  return table.ToCsv();
}

}  // namespace

Status WriteReport(const ReplayRecord& record, const std::string& directory) {
  const auto write = [&](const std::string& name, const std::string& content) {
    return WriteFileDurably(directory + "/" + name, content);
  };
  CODBAND_RETURN_IF_ERROR(write("reward.svg", RewardFigure(record)));
  CODBAND_RETURN_IF_ERROR(write("normalised.svg", NormalisedFigure(record)));
  for (const auto& [name, svg] : CloudFigures(record)) {
    CODBAND_RETURN_IF_ERROR(write(name + ".svg", svg));
  }
  CODBAND_RETURN_IF_ERROR(write("results.json", ToJson(record)));
  CODBAND_RETURN_IF_ERROR(write("runs.csv", ToCsv(record)));
  CODBAND_RETURN_IF_ERROR(write("curves.csv", CurvesCsv(record)));
  CODBAND_RETURN_IF_ERROR(write("changes.csv", ChangesCsv(record)));
  return write("report.html", ReportPage(record));
}

}  // namespace codband::experiments
