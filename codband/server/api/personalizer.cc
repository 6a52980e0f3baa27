// The routes of Azure Personalizer, with its paths, status codes and bodies.
#include <algorithm>

#include "codband/server/api/api.h"
#include "codband/server/api/api_error.h"
#include "codband/server/api/personalizer_json.h"
#include "codband/server/api/request_json.h"

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

// The request for one slot: the baseline first, without the actions of the slots before.
engine::RankRequest SlotRequest(const MultiSlotRequest& request, const MultiSlotRequest::Slot& slot,
                                const std::vector<std::pair<std::string, std::string>>& taken,
                                bool by_name) {
  engine::RankRequest rank = request.shared;
  rank.event_id = SlotEvent(request.shared.event_id, slot.id);
  rank.excluded.insert(rank.excluded.end(), slot.excluded.begin(), slot.excluded.end());
  for (const auto& [id, action] : taken) rank.excluded.push_back(action);
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

// One slot after another, so that no action is shown twice. A request that fails in between can be
// repeated: the slots before get the same actions again.
Awaitable<void> Api::MultiSlotRank(Call& call) {
  Result<MultiSlotRequest> parsed =
      ParseMultiSlot(ParserOf(call), call.body, engine_.dim(), options_.user_from);
  if (!parsed.ok()) co_return SetApiError(call.reply, parsed.status());
  MultiSlotRequest& request = parsed.value();
  if (request.shared.event_id.empty()) request.shared.event_id = engine_.NewEventId();
  std::vector<std::pair<std::string, std::string>> taken;
  for (const MultiSlotRequest::Slot& slot : request.slots) {
    std::string action;
    Pending<Status> durable(call.worker);
    engine_.Rank(
        SlotRequest(request, slot, taken, engine_.dim() == 0),
        [&action](const engine::RankReply& ranked) { action = ranked.reward_action_id; },
        [&durable](Status status) { durable.Finish(std::move(status)); });
    co_await durable.Wait();
    const Status status = durable.Take();
    if (!status.ok()) co_return SetApiError(call.reply, status);
    taken.emplace_back(slot.id, std::move(action));
  }
  call.reply.status = 201;
  AppendMultiSlot(call.reply.body, request.shared.event_id, taken);
}

Awaitable<void> Api::MultiSlotReward(Call& call) {
  const Result<std::string> id = DecodeId(call.match.raw_id);
  if (!id.ok()) co_return SetApiError(call.reply, id.status());
  const Result<std::vector<SlotReward>> rewards = ParseSlotRewards(ParserOf(call), call.body);
  if (!rewards.ok()) co_return SetApiError(call.reply, rewards.status());
  std::optional<HttpError> first;
  for (const SlotReward& reward : rewards.value()) {
    auto error =
        RewardError(co_await AwaitReward(call, SlotEvent(id.value(), reward.slot), reward.value));
    if (!first) first = std::move(error);
  }
  if (first) co_return SetApiError(call.reply, *first);
  call.reply.status = 204;
}

Awaitable<void> Api::MultiSlotActivate(Call& call) {
  const Result<std::string> id = DecodeId(call.match.raw_id);
  if (!id.ok()) co_return SetApiError(call.reply, id.status());
  const Result<std::vector<std::string>> events = engine_.FindEvents(SlotEventPrefix(id.value()));
  if (!events.ok()) co_return SetApiError(call.reply, events.status());
  if (events.value().empty()) co_return SetApiError(call.reply, NoSuchEventError());
  for (const std::string& event : events.value()) {
    Pending<Status> durable(call.worker);
    engine_.Activate(event, [&durable](Status status) { durable.Finish(std::move(status)); });
    co_await durable.Wait();
    const Status status = durable.Take();
    if (!status.ok()) co_return SetApiError(call.reply, status);
  }
  call.reply.status = 204;
}

}  // namespace codband::server
