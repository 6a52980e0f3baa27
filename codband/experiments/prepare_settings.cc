#include "codband/experiments/prepare_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "codband/base/check.h"
#include "codband/experiments/setting_text.h"
#include "codband/policy/policy.h"

namespace codband::experiments {
namespace {

using Json = nlohmann::ordered_json;
using PrepareOptions = replay::PrepareOptions;

enum : unsigned {
  kL = 1U << static_cast<unsigned>(data::DataSet::kLastFm),
  kD = 1U << static_cast<unsigned>(data::DataSet::kDelicious),
  kM = 1U << static_cast<unsigned>(data::DataSet::kMovieLens),
  kY = 1U << static_cast<unsigned>(data::DataSet::kYahoo),
};

constexpr std::size_t kMostPrepare = 1'000'000'000;

// One of two words, which stand for 0 and 1.
template <typename T>
Status SetWord(std::string_view flag, std::string_view text,
               const std::array<std::string_view, 2>& words, T& target) {
  return Assign(ParseWord(flag, text, words), target);
}

constexpr std::string_view kPrepareOrders[] = {"stacked", "interleaved", "time"};

constexpr PrepareSetting kPrepareSettings[] = {
    {"--seed", "S", "Seed of every random draw (default 1)", kL | kD | kM | kY,
     [](std::string_view flag, std::string_view text, PrepareOptions& options) {
       return Assign(ParseWhole(flag, text, 0, std::numeric_limits<std::uint32_t>::max()),
                     options.seed);
     },
     [](const PrepareOptions& options) { return Json(options.seed); }},
    {"--dim", "D", "Principal components kept as features (default 25; not yahoo)", kL | kD | kM,
     [](std::string_view flag, std::string_view text, PrepareOptions& options) {
       return Assign(ParseWhole(flag, text, 1, kMaxFeatures), options.dim);
     },
     [](const PrepareOptions& options) { return Json(options.dim); }},
    {"--candidates", "n",
     "Candidates of each event (default 25, yahoo 10; yahoo: 0 is the whole pool)",
     kL | kD | kM | kY,
     [](std::string_view flag, std::string_view text, PrepareOptions& options) {
       return Assign(ParseWhole(flag, text, 0, 10'000), options.candidates);
     },
     [](const PrepareOptions& options) { return Json(options.candidates); }},
    {"--max-events", "n",
     "Number of events, drawn uniformly; yahoo: the first visits; 0 is all (default lastfm and "
     "delicious 30000, else all)",
     kL | kD | kM | kY,
     [](std::string_view flag, std::string_view text, PrepareOptions& options) {
       return Assign(ParseWhole(flag, text, 0, kMostPrepare), options.max_events);
     },
     [](const PrepareOptions& options) { return Json(options.max_events); }},
    {"--min-observations", "n",
     "Leave out users with fewer observations (default movielens 3000, else 1)", kL | kD | kM,
     [](std::string_view flag, std::string_view text, PrepareOptions& options) {
       return Assign(ParseWhole(flag, text, 1, kMostPrepare), options.min_observations);
     },
     [](const PrepareOptions& options) { return Json(options.min_observations); }},
    {"--order", "stacked|interleaved|time",
     "Order of events: user after user, users mixed at random, or by time (default movielens time, "
     "else stacked)",
     kL | kD | kM,
     [](std::string_view flag, std::string_view text, PrepareOptions& options) {
       return Assign(ParseWord(flag, text, kPrepareOrders), options.order);
     },
     [](const PrepareOptions& options) {
       return Json(kPrepareOrders[static_cast<std::size_t>(options.order)]);
     }},
    {"--scale", "none|unit", "Scale features to variance 1 (default movielens unit, else none)",
     kL | kD | kM,
     [](std::string_view flag, std::string_view text, PrepareOptions& options) {
       return SetWord(flag, text, {{"none", "unit"}}, options.unit_variance);
     },
     [](const PrepareOptions& options) { return Json(options.unit_variance ? "unit" : "none"); }},
    {"--terms", "tags|words",
     "Terms of TF-IDF: whole tags, or their words (default movielens words, else tags)",
     kL | kD | kM,
     [](std::string_view flag, std::string_view text, PrepareOptions& options) {
       return SetWord(flag, text, {{"tags", "words"}}, options.terms);
     },
     [](const PrepareOptions& options) {
       return Json(options.terms == replay::TermKind::kTags ? "tags" : "words");
     }},
    {"--stop-words", "none|english", "Words to leave out (default english)", kL | kD | kM,
     [](std::string_view flag, std::string_view text, PrepareOptions& options) {
       return SetWord(flag, text, {{"none", "english"}}, options.tokens.stop_words);
     },
     [](const PrepareOptions& options) {
       return Json(options.tokens.stop_words ? "english" : "none");
     }},
    {"--stem", "none|english", "Reduce words to their stems (default none)", kL | kD | kM,
     [](std::string_view flag, std::string_view text, PrepareOptions& options) {
       return SetWord(flag, text, {{"none", "english"}}, options.tokens.stemming);
     },
     [](const PrepareOptions& options) {
       return Json(options.tokens.stemming == data::Stemming::kEnglish ? "english" : "none");
     }},
    {"--tf", "count|log", "Term frequency: the count, or 1 + ln of it (default count)",
     kL | kD | kM,
     [](std::string_view flag, std::string_view text, PrepareOptions& options) {
       return SetWord(flag, text, {{"count", "log"}}, options.log_tf);
     },
     [](const PrepareOptions& options) { return Json(options.log_tf ? "log" : "count"); }},
    {"--min-items", "n", "Leave out terms that fewer items have (default 1)", kL | kD | kM,
     [](std::string_view flag, std::string_view text, PrepareOptions& options) {
       return Assign(ParseWhole(flag, text, 1, kMostPrepare), options.min_documents);
     },
     [](const PrepareOptions& options) { return Json(options.min_documents); }},
    {"--groups", "n", "Number of groups of users (default lastfm and delicious 10, yahoo 160)",
     kL | kD | kY,
     [](std::string_view flag, std::string_view text, PrepareOptions& options) {
       return Assign(ParseWhole(flag, text, 1, 10'000), options.groups);
     },
     [](const PrepareOptions& options) { return Json(options.groups); }},
    {"--parts", "n", "Number of users that each group is split into, by time (default 3)", kL | kD,
     [](std::string_view flag, std::string_view text, PrepareOptions& options) {
       return Assign(ParseWhole(flag, text, 1, 10'000), options.parts);
     },
     [](const PrepareOptions& options) { return Json(options.parts); }},
    {"--regularise", "x",
     "Regularise the friendship graph: weight of a weak link between any two users, times the mean "
     "degree (default 1)",
     kL | kD,
     [](std::string_view flag, std::string_view text, PrepareOptions& options) {
       return Assign(ParseReal(flag, text, 0, 1000), options.graph_regularisation);
     },
     [](const PrepareOptions& options) { return Json(options.graph_regularisation); }},
    {"--embedding", "plain|unit",
     "Rows of the spectral embedding as they are, or scaled to norm 1 (default unit)", kL | kD,
     [](std::string_view flag, std::string_view text, PrepareOptions& options) {
       return SetWord(flag, text, {{"plain", "unit"}}, options.normalise_rows);
     },
     [](const PrepareOptions& options) { return Json(options.normalise_rows ? "unit" : "plain"); }},
    {"--earliest", "MS",
     "Times before this one, in ms since 1970, count as missing (default lastfm start of 2004, "
     "else "
     "0)",
     kL | kD,
     [](std::string_view flag, std::string_view text, PrepareOptions& options) {
       return Assign(ParseWhole(flag, text, 0, std::size_t{1} << 53U), options.earliest_time);
     },
     [](const PrepareOptions& options) { return Json(options.earliest_time); }},
    {"--positive-rating", "r", "Lowest rating that counts as positive (default 0.5: all)", kM,
     [](std::string_view flag, std::string_view text, PrepareOptions& options) {
       return Assign(ParseReal(flag, text, 0, 5), options.positive_rating);
     },
     [](const PrepareOptions& options) { return Json(options.positive_rating); }},
    {"--days", "n", "Number of files of the log, from the first; 0 is all (default 1)", kY,
     [](std::string_view flag, std::string_view text, PrepareOptions& options) {
       return Assign(ParseWhole(flag, text, 0, 100), options.days);
     },
     [](const PrepareOptions& options) { return Json(options.days); }},
    {"--user-sample", "n", "Number of visits that the groups are clustered from (default 20000)",
     kY,
     [](std::string_view flag, std::string_view text, PrepareOptions& options) {
       return Assign(ParseWhole(flag, text, 1, 10'000'000), options.user_sample);
     },
     [](const PrepareOptions& options) { return Json(options.user_sample); }},
};

bool Has(const PrepareSetting& setting, data::DataSet set) {
  return (setting.sets >> static_cast<unsigned>(set)) & 1U;
}

Status NotForSet(const PrepareSetting& setting, data::DataSet set) {
  std::vector<std::string_view> names;
  for (const data::DataSet other : data::kDataSets) {
    if (Has(setting, other)) names.push_back(data::DataSetName(other));
  }
  return Status::InvalidArgument(fmt::format("{} is not for {}, but for {}", setting.flag,
                                             data::DataSetName(set), fmt::join(names, ", ")));
}

}  // namespace

std::span<const PrepareSetting> PrepareSettings() { return kPrepareSettings; }

Result<data::DataSet> ParseDataSet(std::string_view text) {
  std::vector<std::string_view> names;
  for (const data::DataSet set : data::kDataSets) {
    if (text == data::DataSetName(set)) return set;
    names.push_back(data::DataSetName(set));
  }
  return Status::InvalidArgument(
      fmt::format("data set '{}' is unknown; there are {}", text, fmt::join(names, ", ")));
}

Result<PrepareOptions> ParsePrepare(data::DataSet set,
                                    std::span<const std::optional<std::string>> texts) {
  CODBAND_CHECK(texts.size() == std::size(kPrepareSettings));
  PrepareOptions options = PrepareOptions::For(set);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (!texts[i]) continue;
    if (!Has(kPrepareSettings[i], set)) return NotForSet(kPrepareSettings[i], set);
    CODBAND_RETURN_IF_ERROR(
        kPrepareSettings[i].parse(kPrepareSettings[i].flag, *texts[i], options));
  }
  if (options.candidates < 2 && (set != data::DataSet::kYahoo || options.candidates == 1)) {
    return Status::InvalidArgument(
        fmt::format("--candidates = '{}', expected 2 or more", options.candidates));
  }
  return options;
}

Json PrepareJson(data::DataSet set, const PrepareOptions& options) {
  Json json;
  for (const PrepareSetting& setting : kPrepareSettings) {
    if (!Has(setting, set)) continue;
    std::string name(setting.flag + 2);
    std::ranges::replace(name, '-', '_');
    json[name] = setting.json(options);
  }
  return json;
}

}  // namespace codband::experiments
