// How the learner starts, and how it goes on after an entry that cannot be applied: both make what
// was learned from the checkpoint and the log.
#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <limits>
#include <new>
#include <thread>
#include <utility>

#include "codband/base/clock.h"
#include "codband/engine/learner.h"
#include "codband/engine/tell_groups.h"
#include "codband/policy/registry.h"

namespace codband::engine {
namespace {

// Want of memory passes: an entry is at fault only if it fails so often.
constexpr int kMemoryTries = 4;
constexpr std::chrono::milliseconds kMemoryPause(50);
constexpr double kSecondsBetweenTries = 1;
// If so many entries in a row cannot be applied, it is not they who are at fault.
constexpr std::size_t kRowThatTells = 5;

QuarantinedEntry Gap(std::uint64_t first, std::uint64_t last) {
  return {.first = first, .last = last, .reason = "is missing from the log, a later one is there"};
}

}  // namespace

Result<Learned> Learner::Load(const Archives& archives, const EngineOptions& options,
                              const CheckpointRecord* checkpoint, std::size_t dim) {
  ColumnBook columns;
  if (checkpoint != nullptr && !checkpoint->columns.empty()) {
    ByteReader in(checkpoint->columns);
    columns.Load(in);
    in.ExpectEnd();
    if (!in.ok()) {
      return Status::Corruption("the checkpoint cannot be read: " + in.status().message());
    }
  }
  if (dim == 0) dim = kFirstDim;
  auto policy = options.make_policy ? options.make_policy(options.policy, dim)
                                    : MakePolicy(options.policy, {.dim = dim});
  if (!policy.ok()) return policy.status();
  PagedUsers* paged = policy.value()->paged_users();
  auto unpaged = paged == nullptr ? std::make_unique<UnpagedUsers>(*policy.value()) : nullptr;
  Learned learned{.policy = std::move(policy).value(),
                  .unpaged = std::move(unpaged),
                  .users_of_policy = paged,
                  .people = PagedUserTable<Person>([] { return Person(); }),
                  .columns = std::move(columns)};
  if (paged == nullptr) learned.users_of_policy = learned.unpaged.get();
  learned.users_of_policy->SetArchive(&archives.users);
  learned.people.SetArchive(&archives.people);
  if (checkpoint == nullptr) {
    SharedPool* const pool = learned.policy->shared_pool();
    if (pool != nullptr && options.partition) pool->SetPartition(*options.partition);
    return learned;
  }
  learned.sequence = checkpoint->sequence;
  const Status fits = CheckSpecChange(checkpoint->spec, learned.policy->spec(), {.dim = dim});
  if (!fits.ok() && checkpoint->columns_alone) {
    // Any policy may start: there are columns, and nothing was learned.
    TellGroups(learned.columns.space(), *learned.policy);
    if (learned.columns.space().size() > dim) {
      learned.policy->Grow(learned.columns.space().size());
    }
    return learned;
  }
  CODBAND_RETURN_IF_ERROR(fits);
  ByteReader in(checkpoint->shared);
  learned.users_of_policy->LoadShared(in);
  in.ExpectEnd();
  if (!in.ok()) {
    return Status::Corruption("the checkpoint cannot be read: " + in.status().message());
  }
  TellGroups(learned.columns.space(), *learned.policy);  // older checkpoints do not know them
  learned.recent.assign(checkpoint->recent.begin(), checkpoint->recent.end());
  learned.users = checkpoint->users;
  learned.changes = checkpoint->changes;
  return learned;
}

Result<std::optional<CheckpointRecord>> Learner::ReadCheckpoint() const {
  auto record = CheckpointRecord::Get(store_);
  if (!record.ok() && record.status().code() == StatusCode::kNotFound) {
    return std::optional<CheckpointRecord>();
  }
  if (!record.ok()) return record.status();
  if (record.value().sequence == 0) {
    // Nothing was learned. If there is nothing to replay either, any policy may start.
    bool log_is_empty = true;
    CODBAND_RETURN_IF_ERROR(store_.Scan(store::Table::kLog, {}, {}, [&](auto, auto) {
      log_is_empty = false;
      return false;
    }));
    if (log_is_empty) return std::optional<CheckpointRecord>();
  }
  if (!record.value().columns.empty()) {
    ByteReader in(record.value().columns);
    ColumnBook columns;
    columns.Load(in);
    record.value().columns_alone = columns.decisions() == 0 && record.value().users == 0;
    CODBAND_RETURN_IF_ERROR(store_.Scan(store::Table::kLog, {}, {}, [&](auto, auto value) {
      const auto entry = LogRecord::Decode(value);
      record.value().columns_alone &=
          entry.ok() && (entry.value().kind == LogRecord::Kind::kColumns ||
                         entry.value().kind == LogRecord::Kind::kForgetItem);
      return record.value().columns_alone;
    }));
  }
  return std::optional<CheckpointRecord>(std::move(record).value());
}

Result<std::unique_ptr<Learner>> Learner::Open(store::Store& store, const EngineOptions& options,
                                               std::size_t dim) {
  auto archives =
      std::make_unique<Archives>(Archives{.users = StoreArchive(store, store::Table::kUsers),
                                          .people = StoreArchive(store, store::Table::kPeople)});
  auto left = Load(*archives, options, nullptr, dim);
  if (!left.ok()) return left.status();
  auto right = Load(*archives, options, nullptr, dim);
  if (!right.ok()) return right.status();
  std::unique_ptr<Learner> learner(new Learner(store, options, dim, std::move(archives),
                                               std::move(left).value(), std::move(right).value()));
  CODBAND_RETURN_IF_ERROR(learner->quarantine_.Load());
  std::map<std::uint64_t, Applied> fresh;
  CODBAND_RETURN_IF_ERROR(learner->Rebuild(std::numeric_limits<std::uint64_t>::max(), fresh));
  return learner;
}

Learner::Failure Learner::Describe(std::exception_ptr error, std::uint64_t sequence,
                                   LogRecord record) {
  Failure failure{.sequence = sequence, .record = std::move(record)};
  try {
    std::rethrow_exception(std::move(error));
  } catch (const std::bad_alloc&) {
    failure.kind = Failure::Kind::kMemory;
    failure.reason = "there was not enough memory";
  } catch (const ArchiveError& unread) {
    // Damaged bytes stay damaged; anything else may pass.
    if (unread.code() != StatusCode::kCorruption) failure.kind = Failure::Kind::kStore;
    failure.reason = unread.what();
  } catch (const std::exception& other) {
    failure.reason = other.what();
  } catch (...) {
    failure.reason = "an unknown exception";
  }
  return failure;
}

bool Learner::Recover(std::uint64_t last, std::optional<Failure> failure,
                      std::map<std::uint64_t, Applied>& fresh) {
  Status status;
  try {
    if (failure && failure->kind == Failure::Kind::kStore) {
      status = Status(StatusCode::kUnavailable, failure->reason);
    } else if (failure && failure->kind == Failure::Kind::kEntry) {
      status = PutAside(*failure);
    }
    if (status.ok()) status = Rebuild(last, fresh);
  } catch (const std::exception& error) {
    status = Status(StatusCode::kUnavailable, error.what());
  }
  if (!status.ok()) Wait(status);
  return status.ok();
}

// Every entry that is put aside costs one more pass. So that many of them cost no more than a few
// passes over the log, what comes before each is saved.
Status Learner::Rebuild(std::uint64_t last, std::map<std::uint64_t, Applied>& fresh) {
  int memory_failures = 0;
  for (bool with_memo = true;; with_memo = false) {
    std::optional<Failure> failure;
    auto built = Build(last, with_memo, failure);
    if (!built.ok()) return built.status();
    if (!failure) {
      fresh.merge(built.value().fresh);
      Install(std::move(built).value());
      return {};
    }
    if (failure->kind == Failure::Kind::kStore) {
      return Status(StatusCode::kUnavailable, failure->reason);
    }
    if (failure->kind == Failure::Kind::kMemory && ++memory_failures < kMemoryTries) {
      std::this_thread::sleep_for(kMemoryPause);
      continue;
    }
    memory_failures = 0;
    CODBAND_RETURN_IF_ERROR(PutAside(*failure));
    if (options_.read_only || failure->sequence <= applied_sequence_) continue;
    std::optional<Failure> earlier;
    auto before = Build(failure->sequence, false, earlier);
    if (!before.ok() || earlier) continue;
    fresh.merge(before.value().fresh);
    Install(std::move(before).value());
    static_cast<void>(MakeCheckpoint());  // the log has it all if not
  }
}

Result<Learner::Built> Learner::Build(std::uint64_t last, bool with_memo,
                                      std::optional<Failure>& failure) {
  Built built;
  auto checkpoint = ReadCheckpoint();
  if (!checkpoint.ok()) return checkpoint.status();
  built.checkpoint = std::move(checkpoint).value();
  const CheckpointRecord* loaded = built.checkpoint ? &*built.checkpoint : nullptr;
  for (std::optional<Learned>* copy : {&built.left, &built.right}) {
    auto learned = Load(*archives_, options_, loaded, dim_);
    if (!learned.ok()) return learned.status();
    *copy = std::move(learned).value();
    if (loaded != nullptr) CODBAND_RETURN_IF_ERROR((*copy)->groups.Load(store_));
  }
  std::uint64_t expected = built.left->sequence + 1;
  Status status;
  const auto skip_to = [&](std::uint64_t sequence) {
    if (sequence > expected && !quarantine_.Contains(expected)) {
      status = PutAside(Gap(expected, sequence - 1));
    }
    expected = sequence + 1;
    return status.ok();
  };
  const bool all = last == std::numeric_limits<std::uint64_t>::max();
  const std::string from = NumberKey(expected);
  const Status read = store_.Scan(
      store::Table::kLog, from, all ? std::string() : NumberKey(last + 1),
      [&](std::string_view key, std::string_view value) {
        const auto sequence = ReadNumberKey(key);
        if (!sequence.ok()) return true;  // it is no entry: none has such a key
        if (!skip_to(sequence.value())) return false;
        return BuildEntry(built, sequence.value(), value, with_memo, failure) || !failure;
      });
  CODBAND_RETURN_IF_ERROR(read);
  // What was acknowledged must be there.
  if (status.ok() && !failure && !all && expected <= last) skip_to(last + 1);
  CODBAND_RETURN_IF_ERROR(status);
  built.left->sequence = built.right->sequence = expected - 1;
  return built;
}

// Whether the entry is in both copies. If not, it is left out, or `failure` says why the two cannot
// be used any more.
bool Learner::BuildEntry(Built& built, std::uint64_t sequence, std::string_view bytes,
                         bool with_memo, std::optional<Failure>& failure) {
  if (quarantine_.Contains(sequence)) return false;
  auto record = LogRecord::Decode(bytes);
  if (!record.ok()) {
    failure = {.sequence = sequence, .reason = "cannot be read: " + record.status().message()};
    return false;
  }
  try {
    memo_.StartRecording();
    LearnMemo* const memo = with_memo ? &memo_ : nullptr;
    Applied applied = ApplyTo(*built.left, record.value(), sequence, memo);
    memo_.StartReplay();
    static_cast<void>(ApplyTo(*built.right, record.value(), sequence, memo));
    if (record.value().kind == LogRecord::Kind::kForget && !applied.mistaken) {
      built.erased.push_back(record.value().user_id());
    }
    ++built.entries;
    if (sequence <= applied_sequence_) return true;
    if (applied.change) built.change_times.push_back(applied.change->time_ms);
    if (sequence <= given_sequence_) built.fresh.emplace(sequence, std::move(applied));
    return true;
  } catch (...) {
    failure = Describe(std::current_exception(), sequence, std::move(record).value());
    return false;
  }
}

void Learner::Install(Built built) {
  if (applied_sequence_ == 0 && built.checkpoint) {  // at the start
    for (const Change& change : built.checkpoint->recent) NoteChange(change.time_ms);
  }
  for (const std::int64_t time_ms : built.change_times) NoteChange(time_ms);
  const std::uint64_t sequence = built.left->sequence;
  std::optional<Learned>* next = &built.left;
  learned_.Write([&](Learned& learned) {
    learned = std::move(**next);
    next = &built.right;
  });
  erased_ = std::move(built.erased);
  entries_since_checkpoint_ = built.entries;
  checkpoint_sequence_ = built.checkpoint ? built.checkpoint->sequence : 0;
  cleared_sequence_ = checkpoint_sequence_.load();
  has_checkpoint_ = built.checkpoint.has_value();
  applied_sequence_ = sequence;
}

Status Learner::PutAside(const Failure& failure) {
  return PutAside({.first = failure.sequence,
                   .last = failure.sequence,
                   .reason = failure.reason,
                   .forgets = failure.record.kind == LogRecord::Kind::kForget,
                   .user = failure.record.user,
                   .event = failure.record.event,
                   .reward = failure.record.reward});
}

Status Learner::PutAside(QuarantinedEntry entry) {
  entry.time_ms = options_.now_ms();
  const std::string which = entry.first == entry.last
                                ? fmt::format("log entry {}", entry.first)
                                : fmt::format("log entries {} to {}", entry.first, entry.last);
  const std::string reason = entry.reason;
  CODBAND_RETURN_IF_ERROR(quarantine_.Add(std::move(entry), checkpoint_sequence_));
  Tell(LogLevel::kError, "quarantine",
       fmt::format("{} cannot be learned and is left out from now on: {}; learning goes on; "
                   "'codband doctor' lists what is in quarantine",
                   which, reason));
  if (quarantine_.EndsInARow(kRowThatTells)) {
    Tell(
        LogLevel::kError, "learning",
        fmt::format("the last {} log entries could not be learned: what was learned before them is "
                    "broken; restore a backup of before ('codband restore'), or delete the user "
                    "whose rewards or actions are far out of range",
                    kRowThatTells));
  }
  return {};
}

void Learner::Wait(const Status& status) {
  next_try_seconds_ = WallSeconds() + kSecondsBetweenTries;
  const std::string problem =
      fmt::format("learning waits at log entry {}: {}; nothing is lost, it is tried again",
                  applied_sequence_ + 1, status.message());
  SetError(problem);
  if (!std::exchange(waits_, true)) Tell(LogLevel::kError, "learning", problem);
}

void Learner::TryAgain() {
  std::map<std::uint64_t, Applied> fresh;
  if (!Recover(given_sequence_, std::nullopt, fresh)) return;
  waits_ = false;
  SetError("");
  Tell(LogLevel::kInfo, "learning",
       fmt::format("learning goes on; what was waiting has been learned, up to log entry {}",
                   applied_sequence_.load()));
}

}  // namespace codband::engine
