#include "codband/server/api/history_json.h"

#include <fmt/format.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <cmath>
#include <iterator>
#include <utility>

#include "codband/server/api/json_writer.h"
#include "codband/server/api/request_json.h"

namespace codband::server {
namespace {

constexpr std::array<std::string_view, 6> kHistoryFields = {"userId",   "itemId", "value",
                                                            "features", "time",   "eventId"};

// Features as an item has them: by the reader of items.
Status ReadHistoryFeatures(dom::element features, const Place& place, std::size_t dim,
                           engine::Candidate& item) {
  JsonParser parser;
  const std::string body = R"({"features":)" + std::string(simdjson::minify(features)) + "}";
  Result<engine::Item> read = ParseItem(parser, body, dim, item.id);
  if (!read.ok()) {
    return Status::InvalidArgument(fmt::format("{}.{}", place.Text(), read.status().message()));
  }
  item.features = std::move(read.value().features);
  item.named = std::move(read.value().named);
  return {};
}

// The lengths make it unambiguous, whatever the ids are.
std::string HistoryIdOf(const HistoryEvent& event, std::string_view time) {
  const std::string text = fmt::format("{}:{}\n{}:{}\n{}\n{}", event.user.size(), event.user,
                                       event.item.id.size(), event.item.id, event.value, time);
  return fmt::format("history-{:016x}", XXH3_64bits(text.data(), text.size()));
}

Status ReadHistoryEvent(dom::object object, const Place& place, std::size_t dim,
                        HistoryEvent& event) {
  std::string time;
  std::optional<dom::element> features;
  bool valued = false;
  for (const dom::key_value_pair member : object) {
    const Place here{.parent = &place, .key = member.key};
    if (member.key == "userId") {
      CODBAND_RETURN_IF_ERROR(ReadId(member.value, here, event.user));
    } else if (member.key == "itemId") {
      CODBAND_RETURN_IF_ERROR(ReadId(member.value, here, event.item.id));
    } else if (member.key == "eventId") {
      CODBAND_RETURN_IF_ERROR(ReadId(member.value, here, event.id));
    } else if (member.key == "time") {
      CODBAND_RETURN_IF_ERROR(ReadId(member.value, here, time));
    } else if (member.key == "features") {
      features = member.value;
    } else if (member.key == "value") {
      const std::optional<double> value = AsNumber(member.value);
      if (!value) return Expected(here, member.value, "a finite number");
      event.value = *value;
      valued = true;
    } else {
      return Unknown(place, member.key, kHistoryFields);
    }
  }
  const auto missing = [&](std::string_view field) {
    return Refuse({.parent = &place, .key = field}, "is missing");
  };
  if (event.user.empty()) return missing("userId");
  if (event.item.id.empty()) return missing("itemId");
  if (!valued) return missing("value");
  if (features) CODBAND_RETURN_IF_ERROR(ReadHistoryFeatures(*features, place, dim, event.item));
  if (event.id.empty()) event.id = HistoryIdOf(event, time);
  return {};
}

}  // namespace

Result<std::vector<HistoryEvent>> ParseHistory(JsonParser& parser, std::string_view body,
                                               std::size_t dim) {
  constexpr std::array<std::string_view, 1> kKnown = {"events"};
  const Result<dom::object> object = parser.ParseObject(body);
  if (!object.ok()) return object.status();
  const Place top;
  std::vector<HistoryEvent> events;
  for (const dom::key_value_pair member : object.value()) {
    if (member.key != "events") return Unknown(top, member.key, kKnown);
    const Place place{.parent = &top, .key = member.key};
    if (!member.value.is_array()) return Expected(place, member.value, "an array");
    for (const dom::element value : dom::array(member.value)) {
      const Place here{.parent = &place, .index = events.size()};
      if (!value.is_object()) return Expected(here, value, "an object");
      if (events.size() == kMaxHistoryEvents) {
        return Refuse(place, fmt::format("has more than {} events", kMaxHistoryEvents));
      }
      CODBAND_RETURN_IF_ERROR(
          ReadHistoryEvent(dom::object(value), here, dim, events.emplace_back()));
    }
  }
  if (events.empty())
    return Refuse({.parent = &top, .key = "events"}, "has none, expected at least 1");
  return events;
}

void AppendHistoryReply(std::string& out, const HistoryOutcome& outcome) {
  fmt::format_to(std::back_inserter(out), R"({{"accepted":{},"duplicates":{},"skipped":[)",
                 outcome.accepted, outcome.duplicates);
  for (const HistoryOutcome::Skipped& skipped : outcome.skipped) {
    if (&skipped != &outcome.skipped.front()) out += ',';
    fmt::format_to(std::back_inserter(out), R"({{"index":{},"reason":)", skipped.index);
    AppendJsonString(out, skipped.reason);
    out += '}';
  }
  out += R"(],"status":"ok"})";
}

}  // namespace codband::server
