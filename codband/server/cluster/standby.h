#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>

#include "codband/base/status.h"
#include "codband/cluster/replicated_store.h"
#include "codband/engine/engine.h"
#include "codband/engine/follower.h"
#include "codband/store/partition_log.h"
#include "codband/store/rocksdb_store.h"

namespace codband::server {

// What a node has of a partition that another one serves: the local copy follows the log, and an
// engine on it learns along, so that it goes on where the other one stops. It can be lost at any
// time and made again. Used by one thread; `reached`, `Stop` and `stopped` by any.
class Standby {
 public:
  struct Options {
    store::Partition partition = 0;
    std::filesystem::path directory = {};  // of the copy
    store::RocksDbOptions store = {};
    engine::EngineOptions engine = {};
  };
  // The log outlives it.
  Standby(store::PartitionLog& log, Options options);

  // Follows up to this frame, which is in the log for good; blocks. If it fails, the next call
  // tries again, if need be from the copy or from the last checkpoint of the log on.
  Status Follow(std::uint64_t last);
  // The last frame that it has learned; 0: it is not ready.
  std::uint64_t reached() const { return reached_.load(); }
  // What Follow still has to do is not done.
  void Stop() { stop_ = true; }
  bool stopped() const { return stop_; }
  // As of engine::Follower; 0: not known.
  std::uint64_t erased() const { return follower_ == nullptr ? 0 : follower_->erased(); }

  // Goes on as the owner, from the end of the log on, if it is ready. `owned` gets the engine's
  // store before anything is written.
  using Owned = std::function<void(cluster::ReplicatedStore& store)>;
  Result<std::unique_ptr<engine::Engine>> Serve(
      const store::PartitionState& state, cluster::ReplicatedStore::OnGivenUp on_given_up,
      const Owned& owned, std::function<void(const engine::FinishedDecision&)> on_finished);

 private:
  class Copy;
  class Learning;
  Status Begin(std::uint64_t last);
  void End();

  store::PartitionLog& log_;
  const Options options_;
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> reached_{0};
  std::unique_ptr<engine::Follower> follower_;
  cluster::ReplicatedStore* store_ = nullptr;  // of the follower
};

}  // namespace codband::server
