// codband replay: policies side by side on recorded events.
#include "codband/sim/replay.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <system_error>

#include "codband/base/version.h"
#include "codband/cli/command.h"
#include "codband/cli/comparison_output.h"
#include "codband/policy/registry.h"
#include "codband/report/progress.h"
#include "codband/report/table.h"
#include "codband/sim/summary.h"

namespace codband {
namespace {

using Json = nlohmann::ordered_json;

struct ReplayFlags {
  std::string directory;
  std::string policies = "codband,codband:paper,linucb,uniform-linucb,random";
  std::string play;
  std::string order = "recorded";
  RunFlags runs;
  std::string format = "table";
};

constexpr std::string_view kFooter = R"(
DIR holds files of tab-separated lines; 'codband prepare' makes them from public data sets:
  features.tsv  item id, then its features, as many on every line
  events.tsv    user id, timestamp, item ids with commas between them: the first is the positive one,
                the others brought nothing
  log.tsv       user id, timestamp, item shown, click (0 or 1), item ids with commas between them:
                what was shown, uniformly at random, and what came of it
Ids are whole numbers. Events are played in the order of the file, or with --order interleaved the
users are mixed at random, each one's events in their order. Policies see the candidates in a random
order, the same for all policies.

events.tsv: a policy gets 1 if it takes the positive candidate, else 0. 'times chance' is the reward as
a multiple of what random choice brings on average.
log.tsv: an event counts only where the policy takes what was shown; it learns nothing from the others.
Its click rate over these (CTR) is an unbiased estimate of that which it would have had (Li et al. 2011);
'times log' is it as a multiple of the log's own.
Numbers are means over seeds ± standard deviation between seeds.

Examples:
  codband replay my-stream --seeds 5
  codband replay my-stream --policies codband,linucb:lambda=0.2,alpha=0.3 --format json
  codband replay my-stream --order interleaved

A policy's result depends on the stream, the seed and its own parameters only,
never on --threads or on the other policies.)";

struct ReplayRecord {
  std::string directory;
  std::string order;
  RecordedStream stream;
  std::uint64_t first_seed = 1;
  ReplayComparison comparison;
};

// A number of each run, as it is called for programs and for people.
struct Metric {
  const char* name;
  const char* title;
  int decimals;
  double (*of)(const ReplayRun& run);
};

constexpr Metric kChanges = {"changes_per_1000", "changes/1000", 2,
                             [](const ReplayRun& run) { return run.changes_per_1000; }};
constexpr Metric kModels = {"models", "models", 1,
                            [](const ReplayRun& run) { return static_cast<double>(run.models); }};
constexpr Metric kMicroseconds = {"us_per_event", "µs/event", 1,
                                  [](const ReplayRun& run) { return run.us_per_event; }};

constexpr Metric kMetrics[] = {
    {"reward", "reward", 1, [](const ReplayRun& run) { return run.reward(); }},
    {"times_chance", "times chance", 3, [](const ReplayRun& run) { return run.times_chance; }},
    kChanges,
    kModels,
    kMicroseconds,
};

constexpr Metric kLogMetrics[] = {
    {"matched", "events that count", 1, [](const ReplayRun& run) { return run.matched(); }},
    {"reward", "clicks", 1, [](const ReplayRun& run) { return run.reward(); }},
    {"ctr", "CTR", 5, [](const ReplayRun& run) { return run.mean_reward(); }},
    {"ctr_standard_error", "its error", 5,
     [](const ReplayRun& run) { return run.mean_reward_error(); }},
    {"relative_ctr", "times log", 3, [](const ReplayRun& run) { return run.times_chance; }},
    kChanges,
    kModels,
    kMicroseconds,
};

std::span<const Metric> MetricsOf(const RecordedStream& stream) {
  return stream.logged ? std::span<const Metric>(kLogMetrics) : std::span<const Metric>(kMetrics);
}

double LogCtr(const RecordedStream& stream) {
  return stream.total_reward() / static_cast<double>(stream.events.size());
}

std::string ToText(const ReplayRecord& record) {
  std::vector<TableColumn> columns = {{"policy"}};
  for (const Metric& metric : MetricsOf(record.stream)) {
    columns.push_back({metric.title, Align::kRight});
    columns.push_back({"±", Align::kRight});
  }
  Table table(std::move(columns));
  for (const ReplayResults& policy : record.comparison.policies) {
    std::vector<std::string> cells = {policy.spec};
    for (const Metric& metric : MetricsOf(record.stream)) {
      const MeanAndSd spread = Spread(Collect(policy.runs, metric.of));
      cells.push_back(fmt::format("{:.{}f}", spread.mean, metric.decimals));
      cells.push_back(fmt::format("{:.{}f}", spread.sd, metric.decimals));
    }
    table.AddRow(std::move(cells));
  }
  const RecordedStream& stream = record.stream;
  const std::string chance = stream.logged
                                 ? fmt::format("clicks: {:.0f}, CTR of the log: {:.5f}",
                                               stream.total_reward(), LogCtr(stream))
                                 : fmt::format("reward by chance: {:.1f}", stream.chance());
  return fmt::format("{}\nEvents: {}, users: {}, items: {}, features: {}, {}\n", table.ToText(),
                     stream.events.size(), stream.user_count, stream.item_count(), stream.dim,
                     chance);
}

std::string ToJson(const ReplayRecord& record) {
  Json policies = Json::array();
  for (const ReplayResults& policy : record.comparison.policies) {
    Json json{{"name", policy.spec}};
    for (const Metric& metric : MetricsOf(record.stream)) {
      json[metric.name] = SpreadJson(Collect(policy.runs, metric.of));
    }
    const CurveSpread curve =
        SpreadOfCurves(Collect(policy.runs, [](const ReplayRun& run) { return run.reward_curve; }));
    json["reward_curve"] = {{"mean", curve.mean}, {"sd", curve.sd}};
    if (record.stream.logged) {
      const CurveSpread matched = SpreadOfCurves(
          Collect(policy.runs, [](const ReplayRun& run) { return run.matched_curve; }));
      json["matched_curve"] = {{"mean", matched.mean}, {"sd", matched.sd}};
    }
    policies.push_back(std::move(json));
  }
  const RecordedStream& stream = record.stream;
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
  return json.dump(2) + "\n";
}

std::string ToCsv(const ReplayRecord& record) {
  std::vector<TableColumn> columns = {{"policy"}, {"seed"}};
  for (const Metric& metric : MetricsOf(record.stream)) columns.push_back({metric.name});
  Table table(std::move(columns));
  for (const ReplayResults& policy : record.comparison.policies) {
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

std::string Print(const ReplayRecord& record, OutputFormat format) {
  switch (format) {
    case OutputFormat::kJson:
      return ToJson(record);
    case OutputFormat::kCsv:
      return ToCsv(record);
    case OutputFormat::kTable:
      break;
  }
  return ToText(record);
}

// Reads what the flags ask for, in the order that they ask for.
Result<RecordedStream> ReadPlayed(const ReplayFlags& flags) {
  if (!flags.play.empty() && flags.play != "events" && flags.play != "log") {
    return Status::InvalidArgument(
        fmt::format("--play = '{}', expected events or log", flags.play));
  }
  if (flags.order != "recorded" && flags.order != "interleaved") {
    return Status::InvalidArgument(
        fmt::format("--order = '{}', expected recorded or interleaved", flags.order));
  }
  std::error_code error;
  const bool log =
      flags.play.empty()
          ? std::filesystem::exists(std::filesystem::path(flags.directory) / "log.tsv", error)
          : flags.play == "log";
  if (log && flags.order != "recorded") {
    return Status::InvalidArgument(fmt::format(
        "--order = '{}', expected recorded: what a log offers depends on the time", flags.order));
  }
  auto stream = log ? ReadLog(flags.directory) : ReadStream(flags.directory);
  if (!stream.ok() && stream.status().code() == StatusCode::kNotFound) {
    return Status::NotFound(fmt::format(
        "{}; expected features.tsv and {} in DIR, see 'codband replay --help'; 'codband prepare' "
        "makes them from public data sets",
        stream.status().message(), log ? "log.tsv" : "events.tsv"));
  }
  if (stream.ok() && flags.order == "interleaved") InterleaveUsers(stream.value());
  return stream;
}

Status RunReplay(const ReplayFlags& flags) {
  const auto format = ParseFormat(flags.format);
  if (!format.ok()) return format.status();
  RunnerOptions runner{.policies = SplitPolicyList(flags.policies)};
  CODBAND_RETURN_IF_ERROR(flags.runs.Parse(runner.first_seed, runner.seeds, runner.threads));
  auto stream = ReadPlayed(flags);
  if (!stream.ok()) return stream.status();

  Progress progress({.total = 100});
  progress.SetLabel(fmt::format("% of {} runs", runner.policies.size() * runner.seeds));
  runner.progress = [&](double share) { progress.Advance(100 * share); };
  auto comparison = CompareOnStream(stream.value(), runner);
  progress.Finish();
  if (!comparison.ok()) return comparison.status();

  const ReplayRecord record{.directory = flags.directory,
                            .order = flags.order,
                            .stream = std::move(stream).value(),
                            .first_seed = runner.first_seed,
                            .comparison = std::move(comparison).value()};
  fmt::print("{}", Print(record, format.value()));
  return {};
}

}  // namespace

void AddReplayCommand(CLI::App& app, Status& status) {
  auto flags = std::make_shared<ReplayFlags>();
  CLI::App* command = app.add_subcommand("replay", "Compare policies on recorded events");
  command->footer(std::string(kFooter));
  const OptionAdder option(*command);
  option("DIR", flags->directory, "DIR", "Where features.tsv and events.tsv or log.tsv are")
      ->required();
  option("--policies", flags->policies, "LIST",
         "Comma-separated (default codband,codband:paper,linucb,uniform-linucb,random)");
  option("--play", flags->play, "events|log",
         "Which file is played (default log if there is one, else events)");
  option("--order", flags->order, "recorded|interleaved",
         "Of the events: as in the file, or users mixed at random (default recorded)");
  option("--seed", flags->runs.seed, "S", "First seed (default 1)");
  option("--seeds", flags->runs.seeds, "n", "How many seeds, counting up (default 1)");
  option("--threads", flags->runs.threads, "n", "Runs at a time (default: one per core)");
  option("--format", flags->format, "table|json|csv", "What is printed (default table)");
  command->callback([flags, &status] { status = RunReplay(*flags); });
}

}  // namespace codband
