// The routes of Azure Personalizer, with its paths, status codes and bodies.
#include <fmt/format.h>

#include <algorithm>

#include "codband/base/string_hash.h"
#include "codband/server/api/api.h"
#include "codband/server/api/api_error.h"
#include "codband/server/api/personalizer_json.h"
#include "codband/server/api/request_json.h"
#include "codband/server/api/slot_assignment.h"

namespace codband::server {
namespace {

HttpError NoSuchEventError() {
  return {
      .status = 404, .code = "NotFound", .field = "eventId", .message = "there is no such event"};
}

// What a reward came to: nothing if it counts, now or before.
std::optional<HttpError> RewardError(const Result<engine::RewardReply>& result) {
  if (!result.ok()) return ToHttpError(result.status());
  switch (result.value().outcome) {
    case engine::RewardOutcome::kLate:
      return HttpError{.status = 410,
                       .code = "Late",
                       .field = "eventId",
                       .message = "the event's wait for a reward is over; nothing is changed"};
    case engine::RewardOutcome::kUnknown:
      return NoSuchEventError();
    default:
      return std::nullopt;
  }
}

// For each slot the actions that it may show.
SlotAssignment AssignmentOf(const MultiSlotRequest& request) {
  const StringViewSet nowhere(request.shared.excluded.begin(), request.shared.excluded.end());
  const std::vector<engine::Candidate>& actions = request.shared.candidates;
  std::vector<std::vector<std::uint32_t>> allowed;
  for (const MultiSlotRequest::Slot& slot : request.slots) {
    const StringViewSet excluded(slot.excluded.begin(), slot.excluded.end());
    std::vector<std::uint32_t>& mine = allowed.emplace_back();
    for (std::uint32_t i = 0; i < actions.size(); ++i) {
      if (!nowhere.contains(actions[i].id) && !excluded.contains(actions[i].id)) mine.push_back(i);
    }
  }
  return {std::move(allowed), actions.size()};
}

// The context with that of the slot, as JSON.
std::string ContextWith(std::string_view context, std::string_view slot) {
  if (context.starts_with('[')) context = context.substr(1, context.size() - 2);
  return fmt::format("[{}{}{}]", context, context.empty() ? "" : ",", slot);
}

// The request for one slot: the baseline first, without the actions of the slots before and those
// that it must leave to the slots after it. It is deferred until all slots have theirs.
engine::RankRequest SlotRequest(const MultiSlotRequest& request, const MultiSlotRequest::Slot& slot,
                                const std::vector<std::pair<std::string, std::string>>& taken,
                                const std::vector<std::uint32_t>& reserved, bool by_name) {
  engine::RankRequest rank = request.shared;
  rank.event_id = SlotEvent(request.shared.event_id, slot.id);
  rank.defer_activation = true;
  rank.context = ContextWith(rank.context, slot.context);
  rank.excluded.insert(rank.excluded.end(), slot.excluded.begin(), slot.excluded.end());
  for (const auto& [id, action] : taken) rank.excluded.push_back(action);
  for (const std::uint32_t action : reserved) {
    rank.excluded.push_back(request.shared.candidates[action].id);
  }
  std::ranges::stable_partition(rank.candidates, [&](const engine::Candidate& candidate) {
    return candidate.id == slot.baseline;
  });
  if (by_name) {
    rank.context_features.insert(rank.context_features.end(), slot.features.begin(),
                                 slot.features.end());
  }
  return rank;
}

}  // namespace

Awaitable<Result<engine::RewardReply>> Api::AwaitReward(Call& call, std::string event_id,
                                                        double value) {
  Pending<Result<engine::RewardReply>> durable(call.worker);
  engine_.Reward(std::move(event_id), value, [&durable](Result<engine::RewardReply> result) {
    durable.Finish(std::move(result));
  });
  co_await durable.Wait();
  co_return durable.Take();
}

Awaitable<void> Api::PersonalizerRank(Call& call) {
  Result<engine::RankRequest> request =
      ParsePersonalizerRank(ParserOf(call), call.body, engine_.dim(), options_.user_from);
  if (!request.ok()) co_return SetApiError(call.reply, request.status());
  Pending<Status> durable(call.worker);
  engine_.Rank(
      std::move(request).value(),
      [&call](const engine::RankReply& ranked) { AppendPersonalizerRank(call.reply.body, ranked); },
      [&durable](Status status) { durable.Finish(std::move(status)); });
  co_await durable.Wait();
  const Status status = durable.Take();
  if (!status.ok()) co_return SetApiError(call.reply, status);
  call.reply.status = 201;
}

Awaitable<void> Api::PersonalizerReward(Call& call) {
  const Result<std::string> id = DecodeId(call.match.raw_id);
  if (!id.ok()) co_return SetApiError(call.reply, id.status());
  const Result<double> value = ParseReward(ParserOf(call), call.body);
  if (!value.ok()) co_return SetApiError(call.reply, value.status());
  const auto error = RewardError(co_await AwaitReward(call, id.value(), value.value()));
  if (error) co_return SetApiError(call.reply, *error);
  call.reply.status = 204;
}

// One slot after another, so that no action is shown twice. Nothing waits for a reward before all
// slots have their actions: a request that fails in between leaves nothing to be learned, and can
// be repeated: the slots before get the same actions again.
Awaitable<void> Api::MultiSlotRank(Call& call) {
  Result<MultiSlotRequest> parsed = ParseMultiSlot(ParserOf(call), call.body, engine_.dim(),
                                                   options_.user_from, engine_.NewEventId());
  if (!parsed.ok()) co_return SetApiError(call.reply, parsed.status());
  const MultiSlotRequest& request = parsed.value();
  SlotAssignment assignment = AssignmentOf(request);
  if (assignment.stuck()) {
    co_return SetApiError(
        call.reply, Status::InvalidArgument(fmt::format(
                        "slots[{}].excludedActions: leaves no action for the slot '{}' that no "
                        "other slot needs; expected actions enough to give every slot its own",
                        *assignment.stuck(), request.slots[*assignment.stuck()].id)));
  }
  std::vector<std::pair<std::string, std::string>> taken;
  for (std::size_t i = 0; i < request.slots.size(); ++i) {
    const MultiSlotRequest::Slot& slot = request.slots[i];
    std::string action;
    Pending<Status> durable(call.worker);
    engine_.Rank(
        SlotRequest(request, slot, taken, assignment.ReservedFrom(i), engine_.dim() == 0),
        [&action](const engine::RankReply& ranked) { action = ranked.reward_action_id; },
        [&durable](Status status) { durable.Finish(std::move(status)); });
    co_await durable.Wait();
    const Status status = durable.Take();
    if (!status.ok()) co_return SetApiError(call.reply, status);
    const auto chosen =
        std::ranges::find(request.shared.candidates, action, &engine::Candidate::id);
    assignment.Take(i, static_cast<std::uint32_t>(chosen - request.shared.candidates.begin()));
    taken.emplace_back(slot.id, std::move(action));
  }
  if (!request.shared.defer_activation) {
    std::vector<std::string> events;
    for (const MultiSlotRequest::Slot& slot : request.slots) {
      events.push_back(SlotEvent(request.shared.event_id, slot.id));
    }
    const Status status = co_await ActivateAll(call, std::move(events));
    if (!status.ok()) co_return SetApiError(call.reply, status);
  }
  call.reply.status = 201;
  AppendMultiSlot(call.reply.body, request.shared.event_id, taken);
}

// All rewards count or, if one of them is wrong, none.
Awaitable<void> Api::MultiSlotReward(Call& call) {
  const Result<std::string> id = DecodeId(call.match.raw_id);
  if (!id.ok()) co_return SetApiError(call.reply, id.status());
  const Result<std::vector<SlotReward>> rewards = ParseSlotRewards(ParserOf(call), call.body);
  if (!rewards.ok()) co_return SetApiError(call.reply, rewards.status());
  const Result<std::vector<std::string>> events =
      engine_.FindEvents(SlotEventPrefix(id.value()), kMostSlots);
  if (!events.ok()) co_return SetApiError(call.reply, events.status());
  for (const SlotReward& reward : rewards.value()) {
    const Status status = engine_.CheckReward(reward.value);
    if (!status.ok()) co_return SetApiError(call.reply, status);
    if (std::ranges::count(events.value(), SlotEvent(id.value(), reward.slot)) == 0) {
      co_return SetApiError(call.reply, NoSuchEventError());
    }
  }
  std::optional<HttpError> first;
  for (const SlotReward& reward : rewards.value()) {
    auto error =
        RewardError(co_await AwaitReward(call, SlotEvent(id.value(), reward.slot), reward.value));
    if (!first) first = std::move(error);
  }
  if (first) co_return SetApiError(call.reply, *first);
  call.reply.status = 204;
}

Awaitable<Status> Api::ActivateAll(Call& call, std::vector<std::string> events) {
  for (std::string& event : events) {
    Pending<Status> durable(call.worker);
    engine_.Activate(std::move(event),
                     [&durable](Status status) { durable.Finish(std::move(status)); });
    co_await durable.Wait();
    Status status = durable.Take();
    if (!status.ok()) co_return status;
  }
  co_return Status();
}

Awaitable<void> Api::MultiSlotActivate(Call& call) {
  const Result<std::string> id = DecodeId(call.match.raw_id);
  if (!id.ok()) co_return SetApiError(call.reply, id.status());
  const Result<std::vector<std::string>> events =
      engine_.FindEvents(SlotEventPrefix(id.value()), kMostSlots);
  if (!events.ok()) co_return SetApiError(call.reply, events.status());
  if (events.value().empty()) co_return SetApiError(call.reply, NoSuchEventError());
  const Status status = co_await ActivateAll(call, events.value());
  if (!status.ok()) co_return SetApiError(call.reply, status);
  call.reply.status = 204;
}

}  // namespace codband::server
