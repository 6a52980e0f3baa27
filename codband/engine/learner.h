#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "codband/engine/column_book.h"
#include "codband/engine/engine.h"
#include "codband/engine/group_series.h"
#include "codband/engine/left_right.h"
#include "codband/engine/quarantine.h"
#include "codband/engine/records.h"
#include "codband/policy/learn_memo.h"
#include "codband/policy/paged_user_table.h"
#include "codband/policy/policy.h"
#include "codband/store/store.h"

namespace codband::engine {

inline constexpr std::int64_t kHourMs = 3'600'000;

// The features that models begin with where every name has a column. Parameters whose default is
// made from the number of features are made from this one.
inline constexpr std::size_t kFirstDim = 16;

// Of all that was learned there are so many in memory (left_right.h).
inline constexpr std::size_t kCopies = 2;

// A user's record could not be read.
class ArchiveError : public UnreadableRecord {
 public:
  explicit ArchiveError(const Status& status)
      : UnreadableRecord(status.message()), code_(status.code()) {}
  StatusCode code() const { return code_; }

 private:
  StatusCode code_;
};

// What who sends a name is told whose id is that of another user; kConflict.
Status MistakenName(std::string_view user);

// Everything learned up to one place in the log.
struct Learned {
  std::unique_ptr<Policy> policy;
  std::unique_ptr<PagedUsers> unpaged;  // stands in for policies that cannot page their users
  PagedUsers* users_of_policy;          // the policy's, or `unpaged`
  PagedUserTable<Person> people;
  ColumnBook columns = {};         // empty where the number of features is fixed
  std::deque<Change> recent = {};  // changes, newest last
  GroupSeries groups = {};
  std::uint64_t users = 0;
  std::uint64_t changes = 0;
  std::uint64_t sequence = 0;  // of the last log entry in it

  // That the records of users take.
  std::size_t user_bytes() const { return users_of_policy->bytes_in_memory() + people.bytes(); }
};

// Applies the write-ahead log, one entry after another, on a thread of its own, and writes
// checkpoints. Readers never wait for it: there are two copies of what it has learned (left-right
// concurrency).
//
// State = checkpoint + log since. Applying is a function of the state and the entry alone, so
// replaying the log after a crash gives the same bits. For a group of entries:
//
//   1. Apply() applies them to the copy that is hidden and shows it to readers.
//   2. `done` of each entry is called: a reward is acknowledged here, in the order of the log.
//   3. When no reader is left on the other copy the entries are applied to it as well; the memo of
//      the first spares it the long computations.
//   4. If a checkpoint is due MakeCheckpoint() writes what all users share and the records of the
//      users who have changed, atomically; then the log up to there is deleted, and users who have
//      not been seen for longest are evicted.
//
// An entry that cannot be applied (the policy throws) is put into quarantine and left out for ever.
// As the copy that it was applied to may hold half of it, both copies are then made anew from the
// checkpoint and the log; readers see the intact copy meanwhile. What is not the entry's fault is
// tried again: out-of-memory a few times, store failures until the store recovers.
class Learner {
 public:
  // Loads the last checkpoint and replays the log since. Entries that are missing, damaged or that
  // throw go into quarantine. Starts no thread yet. `store` outlives it. `dim` 0: as many features
  // as there are columns.
  static Result<std::unique_ptr<Learner>> Open(store::Store& store, const EngineOptions& options,
                                               std::size_t dim);
  ~Learner();

  // Is told of forgotten users once a checkpoint without them is durable and the log up to there is
  // deleted. Before Start().
  using OnErased = std::function<void(const std::vector<UserId>& users, std::uint64_t sequence)>;
  void set_on_erased(OnErased tell) { on_erased_ = std::move(tell); }

  // Starts the thread; a read-only engine never does.
  void Start();
  // Applies what was submitted, makes a checkpoint, ends the thread. If that checkpoint fails,
  // nothing is lost: the log holds it all.
  void Stop();

  // An entry that is durable in the log. Entries come in the order of their sequence. `done` is
  // called once readers see it; with kNotFound if the user to be forgotten is unknown, with the
  // reason if it is in quarantine, with kUnavailable if learning waits for the store: it is then
  // learned later.
  struct Entry {
    std::uint64_t sequence = 0;
    LogRecord record;
    Engine::Done<Status> done = {};
  };
  void Submit(std::vector<Entry> entries);

  // See LeftRight::Read.
  template <typename Function>
  decltype(auto) Read(const Function& read) const {
    return learned_.Read(read);
  }

  // Makes a checkpoint and waits for it.
  Status Checkpoint();

  // Runs a function on the learner's thread between groups of entries, and waits for it: nothing is
  // learned and no checkpoint is made meanwhile. Throws what the function throws.
  void RunBetween(const std::function<void()>& task);

  // The records that the store lacks or has in an older version. Together with the store they are
  // a snapshot; waits for the learner to be between groups of entries.
  struct Unsaved {
    std::unordered_map<UserId, std::string> users;
    std::unordered_map<UserId, std::string> people;
    std::vector<UserId> erased;
  };
  Unsaved CollectUnsaved();

  // As of engine::Partition.
  std::optional<Partition::Register> Publish(std::uint64_t version, bool always);
  std::uint64_t learned_here() const { return learned_here_.load(); }

  std::uint64_t applied_sequence() const { return applied_sequence_.load(); }
  std::uint64_t checkpoint_sequence() const { return checkpoint_sequence_.load(); }
  // Up to which the checkpoint has all, the log is deleted, and forgotten users were told of.
  std::uint64_t cleared_sequence() const { return cleared_sequence_.load(); }
  std::uint64_t checkpoints() const { return checkpoints_.load(); }  // since the start
  bool has_checkpoint() const { return has_checkpoint_.load(); }
  // Of changes before the start those that the checkpoint lists are counted.
  std::uint64_t ChangesSince(std::int64_t time_ms) const;
  const Quarantine& quarantine() const { return quarantine_; }
  // What is wrong now; empty if nothing is.
  std::string last_error() const;

