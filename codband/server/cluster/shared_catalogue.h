#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "codband/base/log.h"
#include "codband/base/sip_hash.h"
#include "codband/base/status.h"
#include "codband/engine/engine.h"
#include "codband/server/cluster/lent_engine.h"
#include "codband/store/partition_log.h"

namespace codband::server {

// What all partitions of a loop must have alike. It is the first frame of the shared log.
struct LoopIdentity {
  std::uint64_t dim = 0;  // features of an item
  SipKey name_secret = {};

  std::string Encode() const;
  static Result<LoopIdentity> Decode(std::string_view bytes);
};

// That of the loop; of a new one it is made with `dim` features. kInvalidArgument: `dim` is another
// than the loop's, or 0 for a new one.
Result<LoopIdentity> FindLoopIdentity(store::PartitionLog& log, std::uint64_t dim);

// The catalogue of a loop: a log that anybody appends to, and that the engines of this node follow.
// A thread of its own. Thread-safe.
class SharedCatalogue {
 public:
  using Done = std::function<void(Status)>;

  // The log outlives it.
  SharedCatalogue(store::PartitionLog& log, LogSink sink);
  // What waits is told that it may or may not have happened.
  ~SharedCatalogue();
  SharedCatalogue(const SharedCatalogue&) = delete;
  SharedCatalogue& operator=(const SharedCatalogue&) = delete;

  // The engine follows from now on. Returns when it has caught up, or why it could not; it is tried
  // again then.
  Status Attach(store::Partition partition, engine::Engine& engine);
  // Returns once the engine is not used any more.
  void Detach(store::Partition partition);

  // Appends a change. `done`: it is durable, and the engines of this node have it, unless one of
  // them is slow or in trouble.
  void Change(engine::CatalogueChange change, Done done);

  // How many frames the engine that is farthest behind lacks.
  std::uint64_t lag() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Follower {
    explicit Follower(engine::Engine& engine) : lent(engine) {}
    LentEngine lent;
    // Guarded by the catalogue's mutex, which outlives the calls of the engine.
    std::uint64_t sequence = 0;
    bool busy = false;
    bool failed = false;  // the last time
  };
  struct Waiting {
    std::uint64_t sequence = 0;
    Clock::time_point until = {};
    Done done = {};
  };
  // Shared with callbacks, which may come late.
  struct State {
    std::mutex mutex;  // guards what follows, and the followers
    std::condition_variable changed;
    std::map<store::Partition, std::shared_ptr<Follower>> followers = {};
    std::vector<std::pair<engine::CatalogueChange, Done>> changes = {};
    std::vector<Waiting> waiting = {};
    std::uint64_t end = 0;  // of the log, as it was seen last
    bool woken = false;
    bool stopping = false;
  };

  void Run();
  // Reads what the followers lack and gives it to them. Whether the end of the log was reached.
  Result<bool> FollowLog();
  static void Give(const std::shared_ptr<State>& state, const std::shared_ptr<Follower>& follower,
                   std::span<const store::LogFrame> frames);
  void AppendChanges();
  void TellWaiting();
  void Note(const Status& status);

  store::PartitionLog& log_;
  const LogSink sink_;
  bool in_trouble_ = false;  // of the thread
  const std::shared_ptr<State> state_ = std::make_shared<State>();
  std::thread thread_;
};

}  // namespace codband::server
