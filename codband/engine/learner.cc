#include "codband/engine/learner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <stdexcept>
#include <utility>

#include "codband/base/clock.h"
#include "codband/policy/registry.h"

namespace codband::engine {
namespace {

constexpr std::size_t kMostRecent = 200;
// Log entries that a replay applies together.
constexpr std::size_t kReplayChunk = 1000;

}  // namespace

bool Learner::StoreArchive::Read(UserId user, std::string& bytes) const {
  const Status status = store_.Get(table_, NumberKey(user), bytes);
  if (status.code() == StatusCode::kNotFound) return false;
  if (!status.ok()) throw std::runtime_error(status.message());
  return true;
}

Learner::Learner(store::Store& store, const EngineOptions& options,
                 std::unique_ptr<Archives> archives, Learned left, Learned right)
    : store_(store),
      options_(options),
      archives_(std::move(archives)),
      learned_(std::move(left), std::move(right)),
      last_checkpoint_seconds_(WallSeconds()) {}

Learner::~Learner() { Stop(); }

Result<Learned> Learner::Load(const Archives& archives, const CheckpointRecord* checkpoint,
                              const std::string& spec, std::size_t dim) {
  auto policy = MakePolicy(spec, {.dim = dim});
  if (!policy.ok()) return policy.status();
  PagedUsers* paged = policy.value()->paged_users();
  auto unpaged = paged == nullptr ? std::make_unique<UnpagedUsers>(*policy.value()) : nullptr;
  Learned learned{.policy = std::move(policy).value(),
                  .unpaged = std::move(unpaged),
                  .users_of_policy = paged,
                  .people = PagedUserTable<Person>([] { return Person(); })};
  if (paged == nullptr) learned.users_of_policy = learned.unpaged.get();
  learned.users_of_policy->SetArchive(&archives.users);
  learned.people.SetArchive(&archives.people);
  if (checkpoint == nullptr) return learned;
  CODBAND_RETURN_IF_ERROR(CheckSpecChange(checkpoint->spec, learned.policy->spec(), {.dim = dim}));
  ByteReader in(checkpoint->shared);
  learned.users_of_policy->LoadShared(in);
  in.ExpectEnd();
  if (!in.ok()) return in.status();
  learned.recent.assign(checkpoint->recent.begin(), checkpoint->recent.end());
  learned.users = checkpoint->users;
  learned.changes = checkpoint->changes;
  learned.sequence = checkpoint->sequence;
  return learned;
}

Result<std::unique_ptr<Learner>> Learner::Open(store::Store& store, const EngineOptions& options,
                                               std::size_t dim) {
  std::string bytes;
  std::optional<CheckpointRecord> checkpoint;
  const Status found = store.Get(store::Table::kCheckpoint, CheckpointRecord::kKey, bytes);
  if (found.ok()) {
    auto record = CheckpointRecord::Decode(bytes);
    if (!record.ok()) return record.status();
    checkpoint = std::move(record).value();
  } else if (found.code() != StatusCode::kNotFound) {
    return found;
  }
  if (checkpoint && checkpoint->sequence == 0) {
    // Nothing was learned. If there is nothing to replay either, any policy may start.
    bool log_is_empty = true;
    CODBAND_RETURN_IF_ERROR(store.Scan(store::Table::kLog, {}, {}, [&](auto, auto) {
      log_is_empty = false;
      return false;
    }));
    if (log_is_empty) checkpoint.reset();
  }
  auto archives =
      std::make_unique<Archives>(Archives{.users = StoreArchive(store, store::Table::kUsers),
                                          .people = StoreArchive(store, store::Table::kPeople)});
  const CheckpointRecord* loaded = checkpoint ? &*checkpoint : nullptr;
  auto left = Load(*archives, loaded, options.policy, dim);
  if (!left.ok()) return left.status();
  auto right = Load(*archives, loaded, options.policy, dim);
  if (!right.ok()) return right.status();
  std::unique_ptr<Learner> learner(new Learner(store, options, std::move(archives),
                                               std::move(left).value(), std::move(right).value()));
  const std::uint64_t sequence = checkpoint ? checkpoint->sequence : 0;
  learner->applied_sequence_ = sequence;
  learner->checkpoint_sequence_ = sequence;
  learner->has_checkpoint_ = checkpoint.has_value();
  if (checkpoint) {
    for (const Change& change : checkpoint->recent) learner->NoteChange(change.time_ms);
  }
  CODBAND_RETURN_IF_ERROR(learner->Replay());
  return learner;
}

Status Learner::Replay() {
  std::vector<Entry> entries;
  Status damaged;
  std::uint64_t expected = applied_sequence_ + 1;
  const Status read = store_.Scan(
      store::Table::kLog, NumberKey(expected), {},
      [&](std::string_view key, std::string_view value) {
        const auto sequence = ReadNumberKey(key);
        auto record = LogRecord::Decode(value);
        if (!sequence.ok() || !record.ok() || sequence.value() != expected) {
          damaged = Status::Corruption(fmt::format(
              "log entry {}: {}", expected,
              !record.ok() ? record.status().message() : "is missing, a later one is there"));
          return false;
        }
        ++expected;
        entries.push_back({.sequence = sequence.value(), .record = std::move(record).value()});
        if (entries.size() == kReplayChunk) Apply(std::exchange(entries, {}));
        return !failed_;
      });
  CODBAND_RETURN_IF_ERROR(read);
  CODBAND_RETURN_IF_ERROR(damaged);
  Apply(std::move(entries));
  if (failed_) return Status::Corruption(last_error());
  return {};
}

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
    if (CheckpointDue() || (stopping && entries_since_checkpoint_ > 0)) {
      static_cast<void>(MakeCheckpoint());  // last_error() tells; tried again later
    }
    for (const std::function<void()>& task : tasks) task();
  }
}

