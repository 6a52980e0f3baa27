// Decisions in DSJSON.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

#include "codband/base/file.h"
#include "codband/base/heap_bytes.h"
#include "codband/base/lines.h"
#include "codband/base/text.h"
#include "codband/base/time.h"
#include "codband/eval/log_columns.h"
#include "codband/eval/log_reader.h"

namespace codband::eval {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostDepth = 100;  // of a line; that of a request to the server is less

struct ParsedLine {
  LoggedEvent event;
  std::string event_id;
  std::string user;
  bool timed = false;
  std::vector<NamedCandidate> candidates;
  std::vector<features::NamedFeature> context = {};
  std::vector<double> probabilities;  // by candidate; empty: not all are known
  std::string file = {};
  std::size_t line = 0;
};

Status WrongField(std::string_view field, std::string_view value, std::string_view expected) {
  return Status::InvalidArgument(fmt::format("{} = {:.60}, expected {}", field, value, expected));
}
// A line that is no decision is kCorruption, a decision with an invalid value kInvalidArgument.
Status Missing(std::string_view field, std::string_view expected) {
  return Status::Corruption(fmt::format("{} is missing, expected {}", field, expected));
}

std::string Text(const Json& json) {
  return json.is_string() ? json.get<std::string>()
                          : json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Some services write NaN as a string.
Result<double> Number(const Json& line, const char* field, std::string_view expected) {
  const auto found = line.find(field);
  if (found == line.end()) return Missing(field, expected);
  if (!found->is_number()) return WrongField(field, Text(*found), expected);
  return found->get<double>();
}

// Flattens JSON into named features: numbers, words ("genre=rock"), flags. What is at the path
// `left_out` is no feature.
void Flatten(const Json& json, const std::string& name, std::vector<features::NamedFeature>& out,
             std::string_view left_out = {}) {
  if (!left_out.empty() && name == left_out) return;
  if (json.is_number()) {
    out.push_back({name, json.get<double>()});
  } else if (json.is_string()) {
    out.push_back({name + "=" + json.get<std::string>(), 1});
  } else if (json.is_boolean()) {
    if (json.get<bool>()) out.push_back({name, 1});
  } else if (json.is_array()) {
    for (std::size_t i = 0; i < json.size(); ++i) {
      const bool number = json[i].is_number();
      Flatten(json[i], number ? features::PlaceName(name, i) : name, out, left_out);
    }
  } else if (json.is_object()) {
    for (const auto& [key, value] : json.items()) {
      if (key.starts_with('_')) continue;
      Flatten(value, name.empty() ? key : name + "." + key, out, left_out);
    }
  }
}

Status ReadCandidates(const Json& line, const std::string& user_field, ParsedLine& parsed) {
  const auto c = line.find("c");
  if (c == line.end() || !c->is_object()) return Missing("c", "an object with _multi");
  const auto multi = c->find("_multi");
  if (multi == c->end() || !multi->is_array() || multi->empty()) {
    return Missing("c._multi", "a list of at least 1 candidate");
  }
  for (const Json& action : *multi) {
    NamedCandidate& candidate = parsed.candidates.emplace_back();
    const auto tag = action.is_object() ? action.find("_tag") : action.end();
    candidate.name = action.is_object() && tag != action.end()
                         ? Text(*tag)
                         : fmt::format("{}", parsed.candidates.size());
    Flatten(action, "", candidate.features);
    if (candidate.features.empty()) candidate.features.push_back({"_tag=" + candidate.name, 1});
  }
  Flatten(*c, "", parsed.context, user_field);
  return {};
}

// Whether the numbers in `a` count from 0 or from 1.
std::size_t ActionBase(const std::vector<std::size_t>& a, std::size_t candidates,
                       std::optional<std::size_t> given, std::optional<std::size_t> chosen) {
  if (given) return *given;
  if (std::ranges::count(a, 0) > 0) return 0;
  if (std::ranges::count(a, candidates) > 0 || !chosen || a.empty()) return 1;
  return a.front() == *chosen ? 0 : 1;
}

// The numbers of `a` and `p`, if they are there.
Status ReadLists(const Json& line, std::vector<std::size_t>& a, std::vector<double>& p) {
  if (const auto list = line.find("a"); list != line.end()) {
    if (!list->is_array()) return WrongField("a", Text(*list), "a list of actions");
    for (const Json& action : *list) {
      if (!action.is_number_unsigned()) return WrongField("a", Text(action), "whole numbers");
      a.push_back(action.get<std::size_t>());
    }
  }
  if (const auto list = line.find("p"); list != line.end()) {
    if (!list->is_array()) return WrongField("p", Text(*list), "a list of probabilities");
    for (const Json& chance : *list) {
      if (!chance.is_number()) return WrongField("p", Text(chance), "numbers from 0 to 1");
      p.push_back(chance.get<double>());
    }
  }
  if (!p.empty() && p.size() != a.size()) {
    return WrongField("p", fmt::format("{} numbers", p.size()),
                      fmt::format("{} as in a", a.size()));
  }
  return {};
}

// The chosen candidate, its propensity, and the probabilities of the others.
Status ReadChoice(const Json& line, const DsJsonOptions& options, ParsedLine& parsed) {
  const std::size_t count = parsed.candidates.size();
  std::vector<std::size_t> a;
  std::vector<double> p;
  CODBAND_RETURN_IF_ERROR(ReadLists(line, a, p));
  std::optional<std::size_t> chosen;
  const auto take = [&](const char* field, std::size_t base) -> Status {
    const auto found = line.find(field);
    if (found == line.end()) return {};
    if (!found->is_number_unsigned() || found->get<std::size_t>() < base ||
        found->get<std::size_t>() >= base + count) {
      return WrongField(field, Text(*found),
                        fmt::format("a whole number from {} to {}", base, count + base - 1));
    }
    const std::size_t index = found->get<std::size_t>() - base;
    if (chosen && *chosen != index) {
      return WrongField(field, Text(*found), fmt::format("{} as _labelIndex says", *chosen + base));
    }
    chosen = index;
    return {};
  };
  CODBAND_RETURN_IF_ERROR(take("_labelIndex", 0));
  CODBAND_RETURN_IF_ERROR(take("_label_Action", 1));
  const std::size_t base = ActionBase(a, count, options.action_base, chosen);
  for (std::size_t& action : a) {
    if (action < base || action - base >= count) {
      return WrongField("a", fmt::format("{}", action),
                        fmt::format("whole numbers from {} to {}", base, count + base - 1));
    }
    action -= base;
  }
  if (!chosen && a.empty()) return Missing("_labelIndex", "it, _label_Action or a");
  if (!chosen) chosen = a.front();
  parsed.event.chosen = static_cast<std::uint32_t>(*chosen);
  if (p.size() == count) {
    parsed.probabilities.assign(count, -1);
    for (std::size_t i = 0; i < count; ++i) parsed.probabilities[a[i]] = p[i];
    if (std::ranges::count(parsed.probabilities, -1) > 0) {
      return WrongField("a", Text(line["a"]), "each action once");
    }
  }
  const auto at = std::ranges::find(a, *chosen);
  if (line.contains("_label_probability") || p.empty() || at == a.end()) {
    const auto number = Number(line, "_label_probability", "a number above 0 and at most 1");
    if (!number.ok()) return number.status();
    parsed.event.propensity = number.value();
    return {};
  }
  parsed.event.propensity = p[static_cast<std::size_t>(at - a.begin())];
  return {};
}

std::string ReadUser(const Json& line, const std::string& path) {
  const Json* json = &line["c"];
  std::string_view rest = path;
  while (!rest.empty()) {
    const std::size_t dot = std::min(rest.find('.'), rest.size());
    const auto found =
        json->is_object() ? json->find(std::string(rest.substr(0, dot))) : json->end();
    if (!json->is_object() || found == json->end()) return "";
    json = &*found;
    rest.remove_prefix(std::min(dot + 1, rest.size()));
  }
  return Text(*json);
}

Result<ParsedLine> ParseLine(std::string_view text, const DsJsonOptions& options) {
  if (NestsDeeper(text, kMostDepth)) {
    return Status::InvalidArgument(
        fmt::format("nests deeper than {}, expected a decision", kMostDepth));
  }
  Json line;
  try {
    line = Json::parse(text);
  } catch (const Json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 17: …, last read: '…'"
    const std::string_view what = error.what();
    std::string message = fmt::format("expected a JSON object, but {}",
                                      what.substr(std::min(what.find("] ") + 2, what.size())));
    // A line with both braces is not truncated: something in it, such as NaN, is no JSON.
    const bool whole =
        text.starts_with('{') && text.substr(0, text.find_last_not_of(" \t\r") + 1).ends_with('}');
    return whole ? Status::InvalidArgument(std::move(message))
                 : Status::Corruption(std::move(message));
  }
  if (!line.is_object()) {
    return Status::Corruption(fmt::format("'{:.40}', expected a JSON object", text));
  }
  ParsedLine parsed;
  CODBAND_RETURN_IF_ERROR(ReadCandidates(line, options.user_field, parsed));
  CODBAND_RETURN_IF_ERROR(ReadChoice(line, options, parsed));
  const auto cost = Number(line, "_label_cost", "a number: minus the reward");
  if (!cost.ok()) return cost.status();
  parsed.event.reward = 0 - cost.value();
  for (const char* field : {"EventId", "event_id"}) {
    if (const auto id = line.find(field); id != line.end()) parsed.event_id = Text(*id);
  }
  if (const auto time = line.find("Timestamp"); time != line.end()) {
    const auto ms = ParseTime(Text(*time));
    if (!ms) return WrongField("Timestamp", Text(*time), "a time such as 2021-07-29T10:00:00Z");
    parsed.event.time_ms = *ms;
    parsed.timed = true;
  }
  parsed.user = ReadUser(line, options.user_field);
  return parsed;
}

std::size_t MemoryBytes(std::span<const features::NamedFeature> features) {
  std::size_t bytes = features.size_bytes();
  for (const features::NamedFeature& feature : features) bytes += HeapBytes(feature.name);
  return bytes;
}

std::size_t MemoryBytes(const ParsedLine& line) {
  std::size_t bytes = sizeof(line) + HeapBytes(line.file) + HeapBytes(line.event_id) +
                      HeapBytes(line.user) + HeapBytes(line.probabilities) +
                      HeapBytes(line.candidates) + MemoryBytes(line.context);
  for (const NamedCandidate& candidate : line.candidates) {
    bytes += HeapBytes(candidate.name) + MemoryBytes(candidate.features);
  }
  return bytes;
}

// Parses the lines of a file; those that are left out are counted. `room`: of the memory that they
// may take.
Status ParseFile(const std::string& file, const DsJsonOptions& options, const LogLimits& limits,
                 LineCounter& counter, std::size_t& room, std::vector<ParsedLine>& lines) {
  const auto text = ReadFile(file);
  if (!text.ok()) return text.status();
  TextLines text_lines(text.value());
  while (text_lines.Next()) {
    const std::string_view line = text_lines.line();
    const std::size_t number = text_lines.number();
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    counter.Line();
    if (limits.between) limits.between();
    if (line.size() > limits.line_bytes) {
      return Status::InvalidArgument(fmt::format("{}:{}: has {} bytes, expected at most {}", file,
                                                 number, line.size(), limits.line_bytes));
    }
    auto parsed = ParseLine(line, options);
    if (!parsed.ok()) {
      CODBAND_RETURN_IF_ERROR(counter.Skip(file, number, parsed.status().message(),
                                           parsed.status().code() == StatusCode::kCorruption));
      continue;
    }
    parsed.value().file = file;
    parsed.value().line = number;
    const std::size_t bytes = MemoryBytes(parsed.value());
    if (bytes > room) {
      return Status::InvalidArgument(
          fmt::format("{}:{}: the log up to here takes more than {} MiB of memory, expected a "
                      "shorter one",
                      file, number, limits.memory_bytes >> 20U));
    }
    room -= bytes;
    lines.push_back(std::move(parsed).value());
  }
  return {};
}

// Adds the decision to the log; kInvalidArgument says what is wrong with it.
Status AddDecision(ParsedLine& line, LogColumns& columns, LoggedDecisions& log) {
  CODBAND_RETURN_IF_ERROR(log.CheckRoom(line.candidates.size()));
  std::vector<std::uint32_t> actions;
  for (const NamedCandidate& candidate : line.candidates) {
    actions.push_back(log.action_names.Add(candidate.name));
  }
  line.event.user = log.users.Add(line.user);
  const std::vector<double> features = columns.Rows(line.candidates, line.context);
  return log.Add(line.event,
                 {.actions = actions, .features = features, .probabilities = line.probabilities});
}

}  // namespace

Result<LoggedData> ReadDsJsonLog(const LogSource& source, const DsJsonOptions& options) {
  const auto files = FindFiles(source);
  if (!files.ok()) return files.status();
  LineCounter counter(source);
  const std::function<void()> between =
      source.limits.between ? source.limits.between : std::function<void()>([] {});
  std::vector<ParsedLine> lines;
  std::size_t room = source.limits.memory_bytes;
  for (const std::string& file : files.value()) {
    CODBAND_RETURN_IF_ERROR(ParseFile(file, options, source.limits, counter, room, lines));
  }
  LogColumns columns(
      [&](const LogColumns::Visit& visit) {
        for (const ParsedLine& line : lines) visit(line.candidates, line.context);
      },
      options.dim, between);
  LoggedData read{.log = LoggedDecisions(columns.dim(), source.limits.memory_bytes), .summary = {}};
  std::unordered_set<std::string> seen;
  std::size_t duplicates = 0;
  bool timed = true;
  for (ParsedLine& line : lines) {
    between();
    if (!line.event_id.empty() && !seen.insert(line.event_id).second) {
      ++duplicates;
      CODBAND_RETURN_IF_ERROR(counter.Skip(
          line.file, line.line,
          fmt::format("EventId = {:.60} a second time, expected each event once", line.event_id),
          true));
      continue;
    }
    if (const Status added = AddDecision(line, columns, read.log); !added.ok()) {
      CODBAND_RETURN_IF_ERROR(counter.Skip(line.file, line.line, added.message(), false));
      continue;
    }
    timed = timed && line.timed;
  }
  auto summary = counter.Finish({files.value(), source.leave_out}, read.log.size());
  if (!summary.ok()) return summary.status();
  read.summary = std::move(summary).value();
  read.summary.duplicates = duplicates;
  read.summary.timed = timed;
  read.summary.features = columns.Text();
  return read;
}

}  // namespace codband::eval
