#include "codband/engine/learner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <map>
#include <stdexcept>
#include <utility>

#include "codband/base/clock.h"
#include "codband/engine/tell_groups.h"

namespace codband::engine {
namespace {

constexpr std::size_t kMostRecent = 200;
// So many entries are applied before it is looked whether a checkpoint is due.
constexpr std::size_t kMostTogether = 256;

void GrowTo(Policy& policy, std::size_t dim) {
  if (dim > policy.dim()) policy.Grow(dim);
}

}  // namespace

Status MistakenName(std::string_view user) {
  return Status(
      StatusCode::kConflict,
      fmt::format("userId: '{}' has the same hash as another user's, expected another id", user));
}

bool Learner::StoreArchive::Read(UserId user, std::string& bytes) const {
  const Status status = store_.Get(table_, NumberKey(user), bytes);
  if (status.code() == StatusCode::kNotFound) return false;
  if (!status.ok()) throw ArchiveError(status);
  return true;
}

Learner::Learner(store::Store& store, const EngineOptions& options, std::size_t dim,
                 std::unique_ptr<Archives> archives, Learned left, Learned right)
    : store_(store),
      options_(options),
      dim_(dim),
      archives_(std::move(archives)),
      quarantine_(store, options.read_only, options.names),
      learned_(std::move(left), std::move(right)),
      last_checkpoint_seconds_(WallSeconds()) {}

Learner::~Learner() { Stop(); }

void Learner::Start() {
  thread_ = std::thread([this] { Run(); });
}

void Learner::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Learner::Submit(std::vector<Entry> entries) {
  {
    const std::lock_guard lock(mutex_);
    if (queue_.empty()) {
      queue_ = std::move(entries);
    } else {
      std::ranges::move(entries, std::back_inserter(queue_));
    }
  }
  wake_.notify_one();
}

void Learner::Run() {
  bool stopping = false;
  while (!stopping) {
    std::vector<Entry> entries;
    std::vector<std::function<void()>> tasks;
    {
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, std::chrono::milliseconds(200),
                     [&] { return stopping_ || !queue_.empty() || !tasks_.empty(); });
      entries.swap(queue_);
      tasks.swap(tasks_);
      stopping = stopping_ && entries.empty() && tasks.empty();
    }
    Apply(std::move(entries));
    if (waits_ && (stopping || WallSeconds() >= next_try_seconds_)) TryAgain();
    if (CheckpointDue() || (stopping && entries_since_checkpoint_ > 0)) {
      static_cast<void>(MakeCheckpoint());  // last_error() tells; tried again later
    }
    for (const std::function<void()>& task : tasks) task();
  }
}

void Learner::Apply(std::vector<Entry> entries) {
  if (entries.empty()) return;
  given_sequence_ = entries.back().sequence;
  std::span<const Entry> left(entries);
  while (!left.empty() && !waits_) {
    left = left.subspan(ApplyTogether(left.first(std::min(left.size(), kMostTogether))));
    if (!left.empty() && CheckpointDue()) static_cast<void>(MakeCheckpoint());
  }
  for (const Entry& entry : left) {
    if (entry.done) entry.done(Status(StatusCode::kUnavailable, last_error()));
  }
}

std::size_t Learner::ApplyTogether(std::span<const Entry> entries) {
  std::vector<Applied> applied;  // by the first copy; the second does the same
  applied.reserve(entries.size());
  memo_.StartRecording();
  bool shown = false;
  std::optional<Failure> failure;
  try {
    learned_.Write(
        [&](Learned& learned) {
          applied.clear();
          for (const Entry& entry : entries) {
            applied.push_back(ApplyTo(learned, entry.record, entry.sequence, &memo_));
          }
          memo_.StartReplay();
        },
        [&] {
          shown = true;
          Acknowledge(entries, applied);
        });
  } catch (...) {
    const Entry& entry = entries[std::min(applied.size(), entries.size() - 1)];
    failure = Describe(std::current_exception(), entry.sequence, entry.record);
  }
  if (!failure) {
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (entries[i].record.kind != LogRecord::Kind::kPool) ++learned_here_;
      if (entries[i].record.kind != LogRecord::Kind::kForget) continue;
      if (applied[i].mistaken) continue;
      erased_.push_back(entries[i].record.user_id());
      if (applied[i].known) {
        Tell(LogLevel::kInfo, "forgotten",
             fmt::format("a user was forgotten, by log entry {}", entries[i].sequence));
      }
    }
    entries_since_checkpoint_ += entries.size();
    return entries.size();
  }
  std::map<std::uint64_t, Applied> fresh;
  if (shown) {
    // The first copy has them all: no entry is at fault. The second is made anew with it.
    Recover(entries.back().sequence, std::nullopt, fresh);
    return entries.size();
  }
  if (!Recover(failure->sequence, failure, fresh)) return 0;
  std::size_t count = 0;
  for (; count < entries.size() && entries[count].sequence <= failure->sequence; ++count) {
    const Entry& entry = entries[count];
    const auto found = fresh.find(entry.sequence);
    if (!entry.done) continue;
    entry.done(found != fresh.end()
                   ? Outcome(entry, found->second, quarantine_)
                   : QuarantineStatus(quarantine_.Find(entry.sequence)
                                          .value_or(QuarantinedEntry{.first = entry.sequence,
                                                                     .reason = failure->reason})));
  }
  // The next one that fails is then dealt with quickly.
  static_cast<void>(MakeCheckpoint());
  return count;
}

