// One decision as a line of DSJSON.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "codband/base/time.h"
#include "codband/server/api/decision_log.h"

namespace codband::server {
namespace {

using Json = nlohmann::ordered_json;

// Invalid UTF-8 becomes the replacement character: a line is always valid JSON.
std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json ReadableByVw(const Json& json);

Json ObjectForVw(const Json& object) {
  Json out = Json::object();
  for (const auto& [key, value] : object.items()) {
    out[key.starts_with('_') ? "x" + key : key] = ReadableByVw(value);
  }
  return out;
}

// VW reads arrays of numbers and of objects. In others every element becomes a feature: ["a", "b"]
// becomes {"a": true, "b": true}, other elements are named by their index.
Json ArrayForVw(const Json& array) {
  const bool plain = std::ranges::all_of(array, [](const Json& element) {
    return element.is_number() || element.is_null() || element.is_object();
  });
  Json out = plain ? Json::array() : Json::object();
  for (std::size_t i = 0; i < array.size(); ++i) {
    if (plain) {
      out.push_back(ReadableByVw(array[i]));
    } else if (array[i].is_string()) {
      const std::string& word = array[i].get_ref<const std::string&>();
      out[word.starts_with('_') ? "x" + word : word] = true;
    } else {
      out[fmt::format("{}", i)] = ReadableByVw(array[i]);
    }
  }
  return out;
}

Json ReadableByVw(const Json& json) {
  if (json.is_object()) return ObjectForVw(json);
  if (json.is_array()) return ArrayForVw(json);
  return json;
}

std::string Context(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_object() || json.is_array()) return Dump(ReadableByVw(json));
  return Dump({{"text", json.is_string() ? json.get<std::string>() : text}});
}

// The chosen action first, then by decreasing probability; ties in the order of the candidates.
std::vector<std::size_t> ServiceOrder(const engine::FinishedDecision& decision) {
  std::vector<std::size_t> order(decision.candidates.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    if ((a == decision.chosen) != (b == decision.chosen)) return a == decision.chosen;
    return decision.candidates[a].probability > decision.candidates[b].probability;
  });
  return order;
}

}  // namespace

std::string ToDsJson(const engine::FinishedDecision& decision) {
  const std::vector<std::size_t> order = ServiceOrder(decision);
  std::string line;
  const auto add = [out = std::back_inserter(line)](auto format, const auto&... values) {
    fmt::format_to(out, fmt::runtime(format), values...);
  };
  const double chance = decision.candidates.at(decision.chosen).probability;
  // 0 - x, not -x, which would be -0 for a reward of 0.
  const double cost = 0 - decision.reward;
  add(R"({{"_label_cost":{},"_label_probability":{},"_label_Action":{},"_labelIndex":{})", cost,
      chance, decision.chosen + 1, decision.chosen);
  add(R"(,"_original_label_cost":{},"_skipLearn":{},"_defaulted":{})", cost, !decision.learned,
      decision.defaulted);
  add(R"(,"Timestamp":"{}","Version":"1","EventId":{})", FormatRfc3339(decision.time_ms),
      Dump(decision.event_id));
  const char* separator = "";
  for (line += R"(,"a":[)"; const std::size_t i : order) {
    add("{}{}", std::exchange(separator, ","), i + 1);
  }
  separator = "";
  for (line += R"(],"p":[)"; const std::size_t i : order) {
    add("{}{}", std::exchange(separator, ","), decision.candidates[i].probability);
  }
  add(R"(],"c":{{"User":{{"id":{}}})", Dump(decision.user));
  if (!decision.context.empty()) add(R"(,"Context":{})", Context(decision.context));
  if (!decision.user_context.empty()) {
    add(R"(,"UserFeatures":{})", Context(decision.user_context));
  }
  separator = "";
  line += R"(,"_multi":[)";
  for (const engine::FinishedDecision::Candidate& candidate : decision.candidates) {
    add(R"({}{{"_tag":{},"Features":{{)", std::exchange(separator, ","), Dump(candidate.id));
    const char* comma = "";
    for (std::size_t f = 0; f < candidate.features.size(); ++f) {
      if (candidate.features[f] == 0 || !std::isfinite(candidate.features[f])) continue;
      add(R"({}"f{}":{})", std::exchange(comma, ","), f, candidate.features[f]);
    }
    for (const features::NamedFeature& feature : candidate.named) {
      if (feature.value == 0) continue;
      const bool command = feature.name.starts_with('_');  // to VW
      add(R"({}{}:{})", std::exchange(comma, ","), Dump((command ? "x" : "") + feature.name),
          feature.value);
    }
    line += "}}";
  }
  add(R"(]}},"pdrop":0,"VWState":{{"m":{}}}}})", Dump(decision.policy));
  return line;
}

}  // namespace codband::server
