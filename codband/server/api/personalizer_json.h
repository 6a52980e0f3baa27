#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codband/base/status.h"
#include "codband/engine/engine.h"
#include "codband/server/api/json_value.h"

namespace codband::server {

// The requests and replies of Azure Personalizer that differ from those of /v1. Fields that are
// null count as missing, as its clients send them.

// A rank request. What has no meaning here (none today) is refused as in ParseRank.
Result<engine::RankRequest> ParsePersonalizerRank(JsonParser& parser, std::string_view body,
                                                  std::size_t dim, std::string_view user_from);
// {"ranking": [{"id", "probability"}], "eventId", "rewardActionId"}
void AppendPersonalizerRank(std::string& out, const engine::RankReply& reply);

// Several slots of one page, each of which gets an action of its own.
struct MultiSlotRequest {
  struct Slot {
    std::string id;
    std::string baseline = {};                          // the action that it would show anyway
    std::vector<features::NamedFeature> features = {};  // names begin with "slot."
    std::string context = {};                           // the same as JSON objects: {...},{...}
    std::vector<std::string> excluded = {};
  };
  engine::RankRequest shared;  // event, user, context and all actions
  std::vector<Slot> slots;
};
inline constexpr std::size_t kMostSlots = 50;
// Slots times actions: each slot ranks them all.
inline constexpr std::size_t kMostSlotActions = 50'000;
// Every slot is a context of its own: its id and its features join those of the request. An event
// without an id gets `new_event_id`.
Result<MultiSlotRequest> ParseMultiSlot(JsonParser& parser, std::string_view body, std::size_t dim,
                                        std::string_view user_from, std::string new_event_id);
// {"slots": [{"id", "rewardActionId"}], "eventId"}; slots and their actions.
void AppendMultiSlot(std::string& out, std::string_view event_id,
                     const std::vector<std::pair<std::string, std::string>>& slots);

// {"reward": [{"slotId", "value"}]}
struct SlotReward {
  std::string slot;
  double value = 0;
};
Result<std::vector<SlotReward>> ParseSlotRewards(JsonParser& parser, std::string_view body);

// The event of a slot as the engine knows it, and what all events of one request begin with.
std::string SlotEvent(std::string_view event_id, std::string_view slot);
std::string SlotEventPrefix(std::string_view event_id);

}  // namespace codband::server
