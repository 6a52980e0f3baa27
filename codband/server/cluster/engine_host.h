#pragma once

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "codband/base/log.h"
#include "codband/base/status.h"
#include "codband/cluster/node.h"
#include "codband/cluster/replicated_store.h"
#include "codband/engine/engine.h"
#include "codband/server/cluster/erasures.h"
#include "codband/server/cluster/standby.h"
#include "codband/store/partition_log.h"
#include "codband/store/rocksdb_store.h"

namespace codband::server {

struct EngineHostOptions {
  std::filesystem::path data = {};  // local copies are in folders of it, one for each partition
  store::Partition partitions = 1;  // of the loop: they share the memory
  store::RocksDbOptions store = {};
  engine::EngineOptions engine = {};
  std::function<void(const engine::FinishedDecision&)> on_finished = {};
  std::uint64_t checkpoint_frames = 20'000;      // a checkpoint goes to the log after so many
  std::int64_t checkpoint_interval_ms = 60'000;  // or so long
  Erasures* erasures = nullptr;  // told what is erased, and which copies are in use; may be null
};

// Serves engines on the log of their partitions: the local copy catches up with the log, an engine
// opens it, and everything that it writes goes to the log first. A partition that is followed has a
// Standby, which becomes the engine. Each partition has a thread, which follows it, opens it,
// stores its checkpoints and closes it.
class EngineHost final : public cluster::PartitionHost {
 public:
  // Told which engine serves a claim's partition. nullptr: none from now on; returns once nobody
  // uses the former one any more.
  using Serve = std::function<void(const store::Claim& claim, engine::Engine* engine)>;
  // The engine of this claim cannot write any more.
  using Broken = std::function<void(const store::Claim& claim, bool fenced)>;

  EngineHost(store::PartitionLog& log, EngineHostOptions options, Serve serve, Broken broken);
  // Closes what is open; whatever waits for the log is given up.
  ~EngineHost() override;

  void Open(const store::PartitionState& state, std::function<void(Status)> done) override;
  void Close(store::Partition partition, bool fenced, std::function<void()> done) override;
  void Follow(store::Partition partition, std::uint64_t last) override;
  void EndFollow(store::Partition partition) override;
  std::uint64_t FollowedTo(store::Partition partition) const override;

 private:
  using Opened = std::function<void(Status)>;
  // What this node does with a partition: it serves it from Open to Close, or follows it.
  struct Life {
    store::PartitionState state = {};  // of its thread, while it is served
    std::thread thread = {};
    std::mutex mutex = {};  // guards what follows
    std::condition_variable changed = {};
    bool ending = false;
    std::optional<std::pair<store::PartitionState, Opened>> opening = {};
    bool closing = false;
    bool fenced = false;
    std::function<void()> closed = {};
    cluster::ReplicatedStore* store = nullptr;  // while the engine has it
    bool follows = false;
    bool asked = false;  // since it was tried last
    std::uint64_t follow_to = 0;
    bool told = false;                           // why it does not follow
    std::shared_ptr<Standby> standby = nullptr;  // the thread alone uses and changes it
  };
  Life& LifeOf(store::Partition partition);
  static bool IsClosing(Life& life);
  void Run(store::Partition partition, Life& life);
  void FollowOn(store::Partition partition, Life& life, std::uint64_t last);
  void DropStandby(store::Partition partition, Life& life);
  void Live(Life& life, const Opened& done);
  Result<std::unique_ptr<engine::Engine>> OpenStandby(Life& life);
  Result<std::unique_ptr<engine::Engine>> OpenEngine(Life& life);
  Standby::Owned Own(Life& life);
  cluster::ReplicatedStore::OnGivenUp OnGivenUp(const store::Claim& claim) const;
  store::RocksDbOptions StoreOptions() const;
  engine::EngineOptions EngineOptionsOf(store::Partition partition) const;
  void EndEngine(Life& life, engine::Engine& engine);
  // Until it is to be closed.
  void KeepCheckpoints(Life& life, engine::Engine& engine);
  Status StoreOneCheckpoint(Life& life, std::uint64_t& sequence, std::uint32_t attempt);
  void Tell(LogLevel level, std::string message) const;

  store::PartitionLog& log_;
  const EngineHostOptions options_;
  const Serve serve_;
  const Broken broken_;
  std::map<store::Partition, std::unique_ptr<Life>> lives_;  // of the node's thread
};

}  // namespace codband::server
