#include "codband/server/api/personalizer_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "codband/base/string_hash.h"
#include "codband/server/api/feature_json.h"
#include "codband/server/api/json_writer.h"
#include "codband/server/api/request_json.h"

namespace codband::server {
namespace {

using dom::element_type;
using Slot = MultiSlotRequest::Slot;

constexpr std::array<std::string_view, 4> kSlotFields = {"id", "features", "excludedActions",
                                                         "baselineAction"};
constexpr std::array<std::string_view, 2> kSlotRewardFields = {"slotId", "value"};
constexpr std::array<std::string_view, 1> kSlotRewardsFields = {"reward"};

bool IsNull(dom::element value) { return value.type() == element_type::NULL_VALUE; }

// The object as text without members that are null and without `left_out`.
std::string Without(dom::object object, std::string_view left_out) {
  std::string text = "{";
  for (const dom::key_value_pair member : object) {
    if (IsNull(member.value) || member.key == left_out) continue;
    if (text.size() > 1) text += ',';
    AppendJsonString(text, member.key);
    text += ':';
    text += simdjson::minify(member.value);
  }
  return text + '}';
}

void AppendSlotContext(dom::element part, std::string& context) {
  if (!context.empty()) context += ',';
  context += R"({"slot":)" + simdjson::minify(part) + '}';
}

Status ReadSlot(dom::element value, const Place& place, Slot& slot) {
  dom::object object;
  if (value.get(object) != simdjson::SUCCESS) return Expected(place, value, "an object");
  for (const dom::key_value_pair member : object) {
    const Place here{.parent = &place, .key = member.key};
    if (IsNull(member.value)) continue;
    if (member.key == "id") {
      CODBAND_RETURN_IF_ERROR(ReadId(member.value, here, slot.id));
    } else if (member.key == "baselineAction") {
      CODBAND_RETURN_IF_ERROR(ReadId(member.value, here, slot.baseline));
    } else if (member.key == "excludedActions") {
      CODBAND_RETURN_IF_ERROR(ReadIds(member.value, here, slot.excluded));
    } else if (member.key == "features") {
      CODBAND_RETURN_IF_ERROR(ReadContext(member.value, here, {}, slot.features));
      dom::array parts;
      if (member.value.get(parts) != simdjson::SUCCESS) {
        AppendSlotContext(member.value, slot.context);
      } else {
        for (const dom::element part : parts) AppendSlotContext(part, slot.context);
      }
    } else {
      return Unknown(place, member.key, kSlotFields);
    }
  }
  if (slot.id.empty()) return Refuse({.parent = &place, .key = "id"}, "is missing");
  for (features::NamedFeature& feature : slot.features) feature.name.insert(0, "slot.");
  slot.features.push_back({.name = "slot=" + slot.id, .value = 1});
  if (!slot.context.empty()) slot.context += ',';
  slot.context += R"({"slot":)";
  AppendJsonString(slot.context, slot.id);
  slot.context += '}';
  return {};
}

// Each slot once, with a baseline that is an action which it may show.
Status CheckSlots(const MultiSlotRequest& request, const Place& place) {
  StringViewSet actions;
  for (const engine::Candidate& action : request.shared.candidates) actions.insert(action.id);
  StringViewSet ids;
  for (std::size_t i = 0; i < request.slots.size(); ++i) {
    const Slot& slot = request.slots[i];
    const Place here{.parent = &place, .index = i};
    if (!ids.insert(slot.id).second) {
      return Refuse({.parent = &here, .key = "id"},
                    fmt::format("is '{}', as that of another slot; expected another", slot.id));
    }
    const Place baseline{.parent = &here, .key = "baselineAction"};
    if (slot.baseline.empty()) return Refuse(baseline, "is missing");
    if (!actions.contains(slot.baseline)) {
      return Refuse(baseline, fmt::format("is '{}', expected one of the actions", slot.baseline));
    }
    if (std::ranges::count(slot.excluded, slot.baseline) > 0) {
      return Refuse(baseline, "is one of the excludedActions");
    }
    const std::string event = SlotEvent(request.shared.event_id, slot.id);
    if (event.size() > kMaxIdBytes) {
      return Refuse({.parent = &here, .key = "id"},
                    fmt::format("and the eventId have too many bytes together ({}), expected at "
                                "most {}",
                                event.size(), kMaxIdBytes));
    }
  }
  return {};
}

}  // namespace

Result<engine::RankRequest> ParsePersonalizerRank(JsonParser& parser, std::string_view body,
                                                  std::size_t dim, std::string_view user_from) {
  const Result<dom::object> object = parser.ParseObject(body);
  if (!object.ok()) return object.status();
  const std::string rest = Without(object.value(), {});
  auto request = ParseRank(parser, rest, dim, user_from);
  if (request.ok() && request.value().candidates.empty()) {
    return Status::InvalidArgument("actions: is missing");
  }
  return request;
}

void AppendPersonalizerRank(std::string& out, const engine::RankReply& reply) {
  out += R"({"ranking":[)";
  for (const engine::RankedItem& item : reply.ranking) {
    if (out.back() != '[') out += ',';
    out += R"({"id":)";
    AppendJsonString(out, item.id);
    out += R"(,"probability":)";
    AppendJsonNumber(out, item.probability);
    out += '}';
  }
  out += R"(],"eventId":)";
  AppendJsonString(out, reply.event_id);
  out += R"(,"rewardActionId":)";
  AppendJsonString(out, reply.reward_action_id);
  out += '}';
}

Result<MultiSlotRequest> ParseMultiSlot(JsonParser& parser, std::string_view body, std::size_t dim,
                                        std::string_view user_from, std::string new_event_id) {
  const Result<dom::object> object = parser.ParseObject(body);
  if (!object.ok()) return object.status();
  const Place root;
  const Place place{.parent = &root, .key = "slots"};
  MultiSlotRequest request;
  dom::array slots;
  dom::element value;
  if (object.value().at_key("slots").get(value) != simdjson::SUCCESS) {
    return Refuse(place, "is missing");
  }
  if (value.get(slots) != simdjson::SUCCESS) return Expected(place, value, "an array");
  for (const dom::element slot : slots) {
    const Place here{.parent = &place, .index = request.slots.size()};
    CODBAND_RETURN_IF_ERROR(ReadSlot(slot, here, request.slots.emplace_back()));
  }
  if (request.slots.empty()) return Refuse(place, "is empty, expected at least one slot");
  // The rest is that of one rank; parsing it ends what the parser holds of the whole.
  const std::string rest = Without(object.value(), "slots");
  auto shared = ParsePersonalizerRank(parser, rest, dim, user_from);
  if (!shared.ok()) return shared.status();
  request.shared = std::move(shared).value();
  if (request.shared.event_id.empty()) request.shared.event_id = std::move(new_event_id);
  if (request.slots.size() > kMostSlots) {
    return Refuse(place,
                  fmt::format("are {}, expected at most {}", request.slots.size(), kMostSlots));
  }
  if (request.slots.size() > request.shared.candidates.size()) {
    return Refuse(place, fmt::format("are {}, expected at most as many as actions ({})",
                                     request.slots.size(), request.shared.candidates.size()));
  }
  if (request.slots.size() * request.shared.candidates.size() > kMostSlotActions) {
    return Refuse(place,
                  fmt::format("are {}, expected at most {} with {} actions", request.slots.size(),
                              kMostSlotActions / request.shared.candidates.size(),
                              request.shared.candidates.size()));
  }
  CODBAND_RETURN_IF_ERROR(CheckSlots(request, place));
  return request;
}

void AppendMultiSlot(std::string& out, std::string_view event_id,
                     const std::vector<std::pair<std::string, std::string>>& slots) {
  out += R"({"slots":[)";
  for (const auto& [id, action] : slots) {
    if (out.back() != '[') out += ',';
    out += R"({"id":)";
    AppendJsonString(out, id);
    out += R"(,"rewardActionId":)";
    AppendJsonString(out, action);
    out += '}';
  }
  out += R"(],"eventId":)";
  AppendJsonString(out, event_id);
  out += '}';
}

Result<std::vector<SlotReward>> ParseSlotRewards(JsonParser& parser, std::string_view body) {
  const Result<dom::object> object = parser.ParseObject(body);
  if (!object.ok()) return object.status();
  const Place root;
  const Place place{.parent = &root, .key = "reward"};
  std::vector<SlotReward> rewards;
  for (const auto [key, value] : object.value()) {
    if (key != "reward") return Unknown(root, key, kSlotRewardsFields);
    dom::array array;
    if (value.get(array) != simdjson::SUCCESS) return Expected(place, value, "an array");
    for (const dom::element element : array) {
      const Place here{.parent = &place, .index = rewards.size()};
      SlotReward& reward = rewards.emplace_back();
      dom::object members;
      if (element.get(members) != simdjson::SUCCESS) return Expected(here, element, "an object");
      std::optional<double> number;
      for (const dom::key_value_pair member : members) {
        const Place field{.parent = &here, .key = member.key};
        if (member.key == "slotId") {
          CODBAND_RETURN_IF_ERROR(ReadId(member.value, field, reward.slot));
        } else if (member.key == "value") {
          number = AsNumber(member.value);
          if (!number) return Expected(field, member.value, "a number");
        } else {
          return Unknown(here, member.key, kSlotRewardFields);
        }
      }
      if (reward.slot.empty()) return Refuse({.parent = &here, .key = "slotId"}, "is missing");
      if (!number) return Refuse({.parent = &here, .key = "value"}, "is missing");
      reward.value = *number;
      if (std::ranges::count(rewards, reward.slot, &SlotReward::slot) > 1) {
        return Refuse(
            {.parent = &here, .key = "slotId"},
            fmt::format("is '{}', as that of another reward; expected another", reward.slot));
      }
      if (rewards.size() > kMostSlots) {
        return Refuse(place, fmt::format("has more than {} rewards", kMostSlots));
      }
    }
  }
  if (rewards.empty()) return Refuse(place, "is missing");
  return rewards;
}

// The length makes it unambiguous, whatever the two ids are.
std::string SlotEventPrefix(std::string_view event_id) {
  return fmt::format("multislot:{}:{}:", event_id.size(), event_id);
}
std::string SlotEvent(std::string_view event_id, std::string_view slot) {
  return SlotEventPrefix(event_id).append(slot);
}

}  // namespace codband::server
