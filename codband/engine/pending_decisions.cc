#include "codband/engine/pending_decisions.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

namespace codband::engine {
namespace {

constexpr std::string_view kForgottenPrefix = "forgotten/";

// If more decisions than this cannot be read it is the disk, and the pass ends.
constexpr std::size_t kMostUnreadable = 100;

std::string ForgottenKey(UserId user) { return std::string(kForgottenPrefix) + NumberKey(user); }

Status NoSuchEvent(const std::string& event_id) {
  return Status::NotFound(fmt::format("eventId: there is no pending decision '{}'", event_id));
}

}  // namespace

Status PendingDecisions::Load() {
  CODBAND_RETURN_IF_ERROR(LoadForgotten());
  std::vector<store::Store::Lost> lost;  // the store tells of it; the other decisions wait
  const auto count = [&](std::string_view, std::string_view value) {
    if (PendingDecision::Waits(value)) ++waiting_;
    return true;
  };
  CODBAND_RETURN_IF_ERROR(store_.ScanPastDamage(store::Table::kPending, count, lost));
  Status damaged;
  const auto note = [&](std::string_view key, std::string_view value) {
    const auto deadline = Deadline::Decode(key, value);
    damaged = deadline.status();
    if (!deadline.ok()) return false;
    next_deadline_ = std::max(next_deadline_, deadline.value().number + 1);
    old_deadlines_end_ = std::max(old_deadlines_end_, deadline.value().time_ms);
    return true;
  };
  CODBAND_RETURN_IF_ERROR(store_.ScanPastDamage(store::Table::kDeadlines, note, lost));
  return damaged;
}

Status PendingDecisions::LoadForgotten() {
  Status damaged;
  const std::string from(kForgottenPrefix);
  const std::string to = from.substr(0, from.size() - 1) + '0';  // the byte after '/'
  CODBAND_RETURN_IF_ERROR(
      store_.Scan(store::Table::kMeta, from, to, [&](std::string_view key, std::string_view value) {
        const auto user = ReadNumberKey(key.substr(from.size()));
        const auto time = ReadNumberKey(value);
        if (!user.ok() || !time.ok()) {
          damaged = Status::Corruption("the list of forgotten users is damaged");
          return false;
        }
        forgotten_[user.value()] = static_cast<std::int64_t>(time.value());
        return true;
      }));
  return damaged;
}

Result<PendingDecision> PendingDecisions::Find(const std::string& event_id,
                                               const CommitGroup& group) const {
  const auto changed = group.pending.decisions.find(event_id);
  if (changed != group.pending.decisions.end()) {
    if (!changed->second) return NoSuchEvent(event_id);
    return PendingDecision::Decode(*changed->second);
  }
  std::string bytes;
  const Status status = store_.Get(store::Table::kPending, event_id, bytes);
  if (status.code() == StatusCode::kNotFound) return NoSuchEvent(event_id);
  if (!status.ok()) return status;
  auto pending = PendingDecision::Decode(bytes);
  if (pending.ok()) return pending;
  return Status::Corruption(fmt::format("decision '{}': {}", event_id, pending.status().message()));
}

bool PendingDecisions::IsForgotten(const PendingDecision& pending, const CommitGroup& group) const {
  const std::optional<UserId> user = pending.user_id();
  if (!user) return false;
  for (const auto* forgotten : {&forgotten_, &group.pending.forgotten}) {
    const auto found = forgotten->find(*user);
    if (found != forgotten->end() && pending.time_ms <= found->second) return true;
  }
  return false;
}

void PendingDecisions::Put(const std::string& event_id, std::string bytes,
                           CommitGroup& group) const {
  group.pending.decisions[event_id] = bytes;
  group.batch.Put(store::Table::kPending, event_id, std::move(bytes));
}

void PendingDecisions::StartWait(const std::string& event_id, std::int64_t until_ms,
                                 CommitGroup& group) {
  Deadline& deadline = group.pending.deadline;
  deadline.time_ms = std::max(deadline.time_ms, until_ms);
  deadline.event_ids.push_back(event_id);
}

void PendingDecisions::Add(std::string event_id, std::string bytes, std::int64_t deadline_ms,
                           CommitGroup& group) const {
  StartWait(event_id, deadline_ms, group);
  ++group.pending.waiting_change;
  // Nobody knows the id before the group is durable, so nothing in the group looks for it.
  group.batch.Put(store::Table::kPending, std::move(event_id), std::move(bytes));
}

void PendingDecisions::AddOrReplace(std::string event_id, std::string bytes,
                                    std::int64_t deadline_ms, bool replaces_waiting,
                                    CommitGroup& group) const {
  StartWait(event_id, deadline_ms, group);
  if (!replaces_waiting) ++group.pending.waiting_change;
  Put(event_id, std::move(bytes), group);
}

void PendingDecisions::Activate(const std::string& event_id, PendingDecision pending,
                                CommitGroup& group) const {
  pending.state = PendingDecision::State::kWaiting;
  pending.deadline_ms = group.now_ms + reward_wait_ms_;
  StartWait(event_id, pending.deadline_ms, group);
  Put(event_id, pending.Encode(), group);
}

void PendingDecisions::MarkRewarded(const std::string& event_id, const PendingDecision& pending,
                                    CommitGroup& group) const {
  const PendingDecision rewarded{.state = PendingDecision::State::kRewarded,
                                 .deadline_ms = pending.deadline_ms};
  Put(event_id, rewarded.Encode(), group);
  --group.pending.waiting_change;
}

void PendingDecisions::EraseIfForgotten(const std::string& event_id, CommitGroup& group) const {
  const auto found = Find(event_id, group);
  if (!found.ok() || !IsForgotten(found.value(), group)) return;
  --group.pending.waiting_change;
  group.batch.Delete(store::Table::kPending, event_id);
  group.pending.decisions[event_id] = std::nullopt;
}

void PendingDecisions::MarkForgotten(UserId user, CommitGroup& group) const {
  group.batch.Put(store::Table::kMeta, ForgottenKey(user),
                  NumberKey(static_cast<std::uint64_t>(group.now_ms)));
  group.pending.forgotten[user] = group.now_ms;
}

PendingDecisions::Expiry PendingDecisions::EndWaits(std::size_t most, CommitGroup& group) const {
  Expiry expiry;
  std::vector<Deadline> due;
  std::size_t events = 0;
  // Room for those that could not be read before: they must not crowd out the others.
  const std::size_t enough = most + kMostUnreadable;
  const Status scanned =
      store_.Scan(store::Table::kDeadlines, first_deadline_, Deadline::KeyAfter(group.now_ms),
                  [&](std::string_view key, std::string_view value) {
                    auto deadline = Deadline::Decode(key, value);
                    if (!deadline.ok()) {  // left where it is
                      if (expiry.status.ok()) expiry.status = deadline.status();
                      return true;
                    }
                    events += deadline.value().event_ids.size();
                    due.push_back(std::move(deadline).value());
                    return events < enough;
                  });
  std::size_t unreadable = 0;
  for (const Deadline& deadline : due) {
    unreadable += EndWaitsOf(deadline, group, expiry);
    if (unreadable > kMostUnreadable) break;
  }
  if (expiry.status.ok()) expiry.status = scanned;
  expiry.more = scanned.ok() && events >= enough && unreadable <= kMostUnreadable;
  if (!expiry.more && expiry.status.ok()) UnmarkLongForgotten(group);
  return expiry;
}

// A deadline is deleted only after each of its decisions has been read: otherwise one that could
// not be read would wait for ever. Those that could not stay under the same key and do not hold up
// the others. To end a wait a second time changes nothing.
std::size_t PendingDecisions::EndWaitsOf(const Deadline& deadline, CommitGroup& group,
                                         Expiry& expiry) const {
  Deadline left{.time_ms = deadline.time_ms, .number = deadline.number, .event_ids = {}};
  for (const std::string& event_id : deadline.event_ids) {
    const Status ended = EndWait(event_id, deadline.time_ms, group, expiry);
    if (ended.ok()) continue;
    if (expiry.status.ok()) expiry.status = ended;
    left.event_ids.push_back(event_id);
  }
  if (left.event_ids.empty()) {
    // Scans start behind it, unless something before it is still to be tried again.
    if (expiry.status.ok()) group.pending.after_expired = deadline.Key() + '\0';
    group.batch.Delete(store::Table::kDeadlines, deadline.Key());
  } else if (left.event_ids.size() < deadline.event_ids.size()) {
    group.batch.Put(store::Table::kDeadlines, left.Key(), left.Encode());
  }
  return left.event_ids.size();
}

Status PendingDecisions::EndWait(const std::string& event_id, std::int64_t time_ms,
                                 CommitGroup& group, Expiry& expiry) const {
  auto found = Find(event_id, group);
  if (found.status().code() == StatusCode::kNotFound) return {};
  if (!found.ok()) return found.status();
  PendingDecision pending = std::move(found).value();
  if (pending.deadline_ms > time_ms) return {};  // it was given more time
  if (pending.waits()) --group.pending.waiting_change;
  if (pending.state != PendingDecision::State::kWaiting || IsForgotten(pending, group)) {
    if (pending.state == PendingDecision::State::kDeferred) ++group.pending.expired;
    group.batch.Delete(store::Table::kPending, event_id);
    group.pending.decisions[event_id] = std::nullopt;
    return {};
  }
  ++group.pending.expired;
  // Kept for one more wait, to tell a late reward from an unknown one.
  const PendingDecision expired{.state = PendingDecision::State::kExpired,
                                .deadline_ms = group.now_ms + reward_wait_ms_};
  Put(event_id, expired.Encode(), group);
  StartWait(event_id, expired.deadline_ms, group);
  expiry.unrewarded.emplace_back(event_id, std::move(pending));
  return {};
}

// A user who was forgotten long ago has no decision left, once all that is due has been handled.
void PendingDecisions::UnmarkLongForgotten(CommitGroup& group) const {
  for (const auto& [user, time_ms] : forgotten_) {
    const std::int64_t last = std::max(time_ms + reward_wait_ms_, old_deadlines_end_);
    if (last >= group.now_ms || group.pending.forgotten.contains(user)) continue;
    group.batch.Delete(store::Table::kMeta, ForgottenKey(user));
    group.pending.unmarked.push_back(user);
  }
}

void PendingDecisions::Seal(CommitGroup& group) {
  Deadline& deadline = group.pending.deadline;
  if (deadline.event_ids.empty()) return;
  deadline.number = next_deadline_++;
  group.batch.Put(store::Table::kDeadlines, deadline.Key(), deadline.Encode());
}

void PendingDecisions::Committed(CommitGroup& group) {
  CommitGroup::Pending& changes = group.pending;
  waiting_ += changes.waiting_change;
  if (!changes.after_expired.empty()) first_deadline_ = std::move(changes.after_expired);
  if (!changes.deadline.event_ids.empty()) {
    // Earlier than those that are over only if the clock was set back.
    first_deadline_ = std::min(first_deadline_, changes.deadline.Key());
  }
  for (const UserId user : changes.unmarked) forgotten_.erase(user);
  for (const auto& [user, time_ms] : changes.forgotten) forgotten_[user] = time_ms;
}

}  // namespace codband::engine
