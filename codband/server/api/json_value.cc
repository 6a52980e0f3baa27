#include "codband/server/api/json_value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <new>
#include <utility>

#include "codband/server/api/json_fault.h"
#include "codband/server/api/request_json.h"

namespace codband::server {
namespace {

using dom::element_type;

std::string Describe(dom::element value) {
  switch (value.type()) {
    case element_type::ARRAY:
      return "is an array";
    case element_type::OBJECT:
      return "is an object";
    case element_type::STRING:
      return "is a string";
    case element_type::NULL_VALUE:
      return "is null";
    default:
      return "is " + simdjson::minify(value);
  }
}

std::optional<std::string_view> RepeatedName(dom::object object) {
  constexpr std::size_t kFew = 16;
  std::array<std::string_view, kFew> few;
  std::size_t count = 0;
  for (const dom::key_value_pair member : object) {
    if (count == kFew) {
      ++count;
      break;
    }
    const auto end = few.begin() + static_cast<std::ptrdiff_t>(count);
    if (std::find(few.begin(), end, member.key) != end) return member.key;
    few[count++] = member.key;
  }
  if (count <= kFew) return std::nullopt;
  std::vector<std::string_view> names;
  for (const dom::key_value_pair member : object) names.push_back(member.key);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return std::nullopt;
  return *twice;
}

// Refuses an object that has a name twice, at any depth.
Status CheckNamesDiffer(dom::element value, const Place& place) {
  if (value.type() == element_type::ARRAY) {
    std::size_t index = 0;
    for (const dom::element child : dom::array(value)) {
      const element_type type = child.type();
      if (type == element_type::ARRAY || type == element_type::OBJECT) {
        CODBAND_RETURN_IF_ERROR(CheckNamesDiffer(child, {.parent = &place, .index = index}));
      }
      ++index;
    }
  } else if (value.type() == element_type::OBJECT) {
    if (const std::optional<std::string_view> twice = RepeatedName(dom::object(value))) {
      if (twice->empty()) return Refuse(place, "has the empty name twice");
      return Refuse({.parent = &place, .key = *twice}, "is given twice");
    }
    for (const dom::key_value_pair member : dom::object(value)) {
      CODBAND_RETURN_IF_ERROR(
          CheckNamesDiffer(member.value, {.parent = &place, .key = member.key}));
    }
  }
  return {};
}

}  // namespace

std::string Place::Text() const {
  if (parent == nullptr) return "";
  std::string text = parent->Text();
  if (key.empty()) return text + fmt::format("[{}]", index);
  if (!text.empty()) text += '.';
  constexpr std::size_t kLongest = 200;  // an error need not repeat a whole body
  return text.append(key.substr(0, kLongest));
}

Status Refuse(const Place& place, std::string_view reason) {
  const std::string field = place.Text();
  return Status::InvalidArgument(fmt::format("{}: {}", field.empty() ? "body" : field, reason));
}

Status Expected(const Place& place, dom::element value, std::string_view what) {
  return Refuse(place, fmt::format("{}, expected {}", Describe(value), what));
}

std::optional<double> AsNumber(dom::element value) {
  double number = 0;
  switch (value.type()) {
    case element_type::INT64:
    case element_type::UINT64:
    case element_type::DOUBLE:
      if (value.get(number) != simdjson::SUCCESS || !std::isfinite(number)) return std::nullopt;
      return number;
    default:
      return std::nullopt;
  }
}

Result<dom::object> JsonParser::ParseObject(std::string_view body) {
  const Place root;
  if (body.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return Refuse(root, "is empty, expected a JSON object");
  }
  simdjson::error_code error = simdjson::SUCCESS;
  if (parser_.max_depth() != kMaxJsonDepth) error = parser_.allocate(body.size(), kMaxJsonDepth);
  dom::element value;
  if (error == simdjson::SUCCESS) {
    error = parser_.parse(body.data(), body.size(), true).get(value);
  }
  if (error == simdjson::MEMALLOC) throw std::bad_alloc();  // the server's fault: 503
  if (error != simdjson::SUCCESS) {
    std::string fault = DescribeJsonFault(body, kMaxJsonDepth);
    if (fault.empty()) {
      return Refuse(root, fmt::format("is not valid JSON: {}", simdjson::error_message(error)));
    }
    return Status::InvalidArgument(std::move(fault));
  }
  dom::object object;
  if (value.get(object) != simdjson::SUCCESS) {
    return Expected(root, value, "an object");
  }
  CODBAND_RETURN_IF_ERROR(CheckNamesDiffer(value, root));
  return object;
}

Status Unknown(const Place& place, std::string_view key, std::span<const std::string_view> known) {
  const std::string reason = fmt::format("is unknown, expected one of {}", fmt::join(known, ", "));
  if (key.empty()) return Refuse(place, "the empty name " + reason);
  return Refuse({.parent = &place, .key = key}, reason);
}

Status ReadId(dom::element value, const Place& place, std::string& out) {
  std::string_view text;
  if (value.get(text) != simdjson::SUCCESS) {
    return Expected(place, value, fmt::format("a string of 1 to {} bytes", kMaxIdBytes));
  }
  if (text.empty() || text.size() > kMaxIdBytes) {
    return Refuse(place, fmt::format("has {} bytes, expected 1 to {}", text.size(), kMaxIdBytes));
  }
  out.assign(text);
  return {};
}

Status ReadIds(dom::element value, const Place& place, std::vector<std::string>& out) {
  dom::array array;
  if (value.get(array) != simdjson::SUCCESS) return Expected(place, value, "an array of strings");
  for (const dom::element child : array) {
    const std::size_t index = out.size();
    CODBAND_RETURN_IF_ERROR(ReadId(child, {.parent = &place, .index = index}, out.emplace_back()));
  }
  return {};
}

Status ReadFlag(dom::element value, const Place& place, bool& out) {
  if (value.get(out) != simdjson::SUCCESS) return Expected(place, value, "true or false");
  return {};
}

}  // namespace codband::server
