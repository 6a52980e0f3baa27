#include "codband/engine/committer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "codband/base/check.h"
#include "codband/base/clock.h"
#include "codband/engine/eraser.h"

namespace codband::engine {
namespace {

constexpr std::size_t kMostInGroup = 1024;
// Waits that end in one group, if so many are over; or twice the number of its commands, if that is
// more, so that waits end faster than they begin.
constexpr std::size_t kExpiredAtOnce = 100;
// The clock is saved with a group at most so often, and by itself if nothing else is written.
constexpr std::int64_t kClockMs = 1000;
constexpr std::int64_t kIdleClockMs = 60'000;

// Whatever becomes of the group.
template <typename T>
void Refuse(Engine::Done<T>& done, const Status& reason, CommitGroup& group) {
  group.after.push_back([done = std::move(done), reason](const Status&) { done(reason); });
}

Status Busy(std::string_view why) { return Status(StatusCode::kUnavailable, std::string(why)); }

}  // namespace

Committer::Committer(store::Store& store, LeftRight<Catalogue>& catalogue,
                     const EngineOptions& options, const WaitClock& clock,
                     std::uint64_t last_sequence, Sinks sinks, std::unique_ptr<ColumnClerk> clerk)
    : store_(store),
      catalogue_(catalogue),
      options_(options),
      clock_(clock),
      sinks_(std::move(sinks)),
      decisions_(store, options.reward_wait_ms),
      activity_(store),
      clerk_(std::move(clerk)),
      committed_sequence_(last_sequence) {}

Committer::~Committer() { Stop(); }

Result<std::unique_ptr<Committer>> Committer::Open(store::Store& store,
                                                   LeftRight<Catalogue>& catalogue,
                                                   const EngineOptions& options,
                                                   std::uint64_t last_sequence, Sinks sinks,
                                                   std::unique_ptr<ColumnClerk> clerk) {
  const auto clock = WaitClock::Open(store, options);
  if (!clock.ok()) return clock.status();
  std::unique_ptr<Committer> committer(new Committer(
      store, catalogue, options, clock.value(), last_sequence, std::move(sinks), std::move(clerk)));
  CODBAND_RETURN_IF_ERROR(committer->decisions_.Load());
  CODBAND_RETURN_IF_ERROR(committer->activity_.Load());
  committer->counters_.pending = committer->decisions_.waiting();
  return committer;
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

Result<PendingDecision> Committer::Look(const std::string& event_id) const {
  return decisions_.Read(event_id);
}

std::size_t Committer::queue_length() const {
  const std::lock_guard lock(mutex_);
  return queue_.size();
}

std::string Committer::last_error() const {
  const std::lock_guard lock(mutex_);
  return write_error_.empty() ? expiry_error_ : write_error_;
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
      commands = TakeCommands();
      stopping = stopping_ && commands.empty();
    }
    const double now = WallSeconds();
    const bool look = more_due || now - last_expiry_seconds_ >= expiry_seconds;
    if (commands.empty() && !look) continue;
    CommitGroup group{
        .sequence = committed_sequence_, .now_ms = clock_.now_ms(), .wall_ms = options_.now_ms()};
    if (clerk_ != nullptr) clerk_->Begin();
    Status written = Fill(commands, group);
    // If more are due than one group should hold, the next group goes on with them.
    if (look && written.ok()) {
      more_due = Expire(std::max(kExpiredAtOnce, 2 * commands.size()), group, written);
    }
    if (written.ok()) written = Commit(group);
    if (!written.ok() && clerk_ != nullptr) clerk_->Undo();
    Acknowledge(group, written);
    if (!written.ok()) more_due = false;
    if (look && !more_due) last_expiry_seconds_ = now;
  }
  if (decisions_.waiting() == 0) return;
  // If it fails, the time since it was saved last is counted by the next process.
  store::StoreBatch batch;
  batch.Put(store::Table::kMeta, std::string(ClockRecord::kKey), clock_.Record().Encode());
  static_cast<void>(store_.Write(batch, options_.sync));
}

