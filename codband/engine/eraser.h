#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "codband/engine/engine.h"
#include "codband/policy/policy.h"
#include "codband/store/store.h"

namespace codband::engine {

// Removes what is left of forgotten users from the files of the store, on a thread of its own. The
// learner has deleted their records; but a deleted record stays in a file until that is rewritten,
// and their decisions stay until the wait for a reward is over.
//
// Some time after the first of them was forgotten, for all who were meanwhile:
//   1. their decisions are deleted;
//   2. the store rewrites the files that hold something of them (Store::Scrub).
// A mark in the store (kMeta), written together with the request to forget, makes the next process
// go on with it after a crash. If a step fails all are tried again after the same time.
//
// Thread-safe.
class Eraser {
 public:
  // Asks for the deletion of those of these decisions whose user was forgotten.
  using DeleteDecisions =
      std::function<void(std::vector<std::string> event_ids, Engine::Done<Status> done)>;

  // `store` outlives it.
  Eraser(store::Store& store, std::int64_t delay_ms, DeleteDecisions delete_decisions);
  ~Eraser() { Stop(); }

  static constexpr std::string_view kPrefix = "erase/";  // of the keys (kMeta)
  // The key of the mark. Its value is empty.
  static std::string Key(UserId user);

  // Goes on with those whom the last process left.
  Status Load();
  void Start();
  // Ends the thread; those who wait are left to the next process.
  void Stop();

  // The records of these users, who were forgotten up to this log entry, have been deleted.
  void Add(const std::vector<UserId>& users, std::uint64_t sequence);

  // Nothing is left of users who were forgotten up to this log entry, given that the records of
  // those up to `cleared` have been deleted, and Add was told so. 0: not known.
  std::uint64_t ErasedUpTo(std::uint64_t cleared) const;
  // What Add was told of the last users of whom nothing is left; 0: there were none.
  std::uint64_t last_erased() const;

  std::size_t waiting() const;
  // Why the last attempt failed; empty if it did not.
  std::string last_error() const;

 private:
  void Run();
  Status Erase(const std::set<UserId>& users);
  Status DeleteDecisionsOf(const std::set<UserId>& users);

  store::Store& store_;
  const std::int64_t delay_ms_;
  const DeleteDecisions delete_decisions_;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  std::set<UserId> users_;
  std::uint64_t users_sequence_ = 0;  // up to which they were forgotten
  std::set<UserId> erasing_;
  std::uint64_t erased_sequence_ = 0;
  bool stopping_ = false;
  std::string last_error_;

  std::thread thread_;
};

}  // namespace codband::engine
