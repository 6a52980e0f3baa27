// codband replay: policies side by side on recorded events.

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <system_error>

#include "codband/base/clock.h"
#include "codband/cli/command.h"
#include "codband/cli/run_flags.h"
#include "codband/experiments/replay_output.h"
#include "codband/experiments/replay_report.h"
#include "codband/policy/registry.h"
#include "codband/replay/play.h"
#include "codband/replay/stream_format.h"

namespace codband::cli {
namespace {

struct ReplayFlags {
  std::string directory;
  std::string policies = "codband,codband:paper,linucb,uniform-linucb,random";
  std::string play;
  std::string order = "recorded";
  std::string window;
  RunFlags runs;
  OutputFlags output;
};

constexpr std::string_view kReplayFooter = R"(
DIR holds tab-separated files; 'codband prepare' makes them from public data sets:
  features.tsv  item id, then its features, the same number on every line
  events.tsv    user id, timestamp, comma-separated item ids: the first is the positive one, the
                others have reward 0
  log.tsv       user id, timestamp, item shown, click (0 or 1), comma-separated item ids: the item
                shown was drawn uniformly from them
and may hold two more, which no policy sees:
  tags.tsv      item id, tag, count: for word clouds of what groups of users like
  origins.tsv   for each line of events.tsv the user in the data set and their group: tells how many
                detected changes are at a true boundary (meta.tsv is read if there is no origins.tsv)
Ids are whole numbers. Events are played in the order of the file. --order interleaved mixes the users
at random and keeps the order of each user's events. Policies see the candidates in a random order, the
same for all policies.

events.tsv: the reward is 1 if the policy chooses the positive candidate, else 0. 'times chance' is the
reward as a multiple of the expected reward of random choice.
log.tsv: an event counts only if the policy chooses the item that was shown; the policy learns nothing
from the others. The click-through rate over the events that count (CTR) is an unbiased estimate of the
policy's own (Li et al. 2011); 'times log' is the CTR as a multiple of the log's.
Numbers are means over seeds ± standard deviation between seeds.

Examples:
  codband replay my-stream --seeds 5
  codband replay my-stream --policies codband,linucb:lambda=0.2,alpha=0.3 --format json
  codband replay my-stream --order interleaved
  codband replay my-stream --seeds 5 --out report        also writes report/report.html with figures

The result of a policy depends on the stream, the seed and its own parameters only, never on
--threads or on the other policies.)";

constexpr std::string_view kPlays[] = {"events", "log"};
constexpr std::string_view kReplayOrders[] = {"recorded", "interleaved"};

// Reads the file that --play asks for and puts its events into the order that --order asks for.
Result<replay::RecordedStream> ReadPlayed(const ReplayFlags& flags) {
  std::size_t play = 0;
  if (flags.play.empty()) {
    std::error_code error;
    play =
        std::filesystem::exists(std::filesystem::path(flags.directory) / replay::kLogFile, error);
  } else {
    CODBAND_RETURN_IF_ERROR(Assign(ParseWord("--play", flags.play, kPlays), play));
  }
  std::size_t order = 0;
  CODBAND_RETURN_IF_ERROR(Assign(ParseWord("--order", flags.order, kReplayOrders), order));
  const bool log = play == 1;
  if (log && order != 0) {
    return Status::InvalidArgument(
        fmt::format("--order = '{}', expected recorded: the candidates of a log depend on the time",
                    flags.order));
  }
  auto stream = log ? replay::ReadLog(flags.directory) : replay::ReadStream(flags.directory);
  if (!stream.ok() && stream.status().code() == StatusCode::kNotFound) {
    return Status::NotFound(fmt::format(
        "{}; expected features.tsv and {} in DIR, see 'codband replay --help'; 'codband prepare' "
        "makes them from public data sets",
        stream.status().message(), log ? replay::kLogFile : replay::kEventsFile));
  }
  if (stream.ok() && order == 1) replay::InterleaveUsers(stream.value());
  return stream;
}

// A command that repeats the run.
std::string CommandFor(const ReplayFlags& flags, const sim::RunnerOptions& runner) {
  std::string command =
      fmt::format("codband replay {} --policies {} --seed {} --seeds {}", flags.directory,
                  flags.policies, runner.first_seed, runner.seeds);
  if (!flags.play.empty()) command += " --play " + flags.play;
  if (flags.order != "recorded") command += " --order " + flags.order;
  if (!flags.window.empty()) command += " --boundary-window " + flags.window;
  return command;
}

// The record before anything is played: the stream, and what is known about it.
Result<experiments::ReplayRecord> ReadRecord(const ReplayFlags& flags,
                                             const sim::RunnerOptions& runner) {
  experiments::ReplayRecord record{.directory = flags.directory,
                                   .order = flags.order,
                                   .stream = {},
                                   .first_seed = runner.first_seed,
                                   .command = CommandFor(flags, runner)};
  if (!flags.window.empty()) {
    CODBAND_RETURN_IF_ERROR(
        Assign(ParseWhole("--boundary-window", flags.window, 1, 1'000'000), record.window));
  }
  auto stream = ReadPlayed(flags);
  if (!stream.ok()) return stream.status();
  record.stream = std::move(stream).value();
  auto tags = replay::ReadTags(flags.directory, record.stream);
  if (!tags.ok()) return tags.status();
  record.tags = std::move(tags).value();
  if (record.stream.logged) return record;
  auto origins = replay::ReadOrigins(flags.directory, record.stream);
  if (!origins.ok()) return origins.status();
  record.origins = std::move(origins).value();
  return record;
}

Status RunReplay(const ReplayFlags& flags) {
  const auto format = flags.output.ParseFormat();
  if (!format.ok()) return format.status();
  sim::RunnerOptions runner{.policies = SplitPolicyList(flags.policies)};
  CODBAND_RETURN_IF_ERROR(flags.runs.Parse(runner.first_seed, runner.seeds, runner.threads));
  auto record = ReadRecord(flags, runner);
  if (!record.ok()) return record.status();
  CODBAND_RETURN_IF_ERROR(flags.output.MakeDirectory());

  PercentBar bar(runner.policies.size() * runner.seeds, "runs");
  runner.progress = bar.Shares();
  const double start = WallSeconds();
  auto comparison = replay::CompareOnStream(record.value().stream, runner);
  bar.Finish();
  if (!comparison.ok()) return comparison.status();
  record.value().comparison = std::move(comparison).value();
  record.value().seconds = WallSeconds() - start;
  return Deliver(record.value(), format.value(), flags.output.out);
}

}  // namespace

void AddReplayCommand(CLI::App& app, Status& status) {
  auto flags = std::make_shared<ReplayFlags>();
  const Command command(app, "replay", "Compare policies on recorded events", kReplayFooter);
  command.Option("DIR", flags->directory, "DIR",
                 "Directory with features.tsv and events.tsv or log.tsv", Command::kRequired);
  command.Option("--policies", flags->policies, "LIST",
                 "Comma-separated (default codband,codband:paper,linucb,uniform-linucb,random)");
  command.Option("--play", flags->play, "events|log",
                 "File to play (default log if there is one, else events)");
  command.Option("--order", flags->order, "recorded|interleaved",
                 "Order of events: as in the file, or users mixed at random (default recorded)");
  command.Option("--boundary-window", flags->window, "n",
                 "A detection within this many events of a user from a true boundary on is at it "
                 "(default 10)");
  flags->runs.Add(command, "Number of seeds, counting up (default 1)");
  flags->output.AddFormat(command);
  flags->output.AddOut(command);
  command.Run(status, [flags] { return RunReplay(*flags); });
}

}  // namespace codband::cli