void Learner::Apply(std::vector<Entry> entries) {
  if (entries.empty()) return;
  const auto tell_all = [&](const Status& status) {
    for (const Entry& entry : entries) {
      if (entry.done) entry.done(status);
    }
  };
  if (failed_) return tell_all(Status(StatusCode::kUnavailable, last_error()));
  std::vector<Applied> applied;  // by the first copy; the second does the same
  memo_.StartRecording();
  bool shown = false;
  try {
    learned_.Write(
        [&](Learned& learned) {
          applied.clear();
          for (const Entry& entry : entries) {
            applied.push_back(ApplyTo(learned, entry.record, entry.sequence));
          }
          memo_.StartReplay();
        },
        [&] {
          shown = true;
          applied_sequence_ = entries.back().sequence;
          for (std::size_t i = 0; i < entries.size(); ++i) {
            if (applied[i].change) NoteChange(applied[i].change->time_ms);
            if (!entries[i].done) continue;
            entries[i].done(applied[i].known
                                ? Status()
                                : Status::NotFound(fmt::format("user: nothing is known of '{}'",
                                                               entries[i].record.user)));
          }
        });
  } catch (const std::exception& error) {
    // The copy that readers see is intact, and the log has every entry.
    failed_ = true;
    const std::string problem =
        fmt::format("learning stopped at log entry {}: {}; nothing is lost, restart to go on",
                    applied_sequence_ + 1, error.what());
    SetError(problem);
    if (!shown) tell_all(Status(StatusCode::kUnavailable, problem));
    return;
  }
  for (const Entry& entry : entries) {
    if (entry.record.kind == LogRecord::Kind::kForget) {
      erased_.push_back(HashUser(entry.record.user));
    }
  }
  entries_since_checkpoint_ += entries.size();
}

Learner::Applied Learner::ApplyTo(Learned& learned, const LogRecord& record,
                                  std::uint64_t sequence) {
  const UserId user = HashUser(record.user);
  learned.sequence = sequence;
  if (record.kind == LogRecord::Kind::kForget) {
    learned.policy->Forget(user);
    const bool known = learned.people.Erase(user);
    if (known) --learned.users;
    std::erase_if(learned.recent, [&](const Change& change) { return change.user == record.user; });
    return {.known = known};
  }
  const LearnOutcome outcome = learned.policy->Learn(
      record.decision, record.reward, {.seed = options_.seed, .event = record.event}, &memo_);
  Person& person = learned.people.FindOrMake(user);
  if (person.observations == 0) {
    person.name = record.user;
    person.first_ms = record.time_ms;
    ++learned.users;
  }
  ++person.observations;
  if (!outcome.change_detected) return {};
  person.AddMove({.time_ms = record.time_ms, .from = outcome.before, .to = outcome.after});
  ++learned.changes;
  Change change{
      .user = record.user, .time_ms = record.time_ms, .from = outcome.before, .to = outcome.after};
  learned.recent.push_back(change);
  if (learned.recent.size() > kMostRecent) learned.recent.pop_front();
  return {.change = std::move(change)};
}

void Learner::NoteChange(std::int64_t time_ms) {
  const std::lock_guard lock(mutex_);
  change_times_.push_back(time_ms);
  while (change_times_.front() < time_ms - kHourMs) change_times_.pop_front();
}

bool Learner::CheckpointDue() const {
  if (failed_) return false;
  const double waited_ms = 1000 * (WallSeconds() - last_checkpoint_seconds_);
  const bool interval_over = waited_ms >= static_cast<double>(options_.checkpoint_interval_ms);
  if (entries_since_checkpoint_ == 0) return log_left_ && interval_over;
  // Users who have changed cannot be evicted before the next checkpoint.
  const std::size_t most = std::min(options_.checkpoint_events, options_.users_in_memory / 2 + 1);
  const bool had_error = !last_error().empty();
  return (entries_since_checkpoint_ >= most && !had_error) || !erased_.empty() || interval_over;
}

Status Learner::MakeCheckpoint() {
  if (failed_) return Status(StatusCode::kUnavailable, last_error());
  last_checkpoint_seconds_ = WallSeconds();
  store::StoreBatch batch;
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
    batch.Put(store::Table::kCheckpoint, std::string(CheckpointRecord::kKey), record.Encode());
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
  const Status written = store_.WriteBulk(std::move(batch));
  if (!written.ok()) {
    SetError("checkpoint: " + written.message());
    return written;
  }
  learned_.Write([&](Learned& learned) {
    learned.users_of_policy->MarkUsersSaved();
    learned.people.MarkSaved();
    learned.users_of_policy->EvictUsers(options_.users_in_memory);
    learned.people.Evict(options_.users_in_memory);
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
  const Status deleted = store_.Write(applied, options_.sync);
  log_left_ = !deleted.ok();
  if (deleted.ok() && on_erased_ && !left_in_log_.empty()) {
    on_erased_(std::exchange(left_in_log_, {}));
  }
  // The checkpoint counts either way, and the next one deletes the rest of the log.
  SetError(deleted.ok() ? "" : "checkpoint: cannot shorten the log: " + deleted.message());
  return deleted;
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

}  // namespace codband::engine
