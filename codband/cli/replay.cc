// codband replay: policies side by side on recorded events.
#include "codband/replay/replay.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <system_error>

#include "codband/base/clock.h"
#include "codband/base/file.h"
#include "codband/cli/command.h"
#include "codband/experiments/replay_output.h"
#include "codband/experiments/replay_report.h"
#include "codband/policy/registry.h"
#include "codband/report/progress.h"

namespace codband::cli {
namespace {

struct ReplayFlags {
  std::string directory;
  std::string policies = "codband,codband:paper,linucb,uniform-linucb,random";
  std::string play;
  std::string order = "recorded";
  std::string window;
  RunFlags runs;
  std::string format = "table";
  std::string out;
};

constexpr std::string_view kFooter = R"(
DIR holds files of tab-separated lines; 'codband prepare' makes them from public data sets:
  features.tsv  item id, then its features, as many on every line
  events.tsv    user id, timestamp, item ids with commas between them: the first is the positive one,
                the others brought nothing
  log.tsv       user id, timestamp, item shown, click (0 or 1), item ids with commas between them:
                what was shown, uniformly at random, and what came of it
and may hold two more, which no policy sees:
  tags.tsv      item id, tag, how often it was given: for word clouds of what groups of users like
  origins.tsv   for each line of events.tsv who it was in the data set, and their group: for telling
                how many detected changes are at a true boundary (a file meta.tsv is read in its place)
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
  codband replay my-stream --seeds 5 --out report        with figures, to look at

A policy's result depends on the stream, the seed and its own parameters only,
never on --threads or on the other policies.)";

// Reads what the flags ask for, in the order that they ask for.
Result<replay::RecordedStream> ReadPlayed(const ReplayFlags& flags) {
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
  auto stream = log ? replay::ReadLog(flags.directory) : replay::ReadStream(flags.directory);
  if (!stream.ok() && stream.status().code() == StatusCode::kNotFound) {
    return Status::NotFound(fmt::format(
        "{}; expected features.tsv and {} in DIR, see 'codband replay --help'; 'codband prepare' "
        "makes them from public data sets",
        stream.status().message(), log ? "log.tsv" : "events.tsv"));
  }
  if (stream.ok() && flags.order == "interleaved") replay::InterleaveUsers(stream.value());
  return stream;
}

Status RunReplay(const ReplayFlags& flags) {
  const auto format = ParseFormat(flags.format);
  if (!format.ok()) return format.status();
  sim::RunnerOptions runner{.policies = SplitPolicyList(flags.policies)};
  CODBAND_RETURN_IF_ERROR(flags.runs.Parse(runner.first_seed, runner.seeds, runner.threads));
  experiments::ReplayRecord record{
      .directory = flags.directory,
      .order = flags.order,
      .stream = {},
      .first_seed = runner.first_seed,
      .command = fmt::format("codband replay {} --policies {} --seed {} --seeds {}",
                             flags.directory, flags.policies, runner.first_seed, runner.seeds)};
  if (!flags.play.empty()) record.command += " --play " + flags.play;
  if (flags.order != "recorded") record.command += " --order " + flags.order;
  if (!flags.window.empty()) {
    CODBAND_RETURN_IF_ERROR(
        Assign(ParseWhole("--boundary-window", flags.window, 1, 1'000'000), record.window));
    record.command += " --boundary-window " + flags.window;
  }
  CODBAND_RETURN_IF_ERROR(Assign(ReadPlayed(flags), record.stream));
  CODBAND_RETURN_IF_ERROR(Assign(replay::ReadTags(flags.directory, record.stream), record.tags));
  if (!record.stream.logged) {
    CODBAND_RETURN_IF_ERROR(
        Assign(replay::ReadOrigins(flags.directory, record.stream), record.origins));
  }
  if (!flags.out.empty()) CODBAND_RETURN_IF_ERROR(EnsureDirectory(flags.out));

  report::Progress progress({.total = 100});
  progress.SetLabel(fmt::format("% of {} runs", runner.policies.size() * runner.seeds));
  runner.progress = [&](double share) { progress.Advance(100 * share); };
  const double start = WallSeconds();
  auto comparison = replay::CompareOnStream(record.stream, runner);
  progress.Finish();
  if (!comparison.ok()) return comparison.status();
  record.comparison = std::move(comparison).value();
  record.seconds = WallSeconds() - start;

  fmt::print("{}", Format(record, format.value()));
  if (flags.out.empty()) return {};
  CODBAND_RETURN_IF_ERROR(experiments::WriteReport(record, flags.out));
  fmt::print(stderr, "Report: {}/report.html\n", flags.out);
  return {};
}

}  // namespace

void AddReplayCommand(CLI::App& app, Status& status) {
  auto flags = std::make_shared<ReplayFlags>();
  const Command command(app, "replay", "Compare policies on recorded events", kFooter);
  command.Option("DIR", flags->directory, "DIR", "Where features.tsv and events.tsv or log.tsv are",
                 Command::kRequired);
  command.Option("--policies", flags->policies, "LIST",
                 "Comma-separated (default codband,codband:paper,linucb,uniform-linucb,random)");
  command.Option("--play", flags->play, "events|log",
                 "Which file is played (default log if there is one, else events)");
  command.Option("--order", flags->order, "recorded|interleaved",
                 "Of the events: as in the file, or users mixed at random (default recorded)");
  command.Option("--boundary-window", flags->window, "n",
                 "How many events of a user from a true boundary on belong to it (default 10)");
  command.Option("--seed", flags->runs.seed, "S", "First seed (default 1)");
  command.Option("--seeds", flags->runs.seeds, "n", "How many seeds, counting up (default 1)");
  command.Option("--threads", flags->runs.threads, "n", "Runs at a time (default: one per core)");
  command.Option("--format", flags->format, "table|json|csv", "What is printed (default table)");
  command.Option("--out", flags->out, "DIR", "Also write a report with figures to this directory");
  command.Run(status, [flags] { return RunReplay(*flags); });
}

}  // namespace codband::cli
