#include "codband/engine/committer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "codband/base/clock.h"

namespace codband::engine {
namespace {

constexpr std::string_view kForgottenPrefix = "forgotten/";
constexpr std::size_t kMostInGroup = 1024;
// Waits that end in one group, if so many are over; and twice as many as there are commands in it,
// so that they end faster than they begin.
constexpr std::size_t kExpiredAtOnce = 100;

std::string ForgottenKey(UserId user) { return std::string(kForgottenPrefix) + NumberKey(user); }

Status Busy(std::string_view why) { return Status(StatusCode::kUnavailable, std::string(why)); }

Status UnknownEvent(const std::string& event_id) {
  return Status::NotFound(fmt::format("eventId: '{}' is not waiting for anything", event_id));
}

}  // namespace

// What is about to be written together, and what is to happen once it is.
struct Committer::Group {
  store::StoreBatch batch = {};
  std::uint64_t sequence;  // of the last log entry
  std::int64_t now_ms;
  std::vector<Learner::Entry> entries = {};  // for the learner
  // What the group makes of decisions, encoded; none: deleted.
  std::unordered_map<std::string, std::optional<std::string>> pending = {};
  std::unordered_map<UserId, std::int64_t> forgotten = {};
  std::vector<UserId> long_forgotten = {};  // whose mark is needed no more
  Deadline deadline = {};                   // of the decisions that wait from now on
  std::string after_expired = {};           // the first key behind the deadlines that are over
  std::vector<FinishedDecision> finished = {};
  std::vector<Engine::Done<Status>> after = {};  // told how the write went
  // For the counters.
  std::int64_t pending_change = 0;
  std::uint64_t expired = 0;
  std::uint64_t defaulted = 0;

  void Wait(const std::string& event_id, std::int64_t until_ms) {
    deadline.time_ms = std::max(deadline.time_ms, until_ms);
    deadline.event_ids.push_back(event_id);
  }
};

Committer::Committer(store::Store& store, Learner& learner, LeftRight<Catalogue>& catalogue,
                     const EngineOptions& options,
                     std::function<void(const FinishedDecision&)> on_finished)
    : store_(store),
      learner_(learner),
      catalogue_(catalogue),
      options_(options),
      on_finished_(std::move(on_finished)),
      committed_sequence_(learner.applied_sequence()) {}

Committer::~Committer() { Stop(); }

Result<std::unique_ptr<Committer>> Committer::Open(
    store::Store& store, Learner& learner, LeftRight<Catalogue>& catalogue,
    const EngineOptions& options, std::function<void(const FinishedDecision&)> on_finished) {
  std::unique_ptr<Committer> committer(
      new Committer(store, learner, catalogue, options, std::move(on_finished)));
  CODBAND_RETURN_IF_ERROR(committer->LoadForgotten());
  std::int64_t pending = 0;
  CODBAND_RETURN_IF_ERROR(store.Scan(store::Table::kPending, {}, {}, [&](auto, auto value) {
    if (PendingDecision::Waits(value)) ++pending;
    return true;
  }));
  committer->counters_.pending = pending;
  Status damaged;
  CODBAND_RETURN_IF_ERROR(store.Scan(store::Table::kDeadlines, {}, {}, [&](auto key, auto value) {
    const auto deadline = Deadline::Decode(key, value);
    damaged = deadline.status();
    if (!deadline.ok()) return false;
    committer->next_deadline_ = std::max(committer->next_deadline_, deadline.value().number + 1);
    committer->old_deadlines_end_ = deadline.value().time_ms;  // they are in order
    return true;
  }));
  CODBAND_RETURN_IF_ERROR(damaged);
  return committer;
}

Status Committer::LoadForgotten() {
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

void Committer::Start() {
  thread_ = std::thread([this] { Run(); });
}

void Committer::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Committer::Submit(Command command) {
  std::string_view refusal;
  bool was_empty = false;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || !thread_.joinable()) {
      refusal = "the server is stopping";
    } else if (queue_.size() >= options_.max_queue) {
      refusal = "too many requests are waiting to be made durable; try again";
    } else {
      was_empty = queue_.empty();
      queue_.push_back(std::move(command));
    }
  }
  if (!refusal.empty()) {
    std::visit([&](auto& refused) { refused.done(Busy(refusal)); }, command);
  } else if (was_empty) {
    wake_.notify_one();
  }
}

