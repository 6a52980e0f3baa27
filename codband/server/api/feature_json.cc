#include "codband/server/api/feature_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "codband/engine/catalogue.h"
#include "codband/features/column_space.h"
#include "codband/server/api/request_json.h"

namespace codband::server {
namespace {

using dom::element_type;
using features::NamedFeature;

// Flattens a tree of named features into a list of dotted names.
class NamedReader {
 public:
  enum class Style {
    kHashed,  // as data directories with a fixed number of features have it
    kByName,  // every name has a column
  };
  NamedReader(std::vector<NamedFeature>& out, Style style, std::string_view left_out = {})
      : out_(out), style_(style), left_out_(left_out) {}

  Status Read(dom::object object, const Place& place, const std::string& prefix) {
    for (const dom::key_value_pair member : object) {
      if (member.key.empty()) return Refuse(place, "has a feature with an empty name");
      if (prefix.empty() && style_ == Style::kByName && member.key.starts_with('[')) {
        return Refuse(place, fmt::format("has the feature '{:.200}'; names that begin with '[' are "
                                         "those of arrays of numbers without a name",
                                         member.key));
      }
      const Place here{.parent = &place, .key = member.key};
      std::string name = prefix;
      name.append(member.key);
      CODBAND_RETURN_IF_ERROR(ReadValue(member.value, here, std::move(name)));
    }
    return {};
  }

  // An object, or an array of objects.
  Status ReadObjects(dom::element value, const Place& place) {
    dom::object object;
    dom::array array;
    if (value.get(object) == simdjson::SUCCESS) {
      CODBAND_RETURN_IF_ERROR(Read(object, place, ""));
    } else if (value.get(array) == simdjson::SUCCESS) {
      std::size_t index = 0;
      for (const dom::element part : array) {
        const Place here{.parent = &place, .index = index++};
        if (part.get(object) != simdjson::SUCCESS) return Expected(here, part, "an object");
        CODBAND_RETURN_IF_ERROR(Read(object, here, ""));
      }
    } else {
      return Expected(place, value, "an object of named features or an array of such objects");
    }
    return CheckFeaturesDiffer(place, out_);
  }

 private:
  Status ReadValue(dom::element value, const Place& place, std::string name) {
    if (!left_out_.empty() && name == left_out_) return {};
    switch (value.type()) {
      case element_type::OBJECT:
        return Read(dom::object(value), place, name + '.');
      case element_type::STRING:
        return Add(place, name + '=' + std::string(std::string_view(value)), 1);
      case element_type::BOOL:
        if (style_ == Style::kByName)
          return Add(place, name + (bool(value) ? "=true" : "=false"), 1);
        return bool(value) ? Add(place, std::move(name), 1) : Status();
      case element_type::ARRAY:
        return ReadArray(dom::array(value), place, name);
      default: {
        const std::optional<double> number = AsNumber(value);
        if (!number) {
          return Expected(
              place, value,
              style_ == Style::kByName
                  ? "a number, a string, true, false, an object, or an array of "
                    "strings or of numbers"
                  : "a number, a string, true, false, an object or an array of strings");
        }
        return Add(place, std::move(name), *number);
      }
    }
  }

  // Words, or, where every name has a column, numbers.
  Status ReadArray(dom::array array, const Place& place, const std::string& name) {
    std::size_t index = 0;
    const bool numbers = style_ == Style::kByName && array.begin() != array.end() &&
                         (*array.begin()).type() != element_type::STRING;
    for (const dom::element element : array) {
      const Place here{.parent = &place, .index = index};
      if (numbers) {
        const std::optional<double> number = AsNumber(element);
        if (!number) return Expected(here, element, "a number, as all others of this array");
        CODBAND_RETURN_IF_ERROR(Add(here, features::PlaceName(name, index), *number));
      } else {
        if (element.type() != element_type::STRING) return Expected(here, element, "a string");
        CODBAND_RETURN_IF_ERROR(Add(here, name + '=' + std::string(std::string_view(element)), 1));
      }
      ++index;
    }
    return {};
  }

  Status Add(const Place& place, std::string name, double value) {
    if (name.size() > kMaxNameBytes) {
      return Refuse(place, fmt::format("gives a name of {} bytes, expected at most {}", name.size(),
                                       kMaxNameBytes));
    }
    if (style_ == Style::kByName && out_.size() >= engine::kMaxNamedFeatures) {
      return Refuse(place, fmt::format("is one feature too many, expected at most {}",
                                       engine::kMaxNamedFeatures));
    }
    out_.push_back({.name = std::move(name), .value = value});
    return {};
  }