void Learner::Acknowledge(std::span<const Entry> entries, std::span<const Applied> applied) {
  applied_sequence_ = entries.back().sequence;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (applied[i].change) NoteChange(applied[i].change->time_ms);
    if (entries[i].done) entries[i].done(Outcome(entries[i], applied[i], quarantine_));
  }
}

Status Learner::Outcome(const Entry& entry, const Applied& applied, const Quarantine& quarantine) {
  if (applied.mistaken) return MistakenName(entry.record.user);
  if (applied.known || quarantine.HasUser(entry.record.user)) return {};
  return Status::NotFound(fmt::format("user: nothing is known of '{}'", entry.record.user));
}

Learner::Applied Learner::ApplyTo(Learned& learned, const LogRecord& record, std::uint64_t sequence,
                                  LearnMemo* memo) const {
  const UserId user = record.user_id();
  learned.sequence = sequence;
  learned.groups.Advance(record.time_ms, *learned.policy, learned.users);
  if (record.kind == LogRecord::Kind::kColumns) {
    learned.columns.Append(record.first_column, record.additions);
    TellGroups(learned.columns.space(), *learned.policy);
    GrowTo(*learned.policy, learned.columns.space().size());
    return {};
  }
  if (record.kind == LogRecord::Kind::kPool) {
    ImportPool(learned, record.pool);
    return {};
  }
  // As who gives out columns did, whatever follows.
  if (record.kind == LogRecord::Kind::kForget) learned.columns.Forget(record.forgotten_columns);
  const Person* const known_person = record.user.empty() ? nullptr : learned.people.Find(user);
  if (known_person != nullptr && known_person->name != record.user) return {.mistaken = true};
  if (record.kind == LogRecord::Kind::kForget) {
    if (known_person != nullptr) learned.columns.TakeBack(known_person->columns);
    learned.policy->Forget(user);
    const bool known = learned.people.Erase(user);
    if (known) --learned.users;
    std::erase_if(learned.recent, [&](const Change& change) { return change.user == record.user; });
    return {.known = known};
  }
  if (record.kind == LogRecord::Kind::kForgetItem) {
    learned.policy->ForgetItem(record.decision.item);
    return {.known = true};
  }
  const LearnOutcome outcome = LearnFrom(learned, record, memo);
  if (record.user.empty()) return {};
  Person& person = learned.people.FindOrMake(user);
  if (person.observations == 0) {
    person.name = record.user;
    person.first_ms = record.time_ms;
    ++learned.users;
  }
  ++person.observations;
  person.AddTick(record.time_ms, record.reward, record.decision.mean);
  if (!outcome.change_detected) return {};
  const Evidence evidence = person.LastEvidence();
  person.AddMove({.time_ms = record.time_ms,
                  .from = outcome.before,
                  .to = outcome.after,
                  .evidence = evidence});
  ++learned.changes;
  learned.groups.AddChange(record.time_ms);
  Change change{.user = record.user,
                .time_ms = record.time_ms,
                .from = outcome.before,
                .to = outcome.after,
                .evidence = evidence};
  learned.recent.push_back(change);
  if (learned.recent.size() > kMostRecent) learned.recent.pop_front();
  return {.change = std::move(change)};
}

