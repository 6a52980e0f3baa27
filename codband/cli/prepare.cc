// codband prepare: a public data set as a stream for codband replay.
#include "codband/replay/prepare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "codband/base/text.h"
#include "codband/base/version.h"
#include "codband/cli/command.h"
#include "codband/policy/policy.h"
#include "codband/report/progress.h"

namespace codband::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFooter = R"(
SET is one of
  lastfm     HetRec 2011 Last.fm: artists that someone listened to
  delicious  HetRec 2011 Delicious: addresses that someone bookmarked
  movielens  MovieLens (20M, 25M, 32M, latest: CSV; 1M, 10M: '::'): movies that someone rated
  yahoo      Yahoo! Front Page Today Module R6A: articles that someone clicked on
DIR of --in holds the unpacked files; what is missing is named, and where to get it.

Written are features.tsv and events.tsv for 'codband replay', tags.tsv (item, tag, count),
origins.tsv (for each event the user in the data set and the group; lastfm and delicious), log.tsv
(yahoo: user, time, article shown, click, candidates) and meta.json (every choice, what was read
and left out). All at once or nothing; the same bytes for the same data, flags and seed.

Examples:
  codband prepare lastfm --in hetrec2011-lastfm-2k --out lastfm
  codband replay lastfm --policies codband,linucb:lambda=0.2,alpha=0.3
  codband prepare movielens --in ml-latest-small --out movies --min-observations 500)";

enum : unsigned {
  kL = 1U << static_cast<unsigned>(data::DataSet::kLastFm),
  kD = 1U << static_cast<unsigned>(data::DataSet::kDelicious),
  kM = 1U << static_cast<unsigned>(data::DataSet::kMovieLens),
  kY = 1U << static_cast<unsigned>(data::DataSet::kYahoo),
};

constexpr std::size_t kMany = 1'000'000'000;

// Reads one of the names, which stand for 0, 1, ...
template <typename T>
Status SetChoice(std::string_view flag, std::string_view text,
                 std::initializer_list<std::string_view> names, T& target) {
  const auto found = std::ranges::find(names, text);
  if (found == names.end()) {
    return Status::InvalidArgument(
        fmt::format("{} = '{}', expected {}", flag, text, fmt::join(names, " or ")));
  }
  target = static_cast<T>(found - names.begin());
  return {};
}

Status SetWhole(std::string_view flag, std::string_view text, std::size_t min, std::size_t max,
                std::size_t& target) {
  return Assign(ParseWhole(flag, text, min, max), target);
}

Status SetReal(std::string_view flag, std::string_view text, double min, double max,
               double& target) {
  const auto value = ParseReal(flag, text);
  if (!value.ok()) return value.status();
  if (!(value.value() >= min && value.value() <= max)) {
    return Status::InvalidArgument(
        fmt::format("{} = '{}', expected a number from {} to {}", flag, text, min, max));
  }
  target = value.value();
  return {};
}

// A flag, the data sets that have it, how it is read, and how meta.json tells it.
struct Flag {
  const char* name;
  const char* value;
  const char* help;
  unsigned sets;
  Status (*parse)(std::string_view flag, std::string_view text, replay::PrepareOptions& options);
  Json (*json)(const replay::PrepareOptions& options);
};

constexpr std::string_view kOrders[] = {"stacked", "interleaved", "time"};

