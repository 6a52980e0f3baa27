#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "codband/base/status.h"
#include "codband/cluster/node.h"
#include "codband/cluster/thread_timers.h"
#include "codband/server/api/metrics.h"
#include "codband/server/cluster/cluster_directory.h"
#include "codband/server/cluster/engine_host.h"
#include "codband/server/cluster/erasures.h"
#include "codband/server/cluster/pool_keeper.h"
#include "codband/server/cluster/shared_catalogue.h"
#include "codband/store/partition_log.h"

namespace codband::server {

// What makes a server a node of a cluster. Empty `dsns`: it is none.
struct ClusterOptions {
  std::vector<std::string> dsns = {};  // of PostgreSQL; see cluster::PostgresOptions
  std::string loop = "codband";
  std::string name = {};         // of this node, unlike all others
  std::string url = {};          // where other nodes reach it; that of the server if empty
  std::uint32_t partitions = 0;  // if not 0, the loop has or gets as many; a new one else has 1
  std::int64_t lease_ms = 3000;  // others take over after so long without a sign of life
  bool no_standby = false;       // follows nothing that others serve
};

// kInvalidArgument if a name is missing or cannot be one.
Status CheckClusterOptions(const ClusterOptions& options);

// A node of a cluster: its log, its share of the partitions, and the engines that serve them. If
// the loop has several partitions they share a catalogue and what they learn.
class ClusterMember {
 public:
  // Connects to the log; makes the tables of a new loop. `dim`: EngineOptions::dim; in a loop of
  // several partitions it is 0 or that of the loop.
  static Result<std::unique_ptr<ClusterMember>> Open(const ClusterOptions& options, std::size_t dim,
                                                     LogSink log);
  ~ClusterMember();

  const ClusterDirectory& directory() const { return *directory_; }
  // Features of an item; 0: every name has a column, or it is up to the partition.
  std::size_t dim() const { return static_cast<std::size_t>(identity_.dim); }

  // Joins. `url`: of the server. `serve` is told of engines, as EngineHost does.
  using Serve = std::function<void(store::Partition partition, engine::Engine* engine)>;
  void Join(const std::string& url, EngineHostOptions engines, Serve serve);
  // Hands the partitions over and leaves; waits for it, but not for long if the log is away.
  void Leave();

  // Whether anything is left of a user who was forgotten. From any thread, blocks; after Join.
  Result<ErasureProgress> LookAtErasure(const ErasureId& id) { return erasures_->Look(id); }

  // What the engines share, for the metrics. From any thread.
  void AddFacts(ClusterFacts& facts) const;

 private:
  ClusterMember(const ClusterOptions& options, LogSink log,
                std::unique_ptr<store::PartitionLog> partition_log);
  // Copies of another loop, or of nobody knows which, are deleted: their frames have the same
  // numbers.
  void KeepCopiesOfThisLoop(const std::filesystem::path& data) const;
  void ServePartition(const Serve& serve, const store::Claim& claim, engine::Engine* engine);

  const ClusterOptions options_;
  const LogSink log_sink_;
  std::string loop_id_;
  LoopIdentity identity_;  // of a loop of several partitions
  // In the order of what they need: callbacks of the log run on the timers.
  std::unique_ptr<cluster::ThreadTimers> timers_;
  std::unique_ptr<store::PartitionLog> log_;
  std::unique_ptr<ClusterDirectory> directory_;
  std::unique_ptr<SharedCatalogue> catalogue_;  // null if there is one partition
  std::unique_ptr<PoolKeeper> pool_;            // the same
  std::unique_ptr<Erasures> erasures_;
  std::unique_ptr<EngineHost> host_;
  std::unique_ptr<cluster::Node> node_;  // used on the timers alone
};

}  // namespace codband::server