void Learner::ImportPool(Learned& learned, std::string_view bytes) const {
  SharedPool* const pool = learned.policy->shared_pool();
  // Others may have columns already that this one has not heard of.
  if (pool != nullptr && dim_ == 0) GrowTo(*learned.policy, pool->FeaturesOf(bytes));
  const Status imported =
      pool == nullptr ? Status::InvalidArgument("the policy shares nothing") : pool->Import(bytes);
  if (!imported.ok()) throw std::runtime_error("pool: " + imported.message());
  // The pool has the groups of those columns: as who loads a checkpoint, this one waits for them.
  if (dim_ == 0) TellGroups(learned.columns.space(), *learned.policy);
}

LearnOutcome Learner::LearnFrom(Learned& learned, const LogRecord& record, LearnMemo* memo) const {
  const EventKey key{.seed = options_.seed, .event = record.event};
  if (dim_ != 0) return learned.policy->Learn(record.decision, record.reward, key, memo);
  // A log that lost the entry of these columns has the decision all the same.
  GrowTo(*learned.policy, record.decision.features.size());
  ColumnShares* const of_user =
      record.user.empty() ? nullptr : &learned.people.FindOrMake(record.user_id()).columns;
  learned.columns.Count(record.decision.features, of_user);
  return learned.policy->Learn(record.decision, record.reward, key, memo);
}

void Learner::NoteChange(std::int64_t time_ms) {
  const std::lock_guard lock(mutex_);
  change_times_.push_back(time_ms);
  while (change_times_.front() < time_ms - kHourMs) change_times_.pop_front();
}

bool Learner::CheckpointDue() const {
  if (waits_) return false;
  const double waited_ms = 1000 * (WallSeconds() - last_checkpoint_seconds_);
  const bool interval_over = waited_ms >= static_cast<double>(options_.checkpoint_interval_ms);
  if (entries_since_checkpoint_ == 0) return log_left_ && interval_over;
  // Users who have changed cannot be evicted before the next checkpoint.
  const std::size_t most = std::min(options_.checkpoint_events, options_.users_in_memory / 2 + 1);
  const bool had_error = !last_error().empty();
  if (!erased_.empty() || interval_over) return true;
  if (had_error) return false;
  return entries_since_checkpoint_ >= most || learned_.Read([&](const Learned& learned) {
    return learned.user_bytes() > options_.user_memory_bytes / kCopies;
  });
}

void Learner::Evict(Learned& learned) const {
  const std::size_t bytes = learned.user_bytes();
  const std::size_t most = options_.user_memory_bytes / kCopies;
  // What is too much is taken from both tables alike.
  const double share = bytes > most ? static_cast<double>(most) / static_cast<double>(bytes) : 1;
  const auto room = [&](std::size_t taken) -> UserRoom {
    return {.users = options_.users_in_memory,
            .bytes = static_cast<std::size_t>(share * static_cast<double>(taken))};
  };
  learned.users_of_policy->EvictUsers(room(learned.users_of_policy->bytes_in_memory()));
  learned.people.Evict(room(learned.people.bytes()));
}

Status Learner::MakeCheckpoint() {
  if (waits_) return Status(StatusCode::kUnavailable, last_error());
  last_checkpoint_seconds_ = WallSeconds();
  const std::string before = last_error();
  Status status;
  try {
    status = WriteCheckpoint();
  } catch (const std::exception& error) {
    status = Status(StatusCode::kUnavailable, error.what());
  }
  SetError(status.ok() ? "" : "checkpoint: " + status.message());
  if (!status.ok()) {
    Tell(LogLevel::kError, "checkpoint",
         fmt::format("the checkpoint failed: {}; nothing is lost, it is tried again; the log grows "
                     "meanwhile",
                     status.message()));
  } else if (!before.empty()) {
    Tell(LogLevel::kInfo, "checkpoint", "checkpoints succeed again");
  }
  return status;
}

// What has changed since the last checkpoint. Returns the sequence number that it is of.
std::uint64_t Learner::CollectCheckpoint(store::StoreBatch& batch) {
  std::uint64_t sequence = 0;
  learned_.Read([&](const Learned& learned) {
    sequence = learned.sequence;
    CheckpointRecord record{.spec = learned.policy->spec(),
                            .sequence = sequence,
                            .users = learned.users,
                            .changes = learned.changes,
                            .recent = {learned.recent.begin(), learned.recent.end()},
                            .shared = {}};
    ByteWriter shared;
    learned.users_of_policy->SaveShared(shared);
    record.shared = shared.Take();
    if (dim_ == 0) {
      ByteWriter columns;
      learned.columns.Save(columns);
      record.columns = columns.Take();
    }
    CheckpointRecord::Put(record.Encode(), batch);
    learned.groups.SaveChanged(batch);
    for (const UserId user : erased_) {
      batch.Delete(store::Table::kUsers, NumberKey(user));
      batch.Delete(store::Table::kPeople, NumberKey(user));
    }
    learned.users_of_policy->SaveChangedUsers([&](UserId user, std::string bytes) {
      batch.Put(store::Table::kUsers, NumberKey(user), std::move(bytes));
    });
    learned.people.SaveChanged([&](UserId user, std::string bytes) {
      batch.Put(store::Table::kPeople, NumberKey(user), std::move(bytes));
    });
  });
  return sequence;
}