Status Committer::Fill(std::vector<Command>& commands, CommitGroup& group) {
  for (std::size_t i = 0; i < commands.size(); ++i) {
    try {
      std::visit([&](auto& each) { Process(each, group); }, commands[i]);
    } catch (const std::exception& error) {
      // Want of memory. The group is dropped as a whole: nothing of it has been written.
      const Status status = Busy(error.what());
      for (; i < commands.size(); ++i) {
        std::visit(
            [&](auto& each) {
              if (each.done) each.done(status);
            },
            commands[i]);
      }
      return status;
    }
  }
  return {};
}

// Precondition: the mutex is held.
std::vector<Committer::Command> Committer::TakeCommands() {
  if (queue_.size() <= kMostInGroup) return std::exchange(queue_, {});
  const auto end = queue_.begin() + kMostInGroup;
  std::vector<Command> commands(std::make_move_iterator(queue_.begin()),
                                std::make_move_iterator(end));
  queue_.erase(queue_.begin(), end);
  return commands;
}

void Committer::SaveClock(CommitGroup& group) {
  const std::int64_t since_ms = group.now_ms - clock_saved_ms_;
  const bool idle = group.batch.empty();
  const std::int64_t most_ms =
      idle ? std::max(kIdleClockMs, options_.reward_wait_ms / 10) : kClockMs;
  if (since_ms < most_ms || (idle && decisions_.waiting() == 0)) return;
  group.batch.Put(store::Table::kMeta, std::string(ClockRecord::kKey), clock_.Record().Encode());
}

void Committer::Note(std::string& remembered, const Status& status, std::string_view cause,
                     std::string_view broken, std::string_view mended) {
  bool was_broken = false;
  {
    const std::lock_guard lock(mutex_);
    was_broken = !std::exchange(remembered, status.message()).empty();
  }
  if (was_broken == !status.ok() || !options_.log) return;
  options_.log({.level = status.ok() ? LogLevel::kInfo : LogLevel::kError,
                .cause = cause,
                .message = status.ok() ? std::string(mended)
                                       : fmt::format("{}: {}", status.message(), broken)});
}

Status Committer::Commit(CommitGroup& group) {
  decisions_.Seal(group);
  activity_.Seal(group);
  SaveClock(group);
  if (!group.batch.empty()) {
    const Status status = store_.Write(group.batch, options_.sync);
    Note(write_error_, status, "store",
         "the data cannot be written, changes are refused, nothing that was acknowledged is lost; "
         "make room or mend the disk, it then goes on by itself",
         "the data can be written again");
    CODBAND_RETURN_IF_ERROR(status);
    if (group.now_ms - clock_saved_ms_ >= kClockMs) clock_saved_ms_ = group.now_ms;
  }
  committed_sequence_ = group.sequence;
  decisions_.Committed(group);
  activity_.Committed(group);
  counters_.pending = decisions_.waiting();
  counters_.expired += group.pending.expired;
  counters_.defaulted += group.defaulted;
  return {};
}

void Committer::Acknowledge(CommitGroup& group, const Status& status) {
  if (!status.ok()) {
    for (const Learner::Entry& entry : group.entries) {
      if (entry.done) entry.done(status);
    }
  } else if (!group.entries.empty()) {
    sinks_.learn(std::move(group.entries));
  }
  for (const auto& tell : group.after) tell(status);
  if (!status.ok() || !sinks_.finished) return;
  for (const FinishedDecision& decision : group.finished) sinks_.finished(decision);
}

void Committer::Process(RankCommand& command, CommitGroup& group) {
  if (const auto forgotten_ms = decisions_.ForgottenAt(command.user, group);
      forgotten_ms && command.made_ms <= *forgotten_ms) {
    // It was asked for while the user was being forgotten: it counts as asked for after that.
    auto pending = PendingDecision::Decode(command.pending);
    CODBAND_CHECK(pending.ok());  // encoded a moment ago
    pending.value().made_ms = *forgotten_ms + 1;
    command.pending = pending.value().Encode();
  }
  if (command.fingerprint == 0) {
    AddColumns(command, group);
    ++group.activity.decisions;
    group.after.push_back(std::move(command.done));
    return decisions_.Add(std::move(command.event_id), command.user, std::move(command.pending),
                          command.deadline_ms, group);
  }
  const auto known = decisions_.Find(command.event_id, group);
  if (known.status().code() == StatusCode::kNotFound) {
    if (const Status fresh =
            command.past ? decisions_.CheckNotImported(command.event_id) : Status();
        !fresh.ok()) {
      return Refuse(command.done, fresh, group);
    }
    AddColumns(command, group);
    ++group.activity.decisions;
    group.after.push_back(std::move(command.done));
    return decisions_.AddNamed(command.event_id, command.user, std::move(command.pending),
                               command.deadline_ms, group);
  }
  // One that cannot be read may have its reward: replaced, it could get a second one.
  if (!known.ok()) return Refuse(command.done, known.status(), group);
  // Lost a race with an identical request.
  const PendingDecision& first = known.value();
  const Status fits = PendingDecisions::CheckRepeat(command.event_id, first, command.fingerprint);
  if (!fits.ok()) return Refuse(command.done, fits, group);
  if (first.action != command.action) {
    return Refuse(command.done, Busy("the same request is being answered; try again"), group);
  }
  group.after.push_back(std::move(command.done));
}

