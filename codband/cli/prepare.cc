// codband prepare: a public data set as a stream for codband replay.
#include "codband/replay/prepare.h"

#include <fmt/format.h>

#include <csignal>
#include <memory>
#include <optional>

#include "codband/cli/command.h"
#include "codband/cli/run_flags.h"
#include "codband/experiments/prepare_output.h"
#include "codband/experiments/prepare_settings.h"
#include "codband/report/progress.h"

namespace codband::cli {
namespace {

constexpr std::string_view kPrepareFooter = R"(
SET is one of
  lastfm     HetRec 2011 Last.fm: artists that users listened to
  delicious  HetRec 2011 Delicious: URLs that users bookmarked
  movielens  MovieLens (20M, 25M, 32M, latest: CSV; 1M, 10M: '::'): movies that users rated
  yahoo      Yahoo! Front Page Today Module R6A: articles that users clicked on
DIR of --in holds the unpacked files. A missing file is named, with where to get it.

Writes features.tsv and events.tsv for 'codband replay', tags.tsv (item, tag, count), origins.tsv
(for each event the user in the data set and the group; lastfm and delicious), log.tsv (yahoo: user,
time, article shown, click, candidates) and meta.json (every setting, what was read and left out).
Writes all files or none. The bytes are a function of the data, the flags and the seed.

Examples:
  codband prepare lastfm --in hetrec2011-lastfm-2k --out lastfm
  codband replay lastfm --policies codband,linucb:lambda=0.2,alpha=0.3
  codband prepare movielens --in ml-latest-small --out movies --min-observations 500)";

struct PrepareFlags {
  std::string set;
  std::string in;
  std::string out;
  bool strict = false;
  bool overwrite = false;
  SettingFlags settings;
};

volatile std::sig_atomic_t interrupted = 0;

// While it lives, the first SIGINT or SIGTERM sets `interrupted`, so that partial output can be
// removed; the second one ends the program.
class InterruptGuard {
 public:
  InterruptGuard() {
    struct sigaction action = {};
    action.sa_handler = [](int) { interrupted = 1; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, &old_int_);
    sigaction(SIGTERM, &action, &old_term_);
  }
  ~InterruptGuard() {
    sigaction(SIGINT, &old_int_, nullptr);
    sigaction(SIGTERM, &old_term_, nullptr);
  }
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  struct sigaction old_int_ = {};
  struct sigaction old_term_ = {};
};

// Reads the data set and writes the stream and its meta.json; all of it or nothing.
Result<replay::PreparedStream> WriteStream(const PrepareFlags& flags, data::DataSet set,
                                           const replay::PrepareOptions& options,
                                           data::InputLog& log) {
  const InterruptGuard guard;
  auto out = data::OutputDirectory::Create(flags.out, flags.overwrite, replay::PreparedFiles());
  if (!out.ok()) return out.status();
  report::Progress progress({.total = 100});
  const data::WorkHooks hooks{.progress =
                                  [&](double done, std::string_view label) {
                                    progress.SetLabel(std::string(label));
                                    progress.Set(100 * done);
                                  },
                              .stopped = [] { return interrupted != 0; }};
  auto stream = replay::Prepare(set, flags.in, options, out.value(), log, hooks);
  progress.Finish();
  if (!stream.ok()) {
    // Reading may fail because it was interrupted.
    if (interrupted == 0) return stream.status();
    return Status(StatusCode::kUnavailable,
                  fmt::format("interrupted; {} was not written", flags.out));
  }
  auto meta = out.value().Open(std::string(replay::kMetaFile));
  if (!meta.ok()) return meta.status();
  meta.value().Write(experiments::MetaJson(set, options, stream.value(), log));
  CODBAND_RETURN_IF_ERROR(meta.value().Close());
  CODBAND_RETURN_IF_ERROR(out.value().Commit());
  return stream;
}

Status RunPrepare(const PrepareFlags& flags, const Command& command) {
  const auto set = experiments::ParseDataSet(flags.set);
  if (!set.ok()) return set.status();
  auto options = experiments::ParsePrepare(set.value(), flags.settings.Texts(command));
  if (!options.ok()) return options.status();
  options.value().strict = flags.strict;
  data::InputLog log(flags.strict);
  const auto stream = WriteStream(flags, set.value(), options.value(), log);
  if (!stream.ok()) return stream.status();
  fmt::print(stderr, "{}", experiments::MalformedText(log));
  fmt::print("{}", experiments::PrepareSummary(stream.value(), flags.out));
  return {};
}

}  // namespace

void AddPrepareCommand(CLI::App& app, Status& status) {
  auto flags = std::make_shared<PrepareFlags>();
  const Command command(app, "prepare", "Turn a public data set into a stream of recorded events",
                        kPrepareFooter);
  command.Option("SET", flags->set, "SET", "lastfm, delicious, movielens or yahoo",
                 Command::kRequired);
  command.Option("--in", flags->in, "DIR", "Directory with the unpacked data set",
                 Command::kRequired);
  command.Option("--out", flags->out, "DIR", "Directory to write to; must be new or empty",
                 Command::kRequired);
  command.Switch("--overwrite", flags->overwrite, "Replace an earlier result in --out");
  command.Switch("--strict", flags->strict, "Fail on the first malformed line");
  flags->settings.Add(command, experiments::PrepareSettings());
  command.Run(status, [flags, command] { return RunPrepare(*flags, command); });
}

}  // namespace codband::cli