 private:
  // The records of users who are not in memory.
  class StoreArchive final : public UserArchive {
   public:
    StoreArchive(const store::Store& store, store::Table table) : store_(store), table_(table) {}
    bool Read(UserId user, std::string& bytes) const override;

   private:
    const store::Store& store_;
    store::Table table_;
  };
  struct Archives {
    StoreArchive users;
    StoreArchive people;
  };

  struct Applied {
    std::optional<Change> change = {};  // that was detected
    bool known = true;                  // false: an unknown user was to be forgotten
    bool mistaken = false;              // another user has the id of this name: nothing has changed
  };
  // Both copies, made anew up to one place in the log.
  struct Built {
    std::optional<CheckpointRecord> checkpoint = {};
    std::optional<Learned> left = {}, right = {};
    std::vector<UserId> erased = {};
    std::uint64_t entries = 0;                    // since the checkpoint
    std::vector<std::int64_t> change_times = {};  // of changes that readers had not seen
    std::map<std::uint64_t, Applied> fresh = {};  // submitted entries that they had not seen
  };
  // Why an entry could not be applied.
  struct Failure {
    enum class Kind { kEntry, kMemory, kStore } kind = Kind::kEntry;
    std::uint64_t sequence = 0;
    LogRecord record = {};
    std::string reason = {};
  };

  Learner(store::Store& store, const EngineOptions& options, std::size_t dim,
          std::unique_ptr<Archives> archives, Learned left, Learned right);
  static Result<Learned> Load(const Archives& archives, const EngineOptions& options,
                              const CheckpointRecord* checkpoint, std::size_t dim);
  Result<std::optional<CheckpointRecord>> ReadCheckpoint() const;
  void Run();
  // Applies the entries to both copies and acknowledges them in between.
  void Apply(std::vector<Entry> entries);
  // The same for as many of them as possible; how many have been dealt with. 0: learning waits.
  std::size_t ApplyTogether(std::span<const Entry> entries);
  void Acknowledge(std::span<const Entry> entries, std::span<const Applied> applied);
  static Status Outcome(const Entry& entry, const Applied& applied, const Quarantine& quarantine);
  Applied ApplyTo(Learned& learned, const LogRecord& record, std::uint64_t sequence,
                  LearnMemo* memo) const;
  // Throws std::runtime_error if it cannot be imported.
  void ImportPool(Learned& learned, std::string_view bytes) const;
  // A decision is learned; its user may be anonymous.
  LearnOutcome LearnFrom(Learned& learned, const LogRecord& record, LearnMemo* memo) const;

  // learner_recovery.cc:
  static Failure Describe(std::exception_ptr error, std::uint64_t sequence, LogRecord record);
  // After `failure`, if it is given: makes both copies anew up to the entry `last`, without those
  // in quarantine, and shows them. Learning waits if that is not possible.
  bool Recover(std::uint64_t last, std::optional<Failure> failure,
               std::map<std::uint64_t, Applied>& fresh);
  Status Rebuild(std::uint64_t last, std::map<std::uint64_t, Applied>& fresh);
  Result<Built> Build(std::uint64_t last, bool with_memo, std::optional<Failure>& failure);
  bool BuildEntry(Built& built, std::uint64_t sequence, std::string_view bytes, bool with_memo,
                  std::optional<Failure>& failure);
  void Install(Built built);
  Status PutAside(const Failure& failure);
  Status PutAside(QuarantinedEntry entry);
  void Wait(const Status& status);
  void TryAgain();

  void NoteChange(std::int64_t time_ms);
  bool CheckpointDue() const;
  Status MakeCheckpoint();
  std::uint64_t CollectCheckpoint(store::StoreBatch& batch);
  Status WriteCheckpoint();
  // So that the users in memory have room in it.
  void Evict(Learned& learned) const;
  void SetError(const std::string& problem);
  void Tell(LogLevel level, std::string_view cause, std::string message) const;

  store::Store& store_;
  EngineOptions options_;
  OnErased on_erased_;
  const std::size_t dim_;
  std::unique_ptr<Archives> archives_;
  Quarantine quarantine_;
  LearnMemo memo_;  // what the first copy computes, for the second
  LeftRight<Learned> learned_;

  // Of the learner's thread.
  std::vector<UserId> erased_;       // forgotten since the last checkpoint
  std::vector<UserId> left_in_log_;  // forgotten before, and the log could not be shortened since
  std::uint64_t entries_since_checkpoint_ = 0;
  double last_checkpoint_seconds_ = 0;
  std::uint64_t given_sequence_ = 0;  // the last entry that was submitted
  bool waits_ = false;  // learning is suspended until the store recovers; the hidden copy may hold
                        // a partly applied entry
  double next_try_seconds_ = 0;
  bool log_left_ = false;  // log entries that the checkpoint contains could not be deleted

  std::atomic<std::uint64_t> applied_sequence_{0};
  std::atomic<std::uint64_t> learned_here_{1};  // entries but pools, since the start
  std::atomic<std::uint64_t> checkpoint_sequence_{0};
  std::atomic<std::uint64_t> cleared_sequence_{0};
  std::atomic<std::uint64_t> checkpoints_{0};
  std::atomic<bool> has_checkpoint_{false};

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  std::vector<Entry> queue_;
  std::vector<std::function<void()>> tasks_;
  bool stopping_ = false;
  std::string last_error_;
  std::deque<std::int64_t> change_times_;  // of the last hour or so

  std::thread thread_;
};

}  // namespace codband::engine
