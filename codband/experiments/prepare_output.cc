#include "codband/experiments/prepare_output.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "codband/base/text.h"
#include "codband/base/version.h"
#include "codband/experiments/prepare_settings.h"

namespace codband::experiments {

using Json = nlohmann::ordered_json;

std::string MetaJson(data::DataSet set, const replay::PrepareOptions& options,
                     const replay::PreparedStream& stream, const data::InputLog& log) {
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
                  {"options", PrepareJson(set, options)},
                  {"files", std::move(files)},
                  {"malformed_examples", log.examples()},
                  {"stream", std::move(result)}};
  // Bytes of a file that are no UTF-8 cannot be in it: excerpts are ASCII.
  return json.dump(2) + "\n";
}

std::string PrepareSummary(const replay::PreparedStream& stream, const std::string& out) {
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

std::string MalformedText(const data::InputLog& log) {
  if (log.malformed() == 0) return "";
  std::size_t rows = 0;
  for (const data::FileLog& file : log.files()) rows += file.rows;
  std::string text =
      fmt::format("Left out {} malformed lines of {}:\n", log.malformed(), rows + log.malformed());
  for (const std::string& example : log.examples()) text += fmt::format("  {}\n", example);
  if (log.malformed() > log.examples().size()) text += "  ...\n";
  return text;
}

}  // namespace codband::experiments