std::size_t Committer::queue_length() const {
  const std::lock_guard lock(mutex_);
  return queue_.size();
}

std::string Committer::last_error() const {
  const std::lock_guard lock(mutex_);
  return last_error_;
}

void Committer::Run() {
  const double expiry_seconds =
      std::clamp(static_cast<double>(options_.reward_wait_ms) / 10'000, 0.01, 1.0);
  bool stopping = false;
  bool more_due = false;
  while (!stopping) {
    std::vector<Command> commands;
    {
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, std::chrono::duration<double>(expiry_seconds),
                     [&] { return stopping_ || more_due || !queue_.empty(); });
      if (queue_.size() <= kMostInGroup) {
        commands.swap(queue_);
      } else {
        const auto end = queue_.begin() + kMostInGroup;
        std::move(queue_.begin(), end, std::back_inserter(commands));
        queue_.erase(queue_.begin(), end);
      }
      stopping = stopping_ && commands.empty();
    }
    const double now = WallSeconds();
    const bool look = more_due || now - last_expiry_seconds_ >= expiry_seconds;
    if (commands.empty() && !look) continue;
    Group group{.sequence = committed_sequence_, .now_ms = options_.now_ms()};
    for (Command& command : commands) {
      std::visit([&](auto& each) { Process(each, group); }, command);
    }
    // If more are due than one group should hold, it goes on with the next one.
    if (look) more_due = Expire(std::max(kExpiredAtOnce, 2 * commands.size()), group);
    if (!Finish(group)) more_due = false;
    if (look && !more_due) last_expiry_seconds_ = now;
  }
}

bool Committer::Expire(std::size_t most, Group& group) {
  std::vector<Deadline> due;
  std::size_t events = 0;
  // An error here is one of the disk; the next write will say so.
  static_cast<void>(store_.Scan(store::Table::kDeadlines, first_deadline_,
                                Deadline::KeyAfter(group.now_ms),
                                [&](std::string_view key, std::string_view value) {
                                  group.after_expired = key;
                                  group.after_expired += '\0';
                                  if (auto deadline = Deadline::Decode(key, value); deadline.ok()) {
                                    events += deadline.value().event_ids.size();
                                    due.push_back(std::move(deadline).value());
                                  }
                                  return events < most;
                                }));
  for (const Deadline& deadline : due) ProcessDeadline(deadline, group);
  if (events >= most) return true;
  // Whoever was forgotten long ago has no decisions left, now that all that are due have been seen.
  for (const auto& [user, time_ms] : forgotten_) {
    const std::int64_t last = std::max(time_ms + options_.reward_wait_ms, old_deadlines_end_);
    if (last >= group.now_ms || group.forgotten.contains(user)) continue;
    group.batch.Delete(store::Table::kMeta, ForgottenKey(user));
    group.long_forgotten.push_back(user);
  }
  return false;
}

bool Committer::Finish(Group& group) {
  if (!group.deadline.event_ids.empty()) {
    group.deadline.number = next_deadline_++;
    group.batch.Put(store::Table::kDeadlines, group.deadline.Key(), group.deadline.Encode());
  }
  Status status;
  if (!group.batch.empty()) {
    status = store_.Write(group.batch, options_.sync);
    const std::lock_guard lock(mutex_);
    last_error_ = status.message();
  }
  if (status.ok()) {
    committed_sequence_ = group.sequence;
    counters_.pending += group.pending_change;
    counters_.expired += group.expired;
    counters_.defaulted += group.defaulted;
    if (!group.after_expired.empty()) first_deadline_ = std::move(group.after_expired);
    if (!group.deadline.event_ids.empty()) {
      // Before those that are over only if the clock was set back.
      first_deadline_ = std::min(first_deadline_, group.deadline.Key());
    }
    for (const UserId user : group.long_forgotten) forgotten_.erase(user);
    for (const auto& [user, time_ms] : group.forgotten) forgotten_[user] = time_ms;
    if (!group.entries.empty()) learner_.Submit(std::move(group.entries));
  } else {
    for (const Learner::Entry& entry : group.entries) {
      if (entry.done) entry.done(status);
    }
  }
  for (const auto& tell : group.after) tell(status);
  if (status.ok() && on_finished_) {
    for (const FinishedDecision& decision : group.finished) on_finished_(decision);
  }
  return status.ok();
}