void Committer::Process(RewardCommand& command, CommitGroup& group) {
  const auto answer = [&](RewardOutcome outcome, std::atomic<std::uint64_t>& counter) {
    group.after.push_back(
        [done = std::move(command.done), outcome, &counter](const Status& status) {
          if (!status.ok()) return done(status);
          ++counter;
          done(RewardReply{.outcome = outcome});
        });
  };
  const auto found = decisions_.Find(command.event_id, group);
  if (!found.ok() && found.status().code() != StatusCode::kNotFound) {
    return Refuse(command.done, found.status(), group);
  }
  if (!found.ok() || decisions_.IsForgotten(found.value(), group)) {
    ++group.activity.unknown;
    return answer(RewardOutcome::kUnknown, counters_.unknown);
  }
  const PendingDecision& pending = found.value();
  if (pending.state == PendingDecision::State::kRewarded) {
    if (const auto rejection =
            sinks_.rejection ? sinks_.rejection(HashEvent(command.event_id)) : std::nullopt) {
      return Refuse(command.done, *rejection, group);
    }
    ++group.activity.duplicate;
    return answer(RewardOutcome::kDuplicate, counters_.duplicate);
  }
  const bool past = pending.state == PendingDecision::State::kPast;
  if (pending.state == PendingDecision::State::kExpired ||
      (pending.deadline_ms < group.now_ms && !past)) {
    ++group.activity.late;
    return answer(RewardOutcome::kLate, counters_.late);
  }
  // A reward for a deferred decision says that it was shown.
  decisions_.MarkRewarded(command.event_id, pending, group);
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
                         bool defaulted, Engine::Done<Status> done, CommitGroup& group) const {
  ActivitySeries::Count(pending, reward, defaulted, group);
  if (pending.learn) {
    group.Log({.kind = LogRecord::Kind::kLearn,
               .time_ms = group.wall_ms,
               .user = pending.user,
               .event = HashEvent(event_id),
               .reward = reward,
               .decision = pending.decision},
              std::move(done));
  }
  if (!sinks_.finished) return;
  group.finished.push_back({.event_id = event_id,
                            .user = pending.user,
                            .time_ms = pending.time_ms,
                            .reward = reward,
                            .defaulted = defaulted,
                            .learned = pending.learn,
                            .context = pending.context,
                            .user_context = pending.user_context,
                            .policy = options_.policy,
                            .chosen = pending.decision.arm,
                            .candidates = pending.candidates});
}

void Committer::Process(ActivateCommand& command, CommitGroup& group) {
  using State = PendingDecision::State;
  const auto found = decisions_.Find(command.event_id, group);
  if (!found.ok()) return Refuse(command.done, found.status(), group);
  const PendingDecision& pending = found.value();
  if (decisions_.IsForgotten(pending, group)) {
    return Refuse(command.done, NoSuchEvent(command.event_id), group);
  }
  if (pending.state == State::kExpired || (pending.waits() && pending.deadline_ms < group.now_ms)) {
    const Status late(
        StatusCode::kGone,
        fmt::format("eventId: '{}' has waited for its reward until it was over", command.event_id));
    return Refuse(command.done, late, group);
  }
  if (pending.state == State::kDeferred) decisions_.Activate(command.event_id, pending, group);
  group.after.push_back(std::move(command.done));
}

