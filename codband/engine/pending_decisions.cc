#include "codband/engine/pending_decisions.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

namespace codband::engine {
namespace {

// If more decisions than this cannot be read it is the disk, and the pass ends.
constexpr std::size_t kMostUnreadable = 100;

std::string ForgottenKey(UserId user) {
  return std::string(PendingDecisions::kForgottenPrefix) + NumberKey(user);
}

}  // namespace

Status NoSuchEvent(const std::string& event_id) {
  return Status::NotFound(fmt::format("eventId: there is no pending decision '{}'", event_id));
}

Status PendingDecisions::Load() {
  CODBAND_RETURN_IF_ERROR(LoadForgotten());
  std::vector<store::Store::Lost> lost;  // the store tells of it; the other decisions wait
  const auto count = [&](std::string_view, std::string_view value) {
    if (const auto user = PendingDecision::WaitingUser(value)) {
      CountWaiting(user->id, 1);
    } else if (PendingDecision::Waits(value)) {
      ++waiting_;  // it is damaged
    }
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
  return Read(event_id);
}

Result<PendingDecision> PendingDecisions::Read(const std::string& event_id) const {
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
  const auto forgotten_ms = user ? ForgottenAt(*user, group) : std::nullopt;
  return forgotten_ms && pending.made_ms <= *forgotten_ms;
}

std::optional<std::int64_t> PendingDecisions::ForgottenAt(UserId user,
                                                          const CommitGroup& group) const {
  for (const auto* forgotten : {&group.pending.forgotten, &forgotten_}) {
    const auto found = forgotten->find(user);
    if (found != forgotten->end()) return found->second;
  }
  return std::nullopt;
}

Status PendingDecisions::CheckRepeat(const std::string& event_id, const PendingDecision& known,
                                     std::uint64_t fingerprint) {
  const auto conflict = [&](std::string_view why) {
    return Status(StatusCode::kConflict, fmt::format("eventId: '{}' {}, expected the id of a new "
                                                     "event",
                                                     event_id, why));
  };
  if (known.state == PendingDecision::State::kRewarded) return conflict("has its reward");
  if (known.state == PendingDecision::State::kExpired) {
    return conflict("has waited for its reward until it was over");
  }
  if (known.fingerprint == fingerprint) return {};
  return conflict("is the event of another request: its user, context, actions or options differ");
}

Status PendingDecisions::CheckNotImported(const std::string& event_id) const {
  std::string nothing;
  const Status found = store_.Get(store::Table::kImported, ImportedKey(event_id), nothing);
  if (found.code() == StatusCode::kNotFound) return {};
  if (!found.ok()) return found;
  return {StatusCode::kConflict, fmt::format("eventId: '{}' was imported before", event_id)};
}

void PendingDecisions::Put(const std::string& event_id, std::string bytes,
                           CommitGroup& group) const {
  group.pending.decisions[event_id] = bytes;
  group.batch.Put(store::Table::kPending, event_id, std::move(bytes));
}

void PendingDecisions::Delete(const std::string& event_id, CommitGroup& group) {
  group.batch.Delete(store::Table::kPending, event_id);
  group.pending.decisions[event_id] = std::nullopt;
}

void PendingDecisions::StartWait(const std::string& event_id, std::int64_t until_ms,
                                 CommitGroup& group) {
  Deadline& deadline = group.pending.deadline;
  deadline.time_ms = std::max(deadline.time_ms, until_ms);
  deadline.event_ids.push_back(event_id);
}

void PendingDecisions::Add(std::string event_id, UserId user, std::string bytes,
                           std::int64_t deadline_ms, CommitGroup& group) const {
  StartWait(event_id, deadline_ms, group);
  group.pending.waiting_changes.emplace_back(user, 1);
  // Nobody knows the id before the group is durable, so nothing in the group looks for it.
  group.batch.Put(store::Table::kPending, std::move(event_id), std::move(bytes));
}

void PendingDecisions::AddNamed(const std::string& event_id, UserId user, std::string bytes,
                                std::int64_t deadline_ms, CommitGroup& group) const {
  StartWait(event_id, deadline_ms, group);
  group.pending.waiting_changes.emplace_back(user, 1);
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
  if (pending.state == PendingDecision::State::kPast) {
    group.batch.Put(store::Table::kImported, ImportedKey(event_id), {});
  }
  group.pending.waiting_changes.emplace_back(pending.decision.user, -1);
}

void PendingDecisions::EraseIfForgotten(const std::string& event_id, CommitGroup& group) const {
  const auto found = Find(event_id, group);
  if (!found.ok() || !IsForgotten(found.value(), group)) return;
  group.pending.waiting_changes.emplace_back(found.value().decision.user, -1);
  Delete(event_id, group);
}

// Reads every decision, but only if one of the user's waits.
Result<std::size_t> PendingDecisions::Forget(UserId user, const std::string& name,
                                             CommitGroup& group) const {
  std::vector<std::string> cancelled;
  bool mistaken = false;
  const auto is_theirs = [&](std::string_view bytes) {
    const auto waiting = PendingDecision::WaitingUser(bytes);
    if (!waiting || waiting->id != user) return false;
    mistaken |= waiting->name != name;
    return true;
  };
  for (const auto& [event_id, bytes] : group.pending.decisions) {
    if (bytes && is_theirs(*bytes)) cancelled.push_back(event_id);
  }
  if (waiting_of_.contains(user)) {
    CODBAND_RETURN_IF_ERROR(store_.Scan(
        store::Table::kPending, {}, {}, [&](std::string_view key, std::string_view bytes) {
          std::string event_id(key);
          if (!group.pending.decisions.contains(event_id) && is_theirs(bytes)) {
            cancelled.push_back(std::move(event_id));
          }
          return true;
        }));
  }
  if (mistaken) return MistakenName(name);
  for (const std::string& event_id : cancelled) Delete(event_id, group);
  if (!cancelled.empty()) {
    group.pending.waiting_changes.emplace_back(user, -static_cast<int>(cancelled.size()));
  }
  // Later than the time before, so that it covers decisions made since, in the same moment too.
  const std::int64_t time_ms = std::max(group.now_ms, ForgottenAt(user, group).value_or(-1) + 1);
  group.batch.Put(store::Table::kMeta, ForgottenKey(user),
                  NumberKey(static_cast<std::uint64_t>(time_ms)));
  group.pending.forgotten[user] = time_ms;
  return cancelled.size();
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
  if (pending.waits()) {
    group.pending.waiting_changes.emplace_back(pending.decision.user, -1);
  }
  // An import that was interrupted: if it goes on, it brings the event again.
  const bool past = pending.state == PendingDecision::State::kPast;
  if (!pending.waits() || past || IsForgotten(pending, group)) {
    Delete(event_id, group);
    return {};
  }
  ++group.pending.expired;
  // Kept for one more wait, to tell a late reward from an unknown one.
  const PendingDecision expired{.state = PendingDecision::State::kExpired,
                                .deadline_ms = group.now_ms + reward_wait_ms_};
  Put(event_id, expired.Encode(), group);
  StartWait(event_id, expired.deadline_ms, group);
  // One that was not shown teaches nothing.
  if (pending.state == PendingDecision::State::kWaiting) {
    expiry.unrewarded.emplace_back(event_id, std::move(pending));
  }
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

void PendingDecisions::CountWaiting(UserId user, int change) {
  waiting_ += change;
  const auto [count, is_new] = waiting_of_.try_emplace(user, 0);
  count->second += change;
  if (count->second <= 0) waiting_of_.erase(count);
}

void PendingDecisions::Seal(CommitGroup& group) {
  Deadline& deadline = group.pending.deadline;
  if (deadline.event_ids.empty()) return;
  deadline.number = next_deadline_++;
  group.batch.Put(store::Table::kDeadlines, deadline.Key(), deadline.Encode());
}

void PendingDecisions::Committed(CommitGroup& group) {
  CommitGroup::Pending& changes = group.pending;
  for (const auto& [user, change] : changes.waiting_changes) CountWaiting(user, change);
  if (!changes.after_expired.empty()) first_deadline_ = std::move(changes.after_expired);
  if (!changes.deadline.event_ids.empty()) {
    // Earlier than those that are over only if the wait was made shorter.
    first_deadline_ = std::min(first_deadline_, changes.deadline.Key());
  }
  for (const UserId user : changes.unmarked) forgotten_.erase(user);
  for (const auto& [user, time_ms] : changes.forgotten) forgotten_[user] = time_ms;
}

}  // namespace codband::engine
