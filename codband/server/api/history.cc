// POST /v1/history: what happened before is learned as if each event had offered its item alone.
#include <memory>
#include <utility>

#include "codband/server/api/api.h"
#include "codband/server/api/api_error.h"
#include "codband/server/api/history_json.h"

namespace codband::server {
namespace {

// So many events are on their way at a time: they share commits, and stay far below the queue's
// end.
constexpr std::size_t kHistoryAtOnce = 256;

// Whether the fault is that of the event alone; others end the request, which may be repeated.
bool IsOfTheEvent(const Status& status) {
  return status.code() == StatusCode::kInvalidArgument || status.code() == StatusCode::kNotFound ||
         status.code() == StatusCode::kRejected || status.code() == StatusCode::kGone;
}

struct HistoryStep {
  explicit HistoryStep(Worker& worker) : ranked(worker), rewarded(worker) {}

  Pending<Status> ranked;
  Pending<Result<engine::RewardReply>> rewarded;
  bool waits = false;  // for its reward
};

// Counts what became of an event's rank. False if the request must end.
bool CountRank(const Status& status, std::size_t index, HistoryOutcome& outcome) {
  if (status.ok()) return true;
  if (status.code() == StatusCode::kConflict) {
    ++outcome.duplicates;  // it has its outcome, or is another event of the same id
  } else if (IsOfTheEvent(status)) {
    outcome.skipped.push_back({index, status.message()});
  } else {
    return false;
  }
  return true;
}

bool CountReward(const Result<engine::RewardReply>& reply, std::size_t index,
                 HistoryOutcome& outcome) {
  if (!reply.ok()) return CountRank(reply.status(), index, outcome);
  if (reply.value().outcome == engine::RewardOutcome::kAccepted) {
    ++outcome.accepted;
  } else if (reply.value().outcome == engine::RewardOutcome::kDuplicate) {
    ++outcome.duplicates;
  } else {
    outcome.skipped.push_back({index, "the event's wait for a reward is over"});
  }
  return true;
}

}  // namespace

Awaitable<Status> Api::LearnHistory(Worker& worker, std::span<HistoryEvent> events,
                                    std::size_t first, HistoryOutcome& outcome) {
  std::vector<std::unique_ptr<HistoryStep>> steps;
  for (std::size_t i = 0; i < events.size(); ++i) {
    steps.push_back(std::make_unique<HistoryStep>(worker));
  }
  Status failure;
  for (std::size_t i = 0; i < events.size(); ++i) {
    engine::RankRequest request{.event_id = events[i].id, .user = events[i].user, .past = true};
    request.candidates.push_back(std::move(events[i].item));
    engine_.Rank(
        std::move(request), [](const engine::RankReply&) {},
        [step = steps[i].get()](Status status) { step->ranked.Finish(std::move(status)); });
    steps[i]->ranked.Started();
  }
  for (std::size_t i = 0; i < events.size(); ++i) {
    co_await steps[i]->ranked.Wait();
    const Status status = steps[i]->ranked.Take();
    steps[i]->waits = status.ok();
    if (!CountRank(status, first + i, outcome)) failure = status;
  }
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (!steps[i]->waits) continue;
    engine_.Reward(events[i].id, events[i].value,
                   [step = steps[i].get()](Result<engine::RewardReply> reply) {
                     step->rewarded.Finish(std::move(reply));
                   });
    steps[i]->rewarded.Started();
  }
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (!steps[i]->waits) continue;
    co_await steps[i]->rewarded.Wait();
    const Result<engine::RewardReply> reply = steps[i]->rewarded.Take();
    if (!CountReward(reply, first + i, outcome)) failure = reply.status();
  }
  co_return failure;
}

Awaitable<void> Api::ImportHistory(Call& call) {
  Result<std::vector<HistoryEvent>> events = ParseHistory(ParserOf(call), call.body, engine_.dim());
  if (!events.ok()) co_return SetApiError(call.reply, events.status());
  const std::span<HistoryEvent> all = events.value();
  HistoryOutcome outcome;
  for (std::size_t first = 0; first < all.size(); first += kHistoryAtOnce) {
    const Status status = co_await LearnHistory(
        call.worker, all.subspan(first, std::min(kHistoryAtOnce, all.size() - first)), first,
        outcome);
    if (!status.ok()) co_return SetApiError(call.reply, status);
  }
  AppendHistoryReply(call.reply.body, outcome);
}

}  // namespace codband::server
