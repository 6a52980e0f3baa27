#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codband/base/status.h"
#include "codband/engine/commit_group.h"
#include "codband/engine/records.h"
#include "codband/store/store.h"

namespace codband::engine {

Status NoSuchEvent(const std::string& event_id);  // kNotFound

// The decisions that wait for a reward, as the store has them: by event id (kPending), by the time
// at which their wait ends (kDeadlines), and the users who were forgotten lately (kMeta), whose
// decisions no longer count.
//
// Decisions with an outcome are remembered for a while, without their user and features, so that a
// second or late reward is told from an unknown one: a rewarded decision until its wait would have
// ended, an expired one for one more wait. That an event of the past was learned is remembered for
// good, as a hash of its id (kImported). All times are those of the wait clock.
//
// Changes go into a CommitGroup. Within that group they are visible at once, and Committed() takes
// them over when the group is durable. Not thread-safe: used only on the committer's thread.
class PendingDecisions {
 public:
  // Of the keys of forgotten users (kMeta), whose values are when that was.
  static constexpr std::string_view kForgottenPrefix = "forgotten/";

  // `store` outlives it.
  PendingDecisions(const store::Store& store, std::int64_t reward_wait_ms)
      : store_(store), reward_wait_ms_(reward_wait_ms) {}

  // Reads what the last process left: every decision, to count those that wait, and every deadline.
  Status Load();

  // kConflict if a request for the decision `known` must not be answered with it: it has its
  // outcome, or was made for another request.
  static Status CheckRepeat(const std::string& event_id, const PendingDecision& known,
                            std::uint64_t fingerprint);

  // How many wait for a reward.
  std::int64_t waiting() const { return waiting_; }

  // The decision as the store has it; kNotFound if there is none. From any thread.
  Result<PendingDecision> Read(const std::string& event_id) const;
  // The same with what the group changes.
  Result<PendingDecision> Find(const std::string& event_id, const CommitGroup& group) const;
  // Whether its user was forgotten after it was made. Never true once it has an outcome: what is
  // then left of it names no user.
  bool IsForgotten(const PendingDecision& pending, const CommitGroup& group) const;

  // kConflict if it is an event of the past that was learned. Of what the store has; what the group
  // changes is found by Find.
  Status CheckNotImported(const std::string& event_id) const;

  // A decision whose event id is new.
  void Add(std::string event_id, UserId user, std::string bytes, std::int64_t deadline_ms,
           CommitGroup& group) const;
  // The same for an event id that the group may look for.
  void AddNamed(const std::string& event_id, UserId user, std::string bytes,
                std::int64_t deadline_ms, CommitGroup& group) const;
  // A deferred decision is shown: its wait begins now.
  void Activate(const std::string& event_id, PendingDecision pending, CommitGroup& group) const;
  // A decision that waits gets its reward.
  void MarkRewarded(const std::string& event_id, const PendingDecision& pending,
                    CommitGroup& group) const;
  // Deletes the decision if its user was forgotten after it was made.
  void EraseIfForgotten(const std::string& event_id, CommitGroup& group) const;
  // The user's decisions up to now can no longer be rewarded. Those that wait are deleted: returns
  // how many. kConflict if one of them is of another user, whose name has the same id.
  Result<std::size_t> Forget(UserId user, const std::string& name, CommitGroup& group) const;
  // When the user was forgotten last, if that was lately.
  std::optional<std::int64_t> ForgottenAt(UserId user, const CommitGroup& group) const;

  // Ends the waits that are over: about `most`, those that ended first.
  struct Expiry {
    // Decisions that were shown and had no reward.
    std::vector<std::pair<std::string, PendingDecision>> unrewarded = {};
    bool more = false;  // are over
    // What could not be read, if anything. It stays as it is and is tried again at the next call;
    // the waits behind it end all the same.
    Status status = {};
  };
  Expiry EndWaits(std::size_t most, CommitGroup& group) const;

  // Adds the deadline of the decisions that wait from this group on. Last, before it is written.
  void Seal(CommitGroup& group);
  // The group is durable.
  void Committed(CommitGroup& group);

 private:
  Status LoadForgotten();
  void Put(const std::string& event_id, std::string bytes, CommitGroup& group) const;
  static void Delete(const std::string& event_id, CommitGroup& group);
  static void StartWait(const std::string& event_id, std::int64_t until_ms, CommitGroup& group);
  // Returns how many of its decisions could not be read.
  std::size_t EndWaitsOf(const Deadline& deadline, CommitGroup& group, Expiry& expiry) const;
  Status EndWait(const std::string& event_id, std::int64_t time_ms, CommitGroup& group,
                 Expiry& expiry) const;
  void UnmarkLongForgotten(CommitGroup& group) const;
  void CountWaiting(UserId user, int change);

  const store::Store& store_;
  const std::int64_t reward_wait_ms_;
  std::int64_t waiting_ = 0;
  std::unordered_map<UserId, std::int64_t> waiting_of_;  // more than 0
  std::unordered_map<UserId, std::int64_t> forgotten_;   // lately, and when
  std::uint64_t next_deadline_ = 0;                      // its number
  // All deadlines before this key are gone: scans start here and skip their tombstones.
  std::string first_deadline_;
  std::int64_t old_deadlines_end_ = 0;  // the last deadline found by Load()
};

}  // namespace codband::engine