void Committer::Process(DeleteItemCommand& command, CommitGroup& group) {
  const bool known =
      group.put_items.contains(command.id) || catalogue_.Read([&](const Catalogue& catalogue) {
        return catalogue.Find(command.id) != nullptr;
      });
  if (!known) {
    return Refuse(command.done,
                  Status::NotFound(fmt::format("id: there is no item '{}'", command.id)), group);
  }
  group.batch.Delete(store::Table::kItems, command.id);
  // If it comes again it is another one.
  LogRecord forget{.kind = LogRecord::Kind::kForgetItem, .time_ms = group.wall_ms, .user = {}};
  forget.decision.item = options_.names.Item(command.id);
  group.Log(std::move(forget), {});
  group.after.push_back(
      [this, id = command.id, done = std::move(command.done)](const Status& status) {
        if (!status.ok()) return done(status);
        bool erased = false;
        catalogue_.Write([&](Catalogue& catalogue) { erased = catalogue.Erase(id); });
        done(erased ? Status() : Status::NotFound(fmt::format("id: there is no item '{}'", id)));
      });
}

void Committer::Process(ForgetCommand& command, CommitGroup& group) {
  const UserId user = options_.names.User(command.user);
  const auto cancelled = decisions_.Forget(user, command.user, group);
  if (!cancelled.ok()) return Refuse(command.done, cancelled.status(), group);
  group.batch.Put(store::Table::kMeta, Eraser::Key(user), "");
  Engine::Done<Status> done = std::move(command.done);
  if (cancelled.value() > 0) {
    // Something of them is gone, even if nothing was learned from them.
    done = [done = std::move(done)](const Status& status) {
      done(status.code() == StatusCode::kNotFound ? Status() : status);
    };
  }
  LogRecord forget{
      .kind = LogRecord::Kind::kForget, .time_ms = group.wall_ms, .user = std::move(command.user)};
  forget.decision.user = user;
  if (clerk_ != nullptr) forget.forgotten_columns = clerk_->Forget(user, group.batch);
  group.Log(std::move(forget), std::move(done));
}

void Committer::Process(EraseCommand& command, CommitGroup& group) {
  for (const std::string& id : command.event_ids) decisions_.EraseIfForgotten(id, group);
  group.after.push_back(std::move(command.done));
}

void Committer::Process(FollowCommand& command, CommitGroup& group) {
  if (!command.columns.empty()) {
    const Status fits = clerk_ == nullptr ? Status::Corruption("the number of features is fixed")
                                          : clerk_->Follow(command.first_column, command.columns);
    Note(follow_error_, fits, "columns",
         "this partition follows the catalogue of its loop no further; delete this node's copy of "
         "it, which is then made anew",
         "this partition follows the catalogue of its loop again");
    if (!fits.ok()) return Refuse(command.done, fits, group);
    command.done = LogColumns(command.first_column, std::move(command.columns),
                              std::move(command.done), group);
  }
  const auto ignore = [](const Status&) {};
  for (FollowCommand::Change& change : command.changes) {
    if (!change.put.empty()) {
      PutItemsCommand put{.items = std::move(change.put), .done = ignore};
      Process(put, group);
    }
    for (std::string& id : change.deleted) {
      DeleteItemCommand erase{.id = std::move(id), .done = ignore};
      Process(erase, group);
    }
  }
  group.batch.Put(store::Table::kMeta, std::string(kCatalogueKey), NumberKey(command.sequence));
  group.after.push_back(std::move(command.done));
}

void Committer::Process(ImportCommand& command, CommitGroup& group) {
  group.Log({.kind = LogRecord::Kind::kPool,
             .time_ms = group.wall_ms,
             .user = {},
             .pool = std::move(command.pool)},
            std::move(command.done));
}

bool Committer::Expire(std::size_t most, CommitGroup& group, Status& status) {
  PendingDecisions::Expiry expiry;
  try {
    expiry = decisions_.EndWaits(most, group);
    if (options_.default_reward) {
      for (const auto& [event_id, pending] : expiry.unrewarded) {
        ++group.defaulted;
        Conclude(event_id, pending, *options_.default_reward, true, {}, group);
      }
    }
  } catch (const std::exception& error) {  // want of memory
    expiry = {};
    expiry.status = status = Busy(error.what());
  }
  Note(
      expiry_error_, expiry.status, "waits",
      "a decision whose wait is over cannot be read, it is tried again, the others go on; 'codband "
      "doctor' tells what is damaged",
      "all decisions whose wait is over can be read again");
  return expiry.more;
}

}  // namespace codband::engine
