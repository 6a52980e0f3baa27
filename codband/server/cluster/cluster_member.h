#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "codband/base/status.h"
#include "codband/cluster/node.h"
#include "codband/cluster/partition_map.h"
#include "codband/cluster/thread_timers.h"
#include "codband/server/cluster/engine_host.h"
#include "codband/store/partition_log.h"

namespace codband::server {

// What makes a server a node of a cluster. Empty `dsns`: it is none.
struct ClusterOptions {
  std::vector<std::string> dsns = {};  // of PostgreSQL; see cluster::PostgresOptions
  std::string loop = "codband";
  std::string name = {};         // of this node, unlike all others
  std::string url = {};          // where other nodes reach it; that of the server if empty
  std::int64_t lease_ms = 3000;  // others take over after so long without a sign of life
};

// kInvalidArgument if a name is missing or cannot be one.
Status CheckClusterOptions(const ClusterOptions& options);

// A node of a cluster: its log, its share of the partitions, and the engines that serve them. For
// now a loop has one partition: models that several partitions learn are not joined yet.
class ClusterMember {
 public:
  // Connects to the log; makes the tables of a new loop.
  static Result<std::unique_ptr<ClusterMember>> Open(const ClusterOptions& options, LogSink log);
  ~ClusterMember();

  // Joins. `url`: of the server.
  void Join(const std::string& url, EngineHostOptions engines, EngineHost::Serve serve);
  // Hands the partitions over and leaves; waits for it, but not for long if the log is away.
  void Leave();

  // Where the engine is served, if that is another node; else empty. From any thread.
  std::string OwnerUrl() const;

 private:
  ClusterMember(const ClusterOptions& options, LogSink log,
                std::unique_ptr<store::PartitionLog> partition_log);

  const ClusterOptions options_;
  const LogSink log_sink_;
  // In the order of what they need: callbacks of the log run on the timers.
  std::unique_ptr<cluster::ThreadTimers> timers_;
  std::unique_ptr<store::PartitionLog> log_;
  std::unique_ptr<EngineHost> host_;
  std::unique_ptr<cluster::Node> node_;  // used on the timers alone
  mutable std::mutex mutex_;             // guards what follows
  std::string owner_url_;
};

}  // namespace codband::server
