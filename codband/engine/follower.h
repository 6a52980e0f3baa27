#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "codband/base/status.h"
#include "codband/engine/engine.h"
#include "codband/store/store.h"

namespace codband::engine {

class LocalEngine;

// An engine that is not served yet: it learns along what another one, on another machine, makes
// durable. What it has learned is the same, bit for bit, for both learn one log. It makes its own
// checkpoints and erases who was forgotten from its own files (Store::Tidy, Store::WriteBulk); what
// would go to other copies it never writes. Used by one thread at a time.
class Follower {
 public:
  // Loads what the store has, which stays where it is when the follower ends. kNotFound: nothing is
  // in it yet. Others as of Engine::Open.
  static Result<std::unique_ptr<Follower>> Open(std::unique_ptr<store::Store> store,
                                                const EngineOptions& options);
  ~Follower();
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  // The store has these changes now, which the other engine has made: learns what is in them, on a
  // thread of its own. If it fails the follower cannot go on, and another one begins with what the
  // store has.
  Status Learn(const store::StoreBatch& changes);
  // Waits until everything that it was given is learned. kUnavailable: that is not possible now.
  Status Await() const;
  // Nothing is in the files any more of users who were forgotten up to this log entry.
  std::uint64_t erased() const;

  // Goes on as an engine, which may write everything. `on_finished` as of Engine::Open. The
  // follower is of no use any more.
  Result<std::unique_ptr<Engine>> Serve(std::function<void(const FinishedDecision&)> on_finished);

 private:
  explicit Follower(std::unique_ptr<LocalEngine> engine);

  std::unique_ptr<LocalEngine> engine_;
  std::uint64_t given_ = 0;  // the last log entry
};

}  // namespace codband::engine
