#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "codband/engine/activity_series.h"
#include "codband/engine/catalogue.h"
#include "codband/engine/column_clerk.h"
#include "codband/engine/commit_group.h"
#include "codband/engine/engine.h"
#include "codband/engine/learner.h"
#include "codband/engine/left_right.h"
#include "codband/engine/pending_decisions.h"
#include "codband/engine/wait_clock.h"
#include "codband/store/store.h"

namespace codband::engine {

// The key in kMeta of how far a partition has followed the catalogue of its loop.
inline constexpr std::string_view kCatalogueKey = "catalogue";

// Makes everything durable, in one order, on a thread of its own (group commit). For all commands
// that wait, up to 1024 at a time:
//
//   1. Fill() adds what each command changes to one batch. A reward is an entry in the
//      write-ahead log of what is to be learned, and the mark that its decision has been rewarded.
//      New names get their columns here, and an entry of the log tells the learner.
//   2. Expire() adds the decisions whose wait is over, with their default reward.
//   3. Commit() writes the batch with a single fsync. *Here everything in the group becomes
//      durable*, or nothing.
//   4. The log entries go to the learner, which acknowledges a reward once readers see it.
//      Everything else is acknowledged at once, in the order of the commands.
//
// If the write fails, or memory runs out before it, every command of the group is answered with the
// reason, and nothing has changed.
class Committer {
 public:
  // A decision that was made, with some of its fields. `fingerprint`: not 0 if the caller named the
  // event, so that it may exist already.
  struct RankCommand {
    std::string event_id;
    UserId user = 0;
    std::int64_t made_ms = 0;
    std::int64_t deadline_ms = 0;
    std::uint64_t fingerprint = 0;
    bool past = false;
    std::string action = {};
    std::string pending;  // a PendingDecision, encoded
    // What it has that had no column when it was made; its features are then completed.
    std::unique_ptr<NewColumns> columns = {};
    std::vector<std::uint32_t> context_columns = {};  // that its context and user have
    Engine::Done<Status> done;
  };
  struct RewardCommand {
    std::string event_id;
    double value = 0;
    Engine::Done<Result<RewardReply>> done;
  };
  struct ActivateCommand {
    std::string event_id;
    Engine::Done<Status> done;
  };
  struct PutItemsCommand {
    std::vector<std::shared_ptr<const Item>> items;
    Engine::Done<Status> done;
  };
  struct DeleteItemCommand {
    std::string id;
    Engine::Done<Status> done;
  };
  struct ForgetCommand {
    std::string user;
    Engine::Done<Status> done;
  };
  // Deletes those of these decisions whose user was forgotten.
  struct EraseCommand {
    std::vector<std::string> event_ids;
    Engine::Done<Status> done;
  };
  // Changes of the catalogue that all partitions make, up to this place (engine/partition.h), and
  // the columns that the loop has given out up to there.
  struct FollowCommand {
    struct Change {
      std::vector<std::shared_ptr<const Item>> put = {};
      std::vector<std::string> deleted = {};
    };
    std::uint64_t sequence = 0;
    std::uint64_t first_column = 0;
    ColumnClerk::Additions columns = {};
    std::vector<Change> changes = {};
    Engine::Done<Status> done;
  };
  // What other partitions have learned.
  struct ImportCommand {
    std::string pool;
    Engine::Done<Status> done;
  };
  using Command =
      std::variant<RankCommand, RewardCommand, ActivateCommand, PutItemsCommand, DeleteItemCommand,
                   ForgetCommand, EraseCommand, FollowCommand, ImportCommand>;

  // Who is told of what has become durable, on the committer's thread.
  struct Sinks {
    std::function<void(std::vector<Learner::Entry>)> learn;      // log entries, in order
    std::function<void(const FinishedDecision&)> finished = {};  // may be empty
    // The answer to a reward that could not be learned, by HashEvent; may be empty.
    std::function<std::optional<Status>(std::uint64_t event)> rejection = {};
  };

  // Counters since the start. `pending` is a gauge.
  struct Counters {
    std::atomic<std::uint64_t> accepted{0}, duplicate{0}, late{0}, unknown{0};
    std::atomic<std::uint64_t> defaulted{0}, expired{0};
    std::atomic<std::int64_t> pending{0};
  };

