#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

#include "codband/engine/catalogue.h"
#include "codband/engine/engine.h"
#include "codband/engine/learner.h"
#include "codband/engine/left_right.h"
#include "codband/engine/records.h"
#include "codband/store/store.h"

namespace codband::engine {

// Makes everything durable, in one order, on a thread of its own: decisions, rewards, items, who is
// to be forgotten. Whatever waits is written as one group with a single sync (group commit), then
// acknowledged; rewards go on to the learner and are acknowledged once they are learned.
//
// It also watches the clock: decisions whose wait is over get the default reward.
class Committer {
 public:
  // A decision that was made. `known_id`: the caller named the event, so that it may not be new.
  struct RankCommand {
    std::string event_id;
    bool known_id = false;
    std::int64_t deadline_ms = 0;
    std::string pending;  // a PendingDecision, encoded
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
  using Command = std::variant<RankCommand, RewardCommand, ActivateCommand, PutItemsCommand,
                               DeleteItemCommand, ForgetCommand>;

  // What happened since the start.
  struct Counters {
    std::atomic<std::uint64_t> accepted{0}, duplicate{0}, late{0}, unknown{0};
    std::atomic<std::uint64_t> defaulted{0}, expired{0};
    std::atomic<std::int64_t> pending{0};  // waiting now
  };

  // Reads what it needs from the store. Everything passed in outlives it. `options.now_ms` is set.
  static Result<std::unique_ptr<Committer>> Open(
      store::Store& store, Learner& learner, LeftRight<Catalogue>& catalogue,
      const EngineOptions& options, std::function<void(const FinishedDecision&)> on_finished);
  ~Committer();

  void Start();
  // Finishes what waits, ends the thread. What comes later is turned away.
  void Stop();

  // Calls the command's `done` later, or at once if there is no room for it.
  void Submit(Command command);

  const Counters& counters() const { return counters_; }
  std::size_t queue_length() const;
  std::uint64_t committed_sequence() const { return committed_sequence_.load(); }
  // What went wrong with the last write; empty if it worked.
  std::string last_error() const;

 private:
  struct Group;

  Committer(store::Store& store, Learner& learner, LeftRight<Catalogue>& catalogue,
            const EngineOptions& options, std::function<void(const FinishedDecision&)> on_finished);
  Status LoadForgotten();
  void Run();
  // Ends the waits that are over, about `most` of them. Returns whether there are more.
  bool Expire(std::size_t most, Group& group);
  // Writes the group and tells everybody; on failure nothing has changed. Returns whether it
  // worked.
  bool Finish(Group& group);

  void Process(RankCommand& command, Group& group);
  void Process(RewardCommand& command, Group& group);
  void Process(ActivateCommand& command, Group& group);
  void Process(PutItemsCommand& command, Group& group);
  void Process(DeleteItemCommand& command, Group& group);
  void Process(ForgetCommand& command, Group& group);
  // Takes the waits of a deadline's decisions as over, unless they were given more time.
  void ProcessDeadline(const Deadline& deadline, Group& group);
  void EndWait(const std::string& event_id, std::int64_t time_ms, Group& group);

  // The decision as the store and the group so far have it; kNotFound if there is none.
  Result<PendingDecision> FindPending(const std::string& event_id, const Group& group) const;
  // Whether its user was forgotten since.
  bool IsForgotten(const PendingDecision& pending, const Group& group) const;
  void PutPending(const std::string& event_id, std::string bytes, Group& group);
  void DeletePending(const std::string& event_id, Group& group);
  // The decision has its outcome: for the log of what is to be learned, and for the decision log.
  void Conclude(const std::string& event_id, const PendingDecision& pending, double reward,
                bool defaulted, Engine::Done<Status> done, Group& group);

  store::Store& store_;
  Learner& learner_;
  LeftRight<Catalogue>& catalogue_;
  EngineOptions options_;
  std::function<void(const FinishedDecision&)> on_finished_;

  // Of the committer's thread: who was forgotten lately, and when.
  std::unordered_map<UserId, std::int64_t> forgotten_;
  double last_expiry_seconds_ = 0;
  std::uint64_t next_deadline_ = 0;  // its number
  std::string first_deadline_;       // no key is before it: those deleted there are not walked over
  std::int64_t old_deadlines_end_ = 0;  // of the decisions made before the start

  Counters counters_;
  std::atomic<std::uint64_t> committed_sequence_{0};

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  std::vector<Command> queue_;
  bool stopping_ = false;
  std::string last_error_;

  std::thread thread_;
};

}  // namespace codband::engine