  std::vector<NamedFeature>& out_;
  const Style style_;
  const std::string_view left_out_;
};

Status ReadNumbers(dom::array array, const Place& place, std::size_t dim,
                   std::vector<double>& features) {
  const std::size_t most = dim == 0 ? engine::kMaxNamedFeatures : dim;
  // array.size() saturates at 2^24 - 1.
  std::size_t count = 0;
  for (const dom::element value : array) {
    const std::optional<double> number = AsNumber(value);
    if (!number) return Expected({.parent = &place, .index = count}, value, "a number");
    if (count++ < most) features.push_back(*number);
  }
  if (dim != 0 && count != dim) {
    return Refuse(place, fmt::format("has {} numbers, expected {}", count, dim));
  }
  if (count > most) {
    return Refuse(place, fmt::format("has {} numbers, expected at most {}", count, most));
  }
  return {};
}

}  // namespace

Status CheckFeaturesDiffer(const Place& place, const std::vector<NamedFeature>& named) {
  std::vector<std::string_view> names;
  names.reserve(named.size());
  for (const NamedFeature& feature : named) names.push_back(feature.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return {};
  return Refuse(place, fmt::format("has the feature '{:.200}' twice", *twice));
}

Status ReadFeatures(dom::element value, const Place& place, std::size_t dim,
                    std::vector<double>& features, std::vector<NamedFeature>& named) {
  dom::array array;
  const bool is_array = value.get(array) == simdjson::SUCCESS;
  if (!is_array && value.type() != element_type::OBJECT) {
    return Expected(place, value,
                    dim == 0 ? "numbers or an object of named features"
                             : fmt::format("{} numbers or an object of named features", dim));
  }
  const bool empty = is_array && array.begin() == array.end();
  const bool numbers = is_array && !empty && (*array.begin()).type() != element_type::OBJECT;
  // Clients of Personalizer send [] where there are no features.
  if (empty && dim == 0) return {};
  if (numbers || empty) {
    features.reserve(dim);
    return ReadNumbers(array, place, dim, features);
  }
  using Style = NamedReader::Style;
  NamedReader reader(named, dim == 0 ? Style::kByName : Style::kHashed);
  CODBAND_RETURN_IF_ERROR(reader.ReadObjects(value, place));
  if (dim == 0) return {};
  features.assign(dim, 0.0);
  features::HashFeatures(named, features);
  if (!std::all_of(features.begin(), features.end(), [](double x) { return std::isfinite(x); })) {
    return Refuse(place, "overflows: the hashed sum is not finite");
  }
  return {};
}

Status ReadContext(dom::element value, const Place& place, std::string_view user_from,
                   std::vector<NamedFeature>& named) {
  return NamedReader(named, NamedReader::Style::kByName, user_from).ReadObjects(value, place);
}

Status ReadUserFrom(dom::element context, const Place& place, std::string_view path,
                    std::string& user) {
  if (path.empty()) return {};
  if (context.type() == element_type::ARRAY) {
    for (const dom::element part : dom::array(context)) {
      if (user.empty()) CODBAND_RETURN_IF_ERROR(ReadUserFrom(part, place, path, user));
    }
    return {};
  }
  dom::object object;
  if (context.get(object) != simdjson::SUCCESS) return {};
  // A name may have dots itself: try every split.
  for (std::size_t dot = path.find('.');; dot = path.find('.', dot + 1)) {
    const std::size_t end = std::min(dot, path.size());
    dom::element value;
    if (object.at_key(path.substr(0, end)).get(value) == simdjson::SUCCESS) {
      const Place here{.parent = &place, .key = path.substr(0, end)};
      if (end < path.size()) {
        CODBAND_RETURN_IF_ERROR(ReadUserFrom(value, here, path.substr(end + 1), user));
      } else if (value.type() == element_type::STRING) {
        return ReadId(value, here, user);
      } else if (AsNumber(value)) {
        user = simdjson::minify(value);
      } else {
        return Expected(here, value, "the id of a user: a string or a number");
      }
    }
    if (!user.empty() || dot == std::string_view::npos) return {};
  }
}

}  // namespace codband::server