  // Reads the pending decisions from the store. `last_sequence` is that of the last log entry.
  // `clerk` gives out columns; none where the number of features is fixed. What is passed by
  // reference outlives it. The clocks of the options are set.
  static Result<std::unique_ptr<Committer>> Open(store::Store& store,
                                                 LeftRight<Catalogue>& catalogue,
                                                 const EngineOptions& options,
                                                 std::uint64_t last_sequence, Sinks sinks,
                                                 std::unique_ptr<ColumnClerk> clerk = {});
  ~Committer();

  void Start();
  // Commits what waits and ends the thread. Later commands are refused.
  void Stop();

  // Calls the command's `done` later, or at once with kUnavailable if the queue is full.
  void Submit(Command command);

  // The decision of an event as it is on disk; kNotFound if there is none. From any thread.
  Result<PendingDecision> Look(const std::string& event_id) const;
  const WaitClock& clock() const { return clock_; }

  const Counters& counters() const { return counters_; }
  const ActivitySeries& activity() const { return activity_; }
  std::size_t queue_length() const;
  std::uint64_t committed_sequence() const { return committed_sequence_.load(); }
  // Why the last write failed, or why waits cannot be ended; empty if neither is so.
  std::string last_error() const;

 private:
  Committer(store::Store& store, LeftRight<Catalogue>& catalogue, const EngineOptions& options,
            const WaitClock& clock, std::uint64_t last_sequence, Sinks sinks,
            std::unique_ptr<ColumnClerk> clerk);
  void Run();
  std::vector<Command> TakeCommands();

  void Process(RankCommand& command, CommitGroup& group);
  void Process(RewardCommand& command, CommitGroup& group);
  void Process(ActivateCommand& command, CommitGroup& group);
  void Process(PutItemsCommand& command, CommitGroup& group);
  void Process(DeleteItemCommand& command, CommitGroup& group);
  void Process(ForgetCommand& command, CommitGroup& group);
  void Process(EraseCommand& command, CommitGroup& group);
  void Process(FollowCommand& command, CommitGroup& group);
  void Process(ImportCommand& command, CommitGroup& group);
  // Gives columns to what has none and completes the decision's features. From then on `done` waits
  // until readers see the columns, so that the next ranking has them.
  void AddColumns(RankCommand& command, CommitGroup& group);
  // In a loop of partitions: asks it for columns, once the decision is durable.
  void AskLoop(ColumnClerk::Additions columns, CommitGroup& group) const;
  // Logs the additions to `first` columns. Returns what is to be told how the write went; it then
  // calls `done`, once the learner has them, too.
  Engine::Done<Status> LogColumns(std::size_t first, ColumnClerk::Additions additions,
                                  Engine::Done<Status> done, CommitGroup& group) const;
  // The decision has its outcome: for the log of what is to be learned, and for the decision log.
  void Conclude(const std::string& event_id, const PendingDecision& pending, double reward,
                bool defaulted, Engine::Done<Status> done, CommitGroup& group) const;
  // Adds what the commands change to the group. If it fails, the group must be dropped.
  Status Fill(std::vector<Command>& commands, CommitGroup& group);
  // Ends the waits that are over, about `most` of them. Returns whether there are more. `status`:
  // as of Fill.
  bool Expire(std::size_t most, CommitGroup& group, Status& status);
  // Adds where the wait clock stands, if it has not been saved lately.
  void SaveClock(CommitGroup& group);
  // Writes the group. On success everybody is told; on failure nothing has changed.
  Status Commit(CommitGroup& group);
  void Acknowledge(CommitGroup& group, const Status& status);
  // Remembers a problem, or that there is none, and tells the operator if that is news.
  void Note(std::string& remembered, const Status& status, std::string_view cause,
            std::string_view broken, std::string_view mended);

  store::Store& store_;
  LeftRight<Catalogue>& catalogue_;
  const EngineOptions options_;
  const WaitClock clock_;
  const Sinks sinks_;

  // Of the committer's thread.
  PendingDecisions decisions_;
  ActivitySeries activity_;
  const std::unique_ptr<ColumnClerk> clerk_;  // nullptr: the number of features is fixed
  double last_expiry_seconds_ = 0;
  std::int64_t clock_saved_ms_ = 0;

  Counters counters_;
  std::atomic<std::uint64_t> committed_sequence_;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  std::vector<Command> queue_;
  bool stopping_ = false;
  std::string write_error_;
  std::string expiry_error_;
  std::string follow_error_;

  std::thread thread_;
};

}  // namespace codband::engine
