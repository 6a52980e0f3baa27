#include "codband/server/api/request_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "codband/base/text.h"
#include "codband/server/api/backups.h"
#include "codband/server/api/feature_json.h"
#include "codband/server/http/http_text.h"

namespace codband::server {
namespace {

using dom::element_type;

constexpr std::array<std::string_view, 2> kActionFields = {"id", "features"};

Status ReadAction(dom::element value, const Place& place, std::size_t dim, engine::Candidate& out) {
  if (value.type() == element_type::STRING) return ReadId(value, place, out.id);
  dom::object object;
  if (value.get(object) != simdjson::SUCCESS) {
    return Expected(place, value, "an id or an object with id and features");
  }
  for (const dom::key_value_pair member : object) {
    const Place here{.parent = &place, .key = member.key};
    if (member.key == "id") {
      CODBAND_RETURN_IF_ERROR(ReadId(member.value, here, out.id));
    } else if (member.key == "features") {
      CODBAND_RETURN_IF_ERROR(ReadFeatures(member.value, here, dim, out.features, out.named));
      out.given = true;
    } else {
      return Unknown(place, member.key, kActionFields);
    }
  }
  if (out.id.empty()) return Refuse({.parent = &place, .key = "id"}, "is missing");
  return {};
}

Status ReadActions(dom::element value, const Place& place, std::size_t dim,
                   std::vector<engine::Candidate>& out) {
  dom::array array;
  if (value.get(array) != simdjson::SUCCESS) return Expected(place, value, "an array");
  out.reserve(std::min(array.size(), kMostActions));
  std::size_t index = 0;
  for (const dom::element action : array) {
    const Place here{.parent = &place, .index = index++};
    if (index > kMostActions) {
      return Refuse(place, fmt::format("has more than {} actions; leave it out to rank the whole "
                                       "catalogue",
                                       kMostActions));
    }
    CODBAND_RETURN_IF_ERROR(ReadAction(action, here, dim, out.emplace_back()));
  }
  if (out.empty()) return Refuse(place, "is empty; leave it out to rank the whole catalogue");
  return {};
}

Status ReadTopK(dom::element value, const Place& place, std::size_t& out) {
  std::uint64_t number = 0;
  if (value.type() == element_type::DOUBLE || value.get(number) != simdjson::SUCCESS ||
      number == 0) {
    return Expected(place, value, "a positive whole number");
  }
  out = number;
  return {};
}

constexpr std::array<std::string_view, 8> kRankFields = {
    "userId",       "eventId", "actions",         "contextFeatures",
    "userFeatures", "topK",    "excludedActions", "deferActivation"};
constexpr std::array<std::string_view, 1> kRewardFields = {"value"};
constexpr std::array<std::string_view, 3> kItemFields = {"id", "features", "tags"};
constexpr std::array<std::string_view, 1> kBackupFields = {"name"};

}  // namespace

Result<engine::RankRequest> ParseRank(JsonParser& parser, std::string_view body, std::size_t dim,
                                      std::string_view user_from) {
  const Result<dom::object> object = parser.ParseObject(body);
  if (!object.ok()) return object.status();
  const Place root;
  engine::RankRequest request;
  std::string_view user_field;
  std::string user_in_context;
  for (const auto [key, value] : object.value()) {
    const Place here{.parent = &root, .key = key};
    if (key == "userId" || key == "user") {
      if (!user_field.empty()) {
        return Refuse(here, fmt::format("means the same as {}; give one of them", user_field));
      }
      user_field = key;
      CODBAND_RETURN_IF_ERROR(ReadId(value, here, request.user));
    } else if (key == "eventId") {
      CODBAND_RETURN_IF_ERROR(ReadId(value, here, request.event_id));
    } else if (key == "actions") {
      CODBAND_RETURN_IF_ERROR(ReadActions(value, here, dim, request.candidates));
    } else if (key == "contextFeatures") {
      CODBAND_RETURN_IF_ERROR(ReadUserFrom(value, here, user_from, user_in_context));
      request.context = simdjson::minify(value);
      if (dim == 0) {
        CODBAND_RETURN_IF_ERROR(ReadContext(value, here, user_from, request.context_features));
      }
    } else if (key == "userFeatures") {
      CODBAND_RETURN_IF_ERROR(ReadContext(value, here, {}, request.user_features));
      request.user_context = simdjson::minify(value);
    } else if (key == "excludedActions") {
      CODBAND_RETURN_IF_ERROR(ReadIds(value, here, request.excluded));
    } else if (key == "topK") {
      CODBAND_RETURN_IF_ERROR(ReadTopK(value, here, request.top_k));
    } else if (key == "deferActivation") {
      CODBAND_RETURN_IF_ERROR(ReadFlag(value, here, request.defer_activation));
    } else {
      return Unknown(root, key, kRankFields);
    }
  }
  if (user_field.empty()) request.user = std::move(user_in_context);
  return request;
}

Result<engine::RankRequest> ParseRankKey(JsonParser& parser, std::string_view body,
                                         std::string_view user_from) {
  const Result<dom::object> object = parser.ParseObject(body);
  if (!object.ok()) return object.status();
  const Place root;
  engine::RankRequest request;
  std::string user_in_context;
  for (const auto [key, value] : object.value()) {
    const Place here{.parent = &root, .key = key};
    if (key == "userId" || key == "user") {
      CODBAND_RETURN_IF_ERROR(ReadId(value, here, request.user));
    } else if (key == "eventId") {
      CODBAND_RETURN_IF_ERROR(ReadId(value, here, request.event_id));
    } else if (key == "contextFeatures" && !user_from.empty()) {
      CODBAND_RETURN_IF_ERROR(ReadUserFrom(value, here, user_from, user_in_context));
    }
  }
  if (request.user.empty()) request.user = std::move(user_in_context);
  return request;
}

Result<double> ParseReward(JsonParser& parser, std::string_view body) {
  const Result<dom::object> object = parser.ParseObject(body);
  if (!object.ok()) return object.status();
  const Place root;
  std::optional<double> reward;
  for (const auto [key, value] : object.value()) {
    if (key != "value") return Unknown(root, key, kRewardFields);
    reward = AsNumber(value);
    if (!reward) return Expected({.parent = &root, .key = key}, value, "a number");
  }
  if (!reward) return Refuse({.parent = &root, .key = "value"}, "is missing");
  return *reward;
}

Result<engine::Item> ParseItem(JsonParser& parser, std::string_view body, std::size_t dim,
                               std::string_view id) {
  const Result<dom::object> object = parser.ParseObject(body);
  if (!object.ok()) return object.status();
  const Place root;
  engine::Item item;
  bool has_features = false;
  for (const auto [key, value] : object.value()) {
    const Place here{.parent = &root, .key = key};
    if (key == "id") {
      CODBAND_RETURN_IF_ERROR(ReadId(value, here, item.id));
      if (!id.empty() && item.id != id) return Refuse(here, "differs from the one in the path");
    } else if (key == "features") {
      has_features = true;
      CODBAND_RETURN_IF_ERROR(ReadFeatures(value, here, dim, item.features, item.named));
    } else if (key == "tags") {
      CODBAND_RETURN_IF_ERROR(ReadIds(value, here, item.tags));
    } else {
      return Unknown(root, key, kItemFields);
    }
  }
  if (item.id.empty()) item.id = id;
  if (item.id.empty()) return Refuse({.parent = &root, .key = "id"}, "is missing");
  if (!has_features) return Refuse({.parent = &root, .key = "features"}, "is missing");
  return item;
}

Result<std::string> ParseBackup(JsonParser& parser, std::string_view body) {
  const Result<dom::object> object = parser.ParseObject(body);
  if (!object.ok()) return object.status();
  const Place root;
  std::string_view name;
  const Place here{.parent = &root, .key = "name"};
  for (const auto [key, value] : object.value()) {
    if (key == "directory") {
      return Refuse({.parent = &root, .key = "directory"},
                    "is not taken any more: send \"name\"; the server keeps backups in the "
                    "directory that its setting backup.root names");
    }
    if (key != "name") return Unknown(root, key, kBackupFields);
    if (value.get(name) != simdjson::SUCCESS) return Expected(here, value, "a string");
    CODBAND_RETURN_IF_ERROR(CheckBackupName(name));
  }
  if (name.empty()) return Refuse(here, "is missing");
  return std::string(name);
}

Result<std::string> ParseLogin(JsonParser& parser, std::string_view body) {
  constexpr std::array<std::string_view, 1> kLoginFields = {"key"};
  const Result<dom::object> object = parser.ParseObject(body);
  if (!object.ok()) return object.status();
  const Place root;
  const Place here{.parent = &root, .key = "key"};
  std::string_view text;
  for (const auto [key, value] : object.value()) {
    if (key != "key") return Unknown(root, key, kLoginFields);
    if (value.get(text) != simdjson::SUCCESS) return Expected(here, value, "a string");
  }
  if (text.empty()) return Refuse(here, "is missing");
  return std::string(text);
}

Result<std::string> DecodeId(std::string_view raw_id) {
  Result<std::string> id = UrlDecode(raw_id);
  if (!id.ok()) return Status::InvalidArgument("id: " + id.status().message());
  if (!IsUtf8(id.value())) return Status::InvalidArgument("id: is not valid UTF-8");
  if (id.value().empty() || id.value().size() > kMaxIdBytes) {
    return Status::InvalidArgument(
        fmt::format("id: has {} bytes, expected 1 to {}", id.value().size(), kMaxIdBytes));
  }
  return id;
}

}  // namespace codband::server