Status Learner::WriteCheckpoint() {
  CODBAND_RETURN_IF_ERROR(quarantine_.Erase(erased_));
  store::StoreBatch batch;
  const std::uint64_t sequence = CollectCheckpoint(batch);
  CODBAND_RETURN_IF_ERROR(store_.WriteBulk(std::move(batch)));
  learned_.Write([&](Learned& learned) {
    learned.users_of_policy->MarkUsersSaved();
    learned.people.MarkSaved();
    learned.groups.MarkSaved();
    Evict(learned);
  });
  left_in_log_.insert(left_in_log_.end(), erased_.begin(), erased_.end());
  erased_.clear();
  entries_since_checkpoint_ = 0;
  checkpoint_sequence_ = sequence;
  ++checkpoints_;
  has_checkpoint_ = true;
  store::StoreBatch applied;
  applied.DeleteRange(store::Table::kLog, NumberKey(0), NumberKey(sequence + 1));
  // Synced: of two writes that were not, a power cut may keep the second alone, which looks like
  // damage.
  const Status deleted = store_.Tidy(applied, options_.sync);
  log_left_ = !deleted.ok();
  if (deleted.ok() && on_erased_ && !left_in_log_.empty()) {
    on_erased_(std::exchange(left_in_log_, {}), sequence);
  }
  if (deleted.ok()) {
    cleared_sequence_ = sequence;
    return {};
  }
  // The checkpoint counts all the same, and the next one deletes the rest of the log.
  return {deleted.code(), "cannot shorten the log: " + deleted.message()};
}

Status Learner::Checkpoint() {
  Status status;
  RunBetween([&] { status = MakeCheckpoint(); });
  return status;
}

Learner::Unsaved Learner::CollectUnsaved() {
  Unsaved unsaved;
  RunBetween([&] {
    learned_.Read([&](const Learned& learned) {
      learned.users_of_policy->SaveChangedUsers(
          [&](UserId user, std::string bytes) { unsaved.users.emplace(user, std::move(bytes)); });
      learned.people.SaveChanged(
          [&](UserId user, std::string bytes) { unsaved.people.emplace(user, std::move(bytes)); });
    });
    unsaved.erased = erased_;
  });
  return unsaved;
}

std::optional<Partition::Register> Learner::Publish(std::uint64_t version, bool always) {
  const bool news = always || learned_.Read([](const Learned& learned) {
    return learned.policy->shared_pool()->HasNews();
  });
  if (!news) return std::nullopt;
  std::optional<Partition::Register> published;
  RunBetween([&] {
    if (waits_) return;
    // Both copies note what was published.
    learned_.Write([&](Learned& learned) {
      published = {.bytes = learned.policy->shared_pool()->Publish(version),
                   .sequence = learned.sequence};
    });
  });
  return published;
}

void Learner::RunBetween(const std::function<void()>& task) {
  if (!thread_.joinable() || thread_.get_id() == std::this_thread::get_id()) return task();
  std::packaged_task<void()> packaged(task);
  {
    const std::lock_guard lock(mutex_);
    tasks_.emplace_back([&] { packaged(); });
  }
  wake_.notify_one();
  packaged.get_future().get();
}

std::uint64_t Learner::ChangesSince(std::int64_t time_ms) const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::uint64_t>(
      std::ranges::count_if(change_times_, [&](std::int64_t time) { return time >= time_ms; }));
}

std::string Learner::last_error() const {
  const std::lock_guard lock(mutex_);
  return last_error_;
}

void Learner::SetError(const std::string& problem) {
  const std::lock_guard lock(mutex_);
  last_error_ = problem;
}

void Learner::Tell(LogLevel level, std::string_view cause, std::string message) const {
  if (options_.log) options_.log({.level = level, .cause = cause, .message = std::move(message)});
}

}  // namespace codband::engine
