#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "codband/base/string_hash.h"
#include "codband/engine/engine.h"
#include "codband/engine/learner.h"
#include "codband/engine/records.h"
#include "codband/store/store.h"

namespace codband::engine {

// What one group commit writes, and what follows once it is durable. If the write fails the group
// is dropped, and nothing has changed. Used by the committer's thread alone.
struct CommitGroup {
  std::uint64_t sequence = 0;  // of the last log entry, in the store or in this group
  std::int64_t now_ms = 0;     // by the wait clock
  std::int64_t wall_ms = 0;    // by the wall clock, for people
  store::StoreBatch batch = {};

  // Once it is durable:
  std::vector<Learner::Entry> entries = {};      // for the learner, in the order of the log
  std::vector<FinishedDecision> finished = {};   // for the decision log
  std::vector<Engine::Done<Status>> after = {};  // told how the write went
  std::uint64_t defaulted = 0;                   // for the counters
  // Items that the group puts into the catalogue.
  std::unordered_set<std::string, StringHash, std::equal_to<>> put_items = {};
  Activity activity = {};            // for the statistics; see ActivitySeries
  bool activity_is_written = false;  // in the batch

  // What the group changes about pending decisions; see PendingDecisions.
  struct Pending {
    // Decisions that the group writes, encoded; nothing: deleted.
    std::unordered_map<std::string, std::optional<std::string>, StringHash> decisions = {};
    std::unordered_map<UserId, std::int64_t> forgotten = {};  // and when
    std::vector<UserId> unmarked = {};  // forgotten so long ago that no decision of theirs is left
    Deadline deadline = {};             // of the decisions that wait from now on
    std::string after_expired = {};     // the first key after the deadlines that have been handled
    std::vector<std::pair<UserId, int>> waiting_changes = {};  // how many more wait, by user
    std::uint64_t expired = 0;
  };
  Pending pending = {};

  // Appends an entry to the write-ahead log of what is to be learned.
  void Log(LogRecord record, Engine::Done<Status> done) {
    batch.Put(store::Table::kLog, NumberKey(++sequence), record.Encode());
    entries.push_back({.sequence = sequence, .record = std::move(record), .done = std::move(done)});
  }
};

}  // namespace codband::engine