Result<PendingDecision> Committer::FindPending(const std::string& event_id,
                                               const Group& group) const {
  std::string bytes;
  if (const auto found = group.pending.find(event_id); found != group.pending.end()) {
    if (!found->second) return UnknownEvent(event_id);
    bytes = *found->second;
  } else {
    const Status status = store_.Get(store::Table::kPending, event_id, bytes);
    if (status.code() == StatusCode::kNotFound) return UnknownEvent(event_id);
    if (!status.ok()) return status;
  }
  return PendingDecision::Decode(bytes);
}

bool Committer::IsForgotten(const PendingDecision& pending, const Group& group) const {
  for (const auto* forgotten : {&forgotten_, &group.forgotten}) {
    const auto found = forgotten->find(pending.decision.user);
    if (found != forgotten->end() && pending.time_ms <= found->second) return true;
  }
  return false;
}

void Committer::PutPending(const std::string& event_id, std::string bytes, Group& group) {
  group.pending[event_id] = bytes;
  group.batch.Put(store::Table::kPending, event_id, std::move(bytes));
}

void Committer::DeletePending(const std::string& event_id, Group& group) {
  group.batch.Delete(store::Table::kPending, event_id);
  group.pending[event_id] = std::nullopt;
}

void Committer::Process(RankCommand& command, Group& group) {
  group.after.push_back(std::move(command.done));
  if (command.known_id) {
    const auto known = FindPending(command.event_id, group);
    // A decision that has its outcome keeps it; one that waits is replaced by what was shown last.
    if (known.ok() && !known.value().waits()) return;
    if (known.ok()) --group.pending_change;
  }
  group.Wait(command.event_id, command.deadline_ms);
  ++group.pending_change;
  if (command.known_id) {
    PutPending(command.event_id, std::move(command.pending), group);
  } else {
    group.batch.Put(store::Table::kPending, std::move(command.event_id),
                    std::move(command.pending));
  }
}

void Committer::Process(RewardCommand& command, Group& group) {
  const auto answer = [&](RewardOutcome outcome, std::atomic<std::uint64_t>& counter) {
    group.after.push_back(
        [done = std::move(command.done), outcome, &counter](const Status& status) {
          if (!status.ok()) return done(status);
          ++counter;
          done(RewardReply{.outcome = outcome});
        });
  };
  auto found = FindPending(command.event_id, group);
  if (found.ok() && IsForgotten(found.value(), group)) found = UnknownEvent(command.event_id);
  if (!found.ok()) {
    if (found.status().code() == StatusCode::kNotFound) {
      return answer(RewardOutcome::kUnknown, counters_.unknown);
    }
    group.after.push_back(
        [done = std::move(command.done), status = found.status()](const Status&) { done(status); });
    return;
  }
  PendingDecision pending = std::move(found).value();
  if (pending.state == PendingDecision::State::kRewarded) {
    return answer(RewardOutcome::kDuplicate, counters_.duplicate);
  }
  if (pending.state == PendingDecision::State::kExpired || pending.deadline_ms < group.now_ms) {
    return answer(RewardOutcome::kLate, counters_.late);
  }
  // A reward for a decision that was to be activated says that it was shown.
  PendingDecision rewarded{.state = PendingDecision::State::kRewarded,
                           .deadline_ms = pending.deadline_ms};
  PutPending(command.event_id, rewarded.Encode(), group);
  --group.pending_change;
  if (!pending.learn) {
    answer(RewardOutcome::kAccepted, counters_.accepted);
    return Conclude(command.event_id, pending, command.value, false, {}, group);
  }
  Conclude(
      command.event_id, pending, command.value, false,
      [done = std::move(command.done), sequence = group.sequence + 1, this](const Status& status) {
        if (!status.ok()) return done(status);
        ++counters_.accepted;
        done(RewardReply{.outcome = RewardOutcome::kAccepted, .sequence = sequence});
      },
      group);
}