const Flag kFlags[] = {
    {"--seed", "S", "Of every draw (default 1)", kL | kD | kM | kY,
     [](auto flag, auto text, auto& options) {
       std::size_t seed = 0;
       const Status status =
           SetWhole(flag, text, 0, std::numeric_limits<std::uint32_t>::max(), seed);
       options.seed = seed;
       return status;
     },
     [](const auto& options) { return Json(options.seed); }},
    {"--dim", "D", "Principal components kept (default 25; not yahoo)", kL | kD | kM,
     [](auto flag, auto text, auto& options) {
       return SetWhole(flag, text, 1, kMaxFeatures, options.dim);
     },
     [](const auto& options) { return Json(options.dim); }},
    {"--candidates", "n", "Of each event (default 25, yahoo 10; yahoo: 0 is the whole pool)",
     kL | kD | kM | kY,
     [](auto flag, auto text, auto& options) {
       return SetWhole(flag, text, 0, 10'000, options.candidates);
     },
     [](const auto& options) { return Json(options.candidates); }},
    {"--max-events", "n",
     "Drawn uniformly; yahoo: first visits; 0 is all (default lastfm and delicious 30000, else "
     "all)",
     kL | kD | kM | kY,
     [](auto flag, auto text, auto& options) {
       return SetWhole(flag, text, 0, kMany, options.max_events);
     },
     [](const auto& options) { return Json(options.max_events); }},
    {"--min-observations", "n", "Users with fewer are left out (default movielens 3000, else 1)",
     kL | kD | kM,
     [](auto flag, auto text, auto& options) {
       return SetWhole(flag, text, 1, kMany, options.min_observations);
     },
     [](const auto& options) { return Json(options.min_observations); }},
    {"--order", "stacked|interleaved|time",
     "User after user, users mixed at random, or by time (default movielens time, else stacked)",
     kL | kD | kM,
     [](auto flag, auto text, auto& options) {
       return SetChoice(flag, text, {kOrders[0], kOrders[1], kOrders[2]}, options.order);
     },
     [](const auto& options) { return Json(kOrders[static_cast<std::size_t>(options.order)]); }},
    {"--scale", "none|unit", "Features to variance 1 or not (default movielens unit, else none)",
     kL | kD | kM,
     [](auto flag, auto text, auto& options) {
       return SetChoice(flag, text, {"none", "unit"}, options.unit_variance);
     },
     [](const auto& options) { return Json(options.unit_variance ? "unit" : "none"); }},
    {"--terms", "tags|words",
     "A tag is one term, or each of its words (default movielens words, else tags)", kL | kD | kM,
     [](auto flag, auto text, auto& options) {
       return SetChoice(flag, text, {"tags", "words"}, options.terms);
     },
     [](const auto& options) {
       return Json(options.terms == replay::TermKind::kTags ? "tags" : "words");
     }},
    {"--stop-words", "none|english", "Which words are left out (default english)", kL | kD | kM,
     [](auto flag, auto text, auto& options) {
       return SetChoice(flag, text, {"none", "english"}, options.tokens.stop_words);
     },
     [](const auto& options) { return Json(options.tokens.stop_words ? "english" : "none"); }},
    {"--stem", "none|english", "Words to their stems (default none)", kL | kD | kM,
     [](auto flag, auto text, auto& options) {
       return SetChoice(flag, text, {"none", "english"}, options.tokens.stemming);
     },
     [](const auto& options) {
       return Json(options.tokens.stemming == data::Stemming::kEnglish ? "english" : "none");
     }},
    {"--tf", "count|log", "Weight of a term in an item: its count, or 1 + ln of it (default count)",
     kL | kD | kM,
     [](auto flag, auto text, auto& options) {
       return SetChoice(flag, text, {"count", "log"}, options.log_tf);
     },
     [](const auto& options) { return Json(options.log_tf ? "log" : "count"); }},
    {"--min-items", "n", "Terms that fewer items have are left out (default 1)", kL | kD | kM,
     [](auto flag, auto text, auto& options) {
       return SetWhole(flag, text, 1, kMany, options.min_documents);
     },
     [](const auto& options) { return Json(options.min_documents); }},
    {"--groups", "n", "Groups of users (default lastfm and delicious 10, yahoo 160)", kL | kD | kY,
     [](auto flag, auto text, auto& options) {
       return SetWhole(flag, text, 1, 10'000, options.groups);
     },
     [](const auto& options) { return Json(options.groups); }},
    {"--parts", "n", "Users that each group is split into, by time (default 3)", kL | kD,
     [](auto flag, auto text, auto& options) {
       return SetWhole(flag, text, 1, 10'000, options.parts);
     },
     [](const auto& options) { return Json(options.parts); }},
    {"--regularise", "x", "Weak friendship with everybody, times the mean degree (default 1)",
     kL | kD,
     [](auto flag, auto text, auto& options) {
       return SetReal(flag, text, 0, 1000, options.graph_regularisation);
     },
     [](const auto& options) { return Json(options.graph_regularisation); }},
    {"--embedding", "plain|unit",
     "Rows of the spectral embedding as they are, or of norm 1 (default unit)", kL | kD,
     [](auto flag, auto text, auto& options) {
       return SetChoice(flag, text, {"plain", "unit"}, options.normalise_rows);
     },
     [](const auto& options) { return Json(options.normalise_rows ? "unit" : "plain"); }},
    {"--earliest", "MS",
     "Tags before it have no usable time: ms since 1970 (default lastfm start of 2004, else 0)",
     kL | kD,
     [](auto flag, auto text, auto& options) {
       std::size_t time = 0;
       const Status status = SetWhole(flag, text, 0, std::size_t{1} << 53U, time);
       options.earliest_time = static_cast<std::int64_t>(time);
       return status;
     },
     [](const auto& options) { return Json(options.earliest_time); }},
    {"--positive-rating", "r", "Ratings from here on are positive (default 0.5: all)", kM,
     [](auto flag, auto text, auto& options) {
       return SetReal(flag, text, 0, 5, options.positive_rating);
     },
     [](const auto& options) { return Json(options.positive_rating); }},
    {"--days", "n", "Files of the log, from the first; 0 is all (default 1)", kY,
     [](auto flag, auto text, auto& options) { return SetWhole(flag, text, 0, 100, options.days); },
     [](const auto& options) { return Json(options.days); }},
    {"--user-sample", "n", "Visits that the groups are found from (default 20000)", kY,
     [](auto flag, auto text, auto& options) {
       return SetWhole(flag, text, 1, 10'000'000, options.user_sample);
     },
     [](const auto& options) { return Json(options.user_sample); }},
};

struct PrepareFlags {
  std::string set;
  std::string in;
  std::string out;
  bool strict = false;
  bool overwrite = false;
  std::vector<std::string> texts = std::vector<std::string>(std::size(kFlags));
};

bool Has(const Flag& flag, data::DataSet set) {
  return (flag.sets >> static_cast<unsigned>(set)) & 1U;
}

Result<data::DataSet> ParseSet(std::string_view text) {
  std::vector<std::string_view> names;
  for (const data::DataSet set : data::kDataSets) {
    if (text == data::DataSetName(set)) return set;
    names.push_back(data::DataSetName(set));
  }
  return Status::InvalidArgument(
      fmt::format("data set '{}' is unknown; there are {}", text, fmt::join(names, ", ")));
}

Result<replay::PrepareOptions> ParseOptions(const PrepareFlags& flags, const Command& command,
                                            data::DataSet set) {
  replay::PrepareOptions options = replay::PrepareOptions::For(set);
  options.strict = flags.strict;
  for (std::size_t i = 0; i < std::size(kFlags); ++i) {
    if (!command.Given(kFlags[i].name)) continue;
    if (!Has(kFlags[i], set)) {
      std::vector<std::string_view> names;
      for (const data::DataSet other : data::kDataSets) {
        if (Has(kFlags[i], other)) names.push_back(data::DataSetName(other));
      }
      return Status::InvalidArgument(fmt::format("{} is not for {}, but for {}", kFlags[i].name,
                                                 data::DataSetName(set), fmt::join(names, ", ")));
    }
    CODBAND_RETURN_IF_ERROR(kFlags[i].parse(kFlags[i].name, flags.texts[i], options));
  }
  if (options.candidates < 2 && (set != data::DataSet::kYahoo || options.candidates == 1)) {
    return Status::InvalidArgument(
        fmt::format("--candidates = '{}', expected 2 or more", options.candidates));
  }
  return options;
}

std::string MetaJson(data::DataSet set, const replay::PrepareOptions& options,
                     const replay::PreparedStream& stream, const data::InputLog& log) {
  Json choices;
  for (const Flag& flag : kFlags) {
    if (!Has(flag, set)) continue;
    std::string name(flag.name + 2);
    std::ranges::replace(name, '-', '_');
    choices[name] = flag.json(options);
  }
  Json files = Json::array();
  for (const data::FileLog& file : log.files()) {
    files.push_back({{"name", file.name}, {"rows", file.rows}, {"malformed", file.malformed}});
  }
  Json result{{"events", stream.events}, {"possible_events", stream.possible_events},
              {"users", stream.users},   {"items", stream.items},
              {"dim", stream.dim},       {"chance", stream.chance}};
  if (set == data::DataSet::kYahoo) {
    result["visits"] = stream.visits;
    result["clicks"] = stream.clicks;
    result["visits_with_changed_articles"] = stream.changed_articles;
  } else {
    result["terms"] = stream.terms;
    result["variance_share"] = stream.variance_share;
    result["users_of_data_set"] = stream.sources;
  }
  if (!stream.group_sizes.empty()) result["group_sizes"] = stream.group_sizes;
  if (set == data::DataSet::kLastFm || set == data::DataSet::kDelicious) {
    result["unusable_times"] = stream.unusable_times;
  }
  const Json json{{"version", kVersion},
                  {"data_set", data::DataSetName(set)},
                  {"options", std::move(choices)},
                  {"files", std::move(files)},
                  {"malformed_examples", log.examples()},
                  {"stream", std::move(result)}};
  // Bytes of a file that are no UTF-8 cannot be in it: excerpts are ASCII.
  return json.dump(2) + "\n";
}

std::string Summary(const replay::PreparedStream& stream, const std::string& out) {
  const auto grouped = [](std::size_t value) { return GroupThousands(fmt::format("{}", value)); };
  std::string text = fmt::format("Wrote {}\nEvents: {} of {}, users: {}, items: {}, features: {}",
                                 out, grouped(stream.events), grouped(stream.possible_events),
                                 grouped(stream.users), grouped(stream.items), stream.dim);
  if (stream.terms > 0) {
    text += fmt::format(" ({:.1f}% of the variance of {} terms)", 100 * stream.variance_share,
                        grouped(stream.terms));
  }
  if (stream.visits > 0) text += fmt::format(", visits: {}", grouped(stream.visits));
  return fmt::format("{}, reward by chance: {:.1f}\nNext: codband replay {}\n", text, stream.chance,
                     out);
}

void TellMalformed(const data::InputLog& log) {
  if (log.malformed() == 0) return;
  std::size_t rows = 0;
  for (const data::FileLog& file : log.files()) rows += file.rows;
  fmt::print(stderr, "Left out {} malformed lines of {}:\n", log.malformed(),
             rows + log.malformed());
  for (const std::string& example : log.examples()) fmt::print(stderr, "  {}\n", example);
  if (log.malformed() > log.examples().size()) fmt::print(stderr, "  ...\n");
}

volatile std::sig_atomic_t interrupted = 0;

// While it lives, the first interrupt or request to end is noted, so that what was begun can be
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

Status RunPrepare(const PrepareFlags& flags, const Command& command) {
  const auto set = ParseSet(flags.set);
  if (!set.ok()) return set.status();
  const auto options = ParseOptions(flags, command, set.value());
  if (!options.ok()) return options.status();

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
  data::InputLog log(flags.strict);
  const auto stream =
      replay::Prepare(set.value(), flags.in, options.value(), out.value(), log, hooks);
  progress.Finish();
  if (!stream.ok()) {
    // Reading may fail because it was interrupted.
    if (interrupted == 0) return stream.status();
    return {StatusCode::kUnavailable, fmt::format("interrupted; {} was not written", flags.out)};
  }
  auto meta = out.value().Open("meta.json");
  if (!meta.ok()) return meta.status();
  meta.value().Write(MetaJson(set.value(), options.value(), stream.value(), log));
  CODBAND_RETURN_IF_ERROR(meta.value().Close());
  CODBAND_RETURN_IF_ERROR(out.value().Commit());
  TellMalformed(log);
  fmt::print("{}", Summary(stream.value(), flags.out));
  return {};
}

}  // namespace

void AddPrepareCommand(CLI::App& app, Status& status) {
  auto flags = std::make_shared<PrepareFlags>();
  const Command command(app, "prepare", "Turn a public data set into a stream of recorded events",
                        kFooter);
  command.Option("SET", flags->set, "SET", "lastfm, delicious, movielens or yahoo",
                 Command::kRequired);
  command.Option("--in", flags->in, "DIR", "Where the files of the data set are",
                 Command::kRequired);
  command.Option("--out", flags->out, "DIR", "Where to write; must be new or empty",
                 Command::kRequired);
  command.Switch("--overwrite", flags->overwrite, "Replace an earlier result in --out");
  command.Switch("--strict", flags->strict, "Fail on the first malformed line");
  for (std::size_t i = 0; i < std::size(kFlags); ++i) {
    command.Option(kFlags[i].name, flags->texts[i], kFlags[i].value, kFlags[i].help);
  }
  command.Run(status, [flags, command] { return RunPrepare(*flags, command); });
}

}  // namespace codband::cli
