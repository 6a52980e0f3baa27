#include "codband/server/api/request_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "codband/base/text.h"
#include "codband/server/api/backups.h"
#include "codband/server/http/http_text.h"

namespace codband::server {
namespace {

using dom::element_type;

// Flattens a tree of named features into a list of dotted names.
class NamedReader {
 public:
  explicit NamedReader(std::vector<features::NamedFeature>& out) : out_(out) {}

  Status Read(dom::object object, const Place& place, const std::string& prefix) {
    for (const dom::key_value_pair member : object) {
      if (member.key.empty()) return Refuse(place, "has a feature with an empty name");
      const Place here{.parent = &place, .key = member.key};
      std::string name = prefix;
      name.append(member.key);
      CODBAND_RETURN_IF_ERROR(ReadValue(member.value, here, std::move(name)));
    }
    return {};
  }

  // Hashing would silently add up two features of the same name.
  Status CheckNamesDiffer(const Place& place) const {
    std::vector<std::string_view> names;
    names.reserve(out_.size());
    for (const features::NamedFeature& feature : out_) names.push_back(feature.name);
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice == names.end()) return {};
    return Refuse(place, fmt::format("has the feature '{}' twice", *twice));
  }

 private:
  Status ReadValue(dom::element value, const Place& place, std::string name) {
    switch (value.type()) {
      case element_type::OBJECT:
        return Read(dom::object(value), place, name + '.');
      case element_type::STRING:
        return Add(place, name + '=' + std::string(std::string_view(value)), 1);
      case element_type::BOOL:
        return bool(value) ? Add(place, std::move(name), 1) : Status();
      case element_type::ARRAY: {
        std::size_t index = 0;
        for (const dom::element word : dom::array(value)) {
          const Place here{.parent = &place, .index = index++};
          if (word.type() != element_type::STRING) return Expected(here, word, "a string");
          CODBAND_RETURN_IF_ERROR(Add(here, name + '=' + std::string(std::string_view(word)), 1));
        }
        return {};
      }
      default: {
        const std::optional<double> number = AsNumber(value);
        if (!number) {
          return Expected(place, value,
                          "a number, a string, true, false, an object or an array of strings");
        }
        return Add(place, std::move(name), *number);
      }
    }
  }

  Status Add(const Place& place, std::string name, double value) {
    if (name.size() > kMaxNameBytes) {
      return Refuse(place, fmt::format("gives a name of {} bytes, expected at most {}", name.size(),
                                       kMaxNameBytes));
    }
    out_.push_back({.name = std::move(name), .value = value});
    return {};
  }

  std::vector<features::NamedFeature>& out_;
};

Status ReadNumbers(dom::array array, const Place& place, std::size_t dim,
                   std::vector<double>& features) {
  // array.size() saturates at 2^24 - 1.
  std::size_t count = 0;
  for (const dom::element value : array) {
    const std::optional<double> number = AsNumber(value);
    if (!number) return Expected({.parent = &place, .index = count}, value, "a number");
    if (count++ < dim) features.push_back(*number);
  }
  if (count != dim) {
    return Refuse(place, fmt::format("has {} numbers, expected {}", count, dim));
  }
  return {};
}

// `dim` numbers, or named features that are hashed into `dim` numbers.
Status ReadFeatures(dom::element value, const Place& place, std::size_t dim,
                    std::vector<double>& features, std::vector<features::NamedFeature>& named) {
  NamedReader reader(named);
  dom::array array;
  dom::object object;
  if (value.get(object) == simdjson::SUCCESS) {
    CODBAND_RETURN_IF_ERROR(reader.Read(object, place, ""));
  } else if (value.get(array) != simdjson::SUCCESS) {
    return Expected(place, value, fmt::format("{} numbers or an object of named features", dim));
  } else if (array.begin() == array.end() || (*array.begin()).type() != element_type::OBJECT) {
    features.reserve(dim);
    return ReadNumbers(array, place, dim, features);
  } else {
    std::size_t index = 0;
    for (const dom::element part : array) {
      const Place here{.parent = &place, .index = index++};
      if (part.get(object) != simdjson::SUCCESS) return Expected(here, part, "an object");
      CODBAND_RETURN_IF_ERROR(reader.Read(object, here, ""));
    }
  }
  CODBAND_RETURN_IF_ERROR(reader.CheckNamesDiffer(place));
  features.assign(dim, 0.0);
  features::HashFeatures(named, features);
  if (!std::all_of(features.begin(), features.end(), [](double x) { return std::isfinite(x); })) {
    return Refuse(place, "overflows: the hashed sum is not finite");
  }
  return {};
}

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
  out.reserve(array.size());
  std::size_t index = 0;
  for (const dom::element action : array) {
    const Place here{.parent = &place, .index = index++};
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

constexpr std::array<std::string_view, 7> kRankFields = {
    "userId", "eventId",         "actions",        "contextFeatures",
    "topK",   "excludedActions", "deferActivation"};
constexpr std::array<std::string_view, 1> kRewardFields = {"value"};
constexpr std::array<std::string_view, 3> kItemFields = {"id", "features", "tags"};
constexpr std::array<std::string_view, 1> kBackupFields = {"name"};

}  // namespace

Result<engine::RankRequest> ParseRank(JsonParser& parser, std::string_view body, std::size_t dim) {
  const Result<dom::object> object = parser.ParseObject(body);
  if (!object.ok()) return object.status();
  const Place root;
  engine::RankRequest request;
  std::string_view user_field;
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
      request.context = simdjson::minify(value);
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
  if (user_field.empty()) return Refuse({.parent = &root, .key = "userId"}, "is missing");
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
