#include "codband/experiments/replay_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <vector>

#include "codband/base/version.h"
#include "codband/experiments/comparison_output.h"
#include "codband/experiments/result_figures.h"
#include "codband/policy/registry.h"
#include "codband/replay/boundaries.h"
#include "codband/report/table.h"
#include "codband/sim/summary.h"

namespace codband::experiments {
namespace {

using Json = nlohmann::ordered_json;

// Four groups, as in the paper.
constexpr std::size_t kClouds = 4;
constexpr std::size_t kCloudTags = 30;

// A number of each run, with its name in JSON and CSV and its title for people.
struct Metric {
  const char* name;
  const char* title;
  int decimals;
  double (*of)(const replay::ReplayRun& run);
};

constexpr Metric kChanges = {"changes_per_1000", "changes/1000", 2,
                             [](const replay::ReplayRun& run) { return run.changes_per_1000; }};
constexpr Metric kModels = {"models", "models", 1, [](const replay::ReplayRun& run) {
                              return static_cast<double>(run.models);
                            }};
constexpr Metric kMicroseconds = {"us_per_event", "µs/event", 1,
                                  [](const replay::ReplayRun& run) { return run.us_per_event; }};

constexpr Metric kMetrics[] = {
    {"reward", "reward", 1, [](const replay::ReplayRun& run) { return run.reward(); }},
    {"times_chance", "times chance", 3,
     [](const replay::ReplayRun& run) { return run.times_chance; }},
    kChanges,
    kModels,
    kMicroseconds,
};

constexpr Metric kLogMetrics[] = {
    {"matched", "events that count", 1, [](const replay::ReplayRun& run) { return run.matched(); }},
    {"reward", "clicks", 1, [](const replay::ReplayRun& run) { return run.reward(); }},
    {"ctr", "CTR", 5, [](const replay::ReplayRun& run) { return run.mean_reward(); }},
    {"ctr_standard_error", "its error", 5,
     [](const replay::ReplayRun& run) { return run.mean_reward_error(); }},
    {"relative_ctr", "times log", 3, [](const replay::ReplayRun& run) { return run.times_chance; }},
    kChanges,
    kModels,
    kMicroseconds,
};

std::span<const Metric> MetricsOf(const replay::RecordedStream& stream) {
  return stream.logged ? std::span<const Metric>(kLogMetrics) : std::span<const Metric>(kMetrics);
}

double LogCtr(const replay::RecordedStream& stream) {
  return stream.total_reward() / static_cast<double>(stream.events.size());
}

std::string StreamSubject(const ReplayRecord& record) {
  const replay::RecordedStream& stream = record.stream;
  const std::string chance = stream.logged
                                 ? fmt::format("clicks: {:.0f}, CTR of the log: {:.5f}",
                                               stream.total_reward(), LogCtr(stream))
                                 : fmt::format("reward by chance: {:.1f}", stream.chance());
  return fmt::format("Events: {}, users: {}, items: {}, features: {}, {}", stream.events.size(),
                     stream.user_count, stream.item_count(), stream.dim, chance);
}

// The reward so far over the expected reward of random choice so far.
std::vector<double> NormalisedCurve(const ReplayRecord& record, const replay::ReplayRun& run) {
  std::vector<double> curve = run.reward_curve;
  for (std::size_t i = 0; i < curve.size(); ++i) {
    const auto events = static_cast<double>(record.comparison.checkpoint_events[i]);
    curve[i] =
        (curve[i] / run.matched_curve[i]) / (record.comparison.checkpoint_chance[i] / events);
  }
  return curve;
}

// Detected changes and true boundaries ------------------------------------------------------------

// Means over the runs of one policy.
struct BoundaryMeans {
  double boundaries = 0;
  double found = 0;
  double found_by_chance = 0;
  double changes = 0;
  double hits = 0;
  double hits_by_chance = 0;
  // Of a single run: a policy may raise the same alarms with every seed.
  double hits_sd = 0;
};

BoundaryMeans CountRuns(const ReplayRecord& record, const replay::ReplayResults& policy,
                        const std::vector<std::uint64_t>& origins) {
  replay::BoundaryCounts sum;
  for (const replay::ReplayRun& run : policy.runs) {
    sum.Add(replay::CountBoundaries(record.stream, origins, run.changes, record.window));
  }
  const auto runs = static_cast<double>(policy.runs.size());
  return {.boundaries = static_cast<double>(sum.boundaries) / runs,
          .found = static_cast<double>(sum.found) / runs,
          .found_by_chance = sum.found_by_chance / runs,
          .changes = static_cast<double>(sum.changes) / runs,
          .hits = static_cast<double>(sum.hits) / runs,
          .hits_by_chance = sum.hits_by_chance / runs,
          .hits_sd = std::sqrt(sum.hits_variance / runs)};
}

struct BoundaryKind {
  const char* name;
  const std::vector<std::uint64_t> replay::EventOrigins::*of;
};

constexpr BoundaryKind kBoundaryKinds[] = {{"user", &replay::EventOrigins::sources},
                                           {"group", &replay::EventOrigins::groups}};

std::string Percent(double part, double whole) {
  return whole == 0 ? "–" : fmt::format("{:.1f}%", 100 * part / whole);
}

bool HasGroupBoundaries(const ReplayRecord& record) {
  return replay::CountBoundaries(record.stream, record.origins->groups, {}, 1).boundaries > 0;
}

Json BoundariesJson(const ReplayRecord& record, const replay::ReplayResults& policy) {
  if (!record.origins || !DetectsChanges(policy.spec)) return nullptr;
  Json json{{"window", record.window}};
  for (const BoundaryKind& kind : kBoundaryKinds) {
    const BoundaryMeans means = CountRuns(record, policy, *record.origins.*kind.of);
    json[kind.name] = {{"true", means.boundaries},
                       {"found", means.found},
                       {"found_by_chance", means.found_by_chance},
                       {"detected", means.changes},
                       {"at_boundary", means.hits},
                       {"at_boundary_by_chance", means.hits_by_chance},
                       {"at_boundary_by_chance_sd", means.hits_sd}};
  }
  return json;
}

Json GroupsJson(const ReplayRecord& record, const replay::ReplayResults& policy) {
  Json json = Json::array();
  for (const Group& group : Groups(record, policy)) {
    Json tags = Json::array();
    for (const replay::WeightedTag& tag : group.tags) {
      tags.push_back({{"tag", tag.tag}, {"weight", tag.weight}});
    }
    json.push_back({{"model", group.model.id},
                    {"users", group.model.users},
                    {"observations", group.model.observations},
                    {"tags", std::move(tags)}});
  }
  return json;
}

}  // namespace

report::ReportTable SummaryTable(const ReplayRecord& record) {
  std::vector<report::TableColumn> columns = {{"policy"}};
  for (const Metric& metric : MetricsOf(record.stream)) {
    columns.push_back({metric.title, report::Align::kRight});
    columns.push_back({"±", report::Align::kRight});
  }
  report::ReportTable table(std::move(columns));
  std::size_t best = 0;
  double most = -1;
  for (const replay::ReplayResults& policy : record.comparison.policies) {
    std::vector<std::string> cells = {policy.spec};
    for (const Metric& metric : MetricsOf(record.stream)) {
      const sim::MeanAndSd spread = sim::Spread(sim::Collect(policy.runs, metric.of));
      cells.push_back(fmt::format("{:.{}f}", spread.mean, metric.decimals));
      cells.push_back(fmt::format("{:.{}f}", spread.sd, metric.decimals));
    }
    const double reward = sim::Spread(sim::Collect(policy.runs, [](const replay::ReplayRun& run) {
                            return run.times_chance;
                          })).mean;
    if (reward > most) best = table.row_count();
    most = std::max(most, reward);
    table.AddRow(std::move(cells));
  }
  // Reward and its multiple of chance, or the click rate and that.
  table.Emphasise(best, record.stream.logged ? 5 : 1);
  table.Emphasise(best, record.stream.logged ? 9 : 3);
  return table;
}

sim::CurveSpread RewardCurves(const replay::ReplayResults& policy) {
  return sim::SpreadOfCurves(
      sim::Collect(policy.runs, [](const replay::ReplayRun& run) { return run.reward_curve; }));
}

sim::CurveSpread NormalisedCurves(const ReplayRecord& record, const replay::ReplayResults& policy) {
  return sim::SpreadOfCurves(sim::Collect(
      policy.runs, [&](const replay::ReplayRun& run) { return NormalisedCurve(record, run); }));
}

std::optional<report::ReportTable> BoundaryTable(const ReplayRecord& record) {
  if (!record.origins) return std::nullopt;
  report::ReportTable table({{"policy"},
                             {"boundaries of"},
                             {"true", report::Align::kRight},
                             {"detected", report::Align::kRight},
                             {"at one", report::Align::kRight},
                             {"by chance", report::Align::kRight},
                             {"±", report::Align::kRight},
                             {"found", report::Align::kRight},
                             {"by chance", report::Align::kRight}});
  for (const replay::ReplayResults& policy : record.comparison.policies) {
    if (!DetectsChanges(policy.spec)) continue;
    for (const BoundaryKind& kind : kBoundaryKinds) {
      const BoundaryMeans means = CountRuns(record, policy, *record.origins.*kind.of);
      if (means.boundaries == 0) continue;
      table.AddRow({policy.spec, kind.name, fmt::format("{:.0f}", means.boundaries),
                    fmt::format("{:.1f}", means.changes), Percent(means.hits, means.changes),
                    Percent(means.hits_by_chance, means.changes),
                    Percent(means.hits_sd, means.changes), Percent(means.found, means.boundaries),
                    Percent(means.found_by_chance, means.boundaries)});
    }
  }
  if (table.row_count() == 0) return std::nullopt;
  return table;
}

std::string BoundaryLegend(const ReplayRecord& record) {
  return fmt::format(
      "A true boundary is an event of a user that comes from another user, or another group, of "
      "the data set than the user's event before ({}). At one: share of the detected changes at a "
      "boundary or within the user's next {} events. Found: share of the boundaries at which a "
      "change was detected. By chance: expectation, ± standard deviation in one run, for a "
      "detector that raises as many alarms for each user at random events. Means over seeds.{}",
      record.origins->file, record.window - 1,
      HasGroupBoundaries(record) ? "" : " No user ever moves to another group.");
}

std::vector<Group> Groups(const ReplayRecord& record, const replay::ReplayResults& policy) {
  std::vector<Group> groups;
  if (!record.tags) return groups;
  for (const ModelDescription& model : policy.runs.front().popular_models) {
    if (model.users == 0 || groups.size() == kClouds) break;
    groups.push_back({.model = model,
                      .tags = replay::TagsOfBestItems(record.stream, *record.tags, model.theta,
                                                      kBestItems, kCloudTags)});
  }
  return groups;
}

std::string ToText(const ReplayRecord& record) {
  std::string text = SummaryTable(record).ToText() + "\n" + StreamSubject(record) + "\n";
  if (const auto table = BoundaryTable(record)) {
    text += "\nDetected changes and true boundaries:\n" + table->ToText() + "\n" +
            BoundaryLegend(record) + "\n";
  }
  return text;
}

std::string ToJson(const ReplayRecord& record) {
  Json policies = Json::array();
  for (const replay::ReplayResults& policy : record.comparison.policies) {
    Json json{{"name", policy.spec}};
    for (const Metric& metric : MetricsOf(record.stream)) {
      json[metric.name] = SpreadJson(sim::Collect(policy.runs, metric.of));
    }
    const sim::CurveSpread reward = RewardCurves(policy);
    json["reward_curve"] = {{"mean", reward.mean}, {"sd", reward.sd}};
    if (record.stream.logged) {
      const sim::CurveSpread matched = sim::SpreadOfCurves(sim::Collect(
          policy.runs, [](const replay::ReplayRun& run) { return run.matched_curve; }));
      json["matched_curve"] = {{"mean", matched.mean}, {"sd", matched.sd}};
    }
    const sim::CurveSpread normalised = NormalisedCurves(record, policy);
    json["normalised_curve"] = {{"mean", normalised.mean}, {"sd", normalised.sd}};
    json["boundaries"] = BoundariesJson(record, policy);
    json["groups"] = GroupsJson(record, policy);
    policies.push_back(std::move(json));
  }
  const replay::RecordedStream& stream = record.stream;
  Json about{{"directory", record.directory},
             {"played", stream.logged ? "log" : "events"},
             {"order", record.order},
             {"events", stream.events.size()},
             {"users", stream.user_count},
             {"items", stream.item_count()},
             {"dim", stream.dim}};
  if (stream.logged) {
    about["clicks"] = stream.total_reward();
    about["ctr"] = LogCtr(stream);
  } else {
    about["chance"] = stream.chance();
  }
  const Json json{
      {"version", kVersion},
      {"stream", std::move(about)},
      {"seeds", SeedsJson(record.first_seed, record.comparison.policies.front().runs.size())},
      {"policies", std::move(policies)},
      {"checkpoint_events", record.comparison.checkpoint_events}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string ToCsv(const ReplayRecord& record) {
  std::vector<report::TableColumn> columns = {{"policy"}, {"seed"}};
  for (const Metric& metric : MetricsOf(record.stream)) columns.push_back({metric.name});
  report::ReportTable table(std::move(columns));
  for (const replay::ReplayResults& policy : record.comparison.policies) {
    for (std::size_t s = 0; s < policy.runs.size(); ++s) {
      std::vector<std::string> cells = {policy.spec, fmt::format("{}", record.first_seed + s)};
      for (const Metric& metric : MetricsOf(record.stream)) {
        cells.push_back(fmt::format("{}", metric.of(policy.runs[s])));
      }
      table.AddRow(std::move(cells));
    }
  }
  return table.ToCsv();
}

}  // namespace codband::experiments