void Committer::Conclude(const std::string& event_id, const PendingDecision& pending, double reward,
                         bool defaulted, Engine::Done<Status> done, Group& group) {
  if (pending.learn) {
    LogRecord record{.kind = LogRecord::Kind::kLearn,
                     .time_ms = group.now_ms,
                     .user = pending.user,
                     .event = HashEvent(event_id),
                     .reward = reward,
                     .decision = pending.decision};
    group.batch.Put(store::Table::kLog, NumberKey(++group.sequence), record.Encode());
    group.entries.push_back(
        {.sequence = group.sequence, .record = std::move(record), .done = std::move(done)});
  }
  if (on_finished_) {
    group.finished.push_back({.event_id = event_id,
                              .user = pending.user,
                              .time_ms = pending.time_ms,
                              .reward = reward,
                              .defaulted = defaulted,
                              .learned = pending.learn,
                              .context = pending.context,
                              .policy = options_.policy,
                              .chosen = pending.decision.arm,
                              .candidates = pending.candidates});
  }
}

void Committer::Process(ActivateCommand& command, Group& group) {
  auto found = FindPending(command.event_id, group);
  Status status = found.ok() ? Status() : found.status();
  if (found.ok() && (found.value().state == PendingDecision::State::kExpired ||
                     IsForgotten(found.value(), group))) {
    status = UnknownEvent(command.event_id);
  }
  if (status.ok() && found.value().state == PendingDecision::State::kDeferred) {
    PendingDecision pending = std::move(found).value();
    pending.state = PendingDecision::State::kWaiting;
    pending.deadline_ms = group.now_ms + options_.reward_wait_ms;
    group.Wait(command.event_id, pending.deadline_ms);
    PutPending(command.event_id, pending.Encode(), group);
  }
  group.after.push_back([done = std::move(command.done), status](const Status& written) {
    done(written.ok() ? status : written);
  });
}

void Committer::Process(PutItemsCommand& command, Group& group) {
  for (const auto& item : command.items) {
    group.batch.Put(store::Table::kItems, item->id, EncodeItem(*item));
  }
  group.after.push_back([this, items = std::move(command.items),
                         done = std::move(command.done)](const Status& status) {
    if (status.ok()) catalogue_.Write([&](Catalogue& catalogue) { catalogue.Put(items); });
    done(status);
  });
}

void Committer::Process(DeleteItemCommand& command, Group& group) {
  group.batch.Delete(store::Table::kItems, command.id);
  group.after.push_back(
      [this, id = command.id, done = std::move(command.done)](const Status& status) {
        if (!status.ok()) return done(status);
        bool erased = false;
        catalogue_.Write([&](Catalogue& catalogue) { erased = catalogue.Erase(id); });
        done(erased ? Status() : Status::NotFound(fmt::format("id: there is no item '{}'", id)));
      });
}

void Committer::Process(ForgetCommand& command, Group& group) {
  const UserId user = HashUser(command.user);
  LogRecord record{.kind = LogRecord::Kind::kForget,
                   .time_ms = group.now_ms,
                   .user = command.user,
                   .decision = {}};
  group.batch.Put(store::Table::kLog, NumberKey(++group.sequence), record.Encode());
  group.batch.Put(store::Table::kMeta, ForgottenKey(user),
                  NumberKey(static_cast<std::uint64_t>(group.now_ms)));
  group.forgotten[user] = group.now_ms;
  group.entries.push_back(
      {.sequence = group.sequence, .record = std::move(record), .done = std::move(command.done)});
}

void Committer::ProcessDeadline(const Deadline& deadline, Group& group) {
  group.batch.Delete(store::Table::kDeadlines, deadline.Key());
  for (const std::string& event_id : deadline.event_ids) {
    EndWait(event_id, deadline.time_ms, group);
  }
}

void Committer::EndWait(const std::string& event_id, std::int64_t time_ms, Group& group) {
  auto found = FindPending(event_id, group);
  if (!found.ok()) return;
  PendingDecision pending = std::move(found).value();
  if (pending.deadline_ms > time_ms) return;  // it was given more time
  if (pending.waits()) --group.pending_change;
  if (pending.state != PendingDecision::State::kWaiting || IsForgotten(pending, group)) {
    if (pending.state == PendingDecision::State::kDeferred) ++group.expired;
    return DeletePending(event_id, group);
  }
  ++group.expired;
  // Remembered a while longer, to tell a late reward from an unknown one.
  const PendingDecision expired{.state = PendingDecision::State::kExpired,
                                .deadline_ms = group.now_ms + options_.reward_wait_ms};
  PutPending(event_id, expired.Encode(), group);
  group.Wait(event_id, expired.deadline_ms);
  if (!options_.default_reward) return;
  ++group.defaulted;
  Conclude(event_id, pending, *options_.default_reward, true, {}, group);
}

}  // namespace codband::engine
