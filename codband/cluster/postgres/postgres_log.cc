#include "codband/cluster/postgres/postgres_log.h"

#include <fmt/format.h>

#include <atomic>
#include <random>
#include <utility>

#include "codband/cluster/postgres/connection.h"
#include "codband/cluster/postgres/postgres_cluster.h"
#include "codband/cluster/postgres/schema.h"
#include "codband/cluster/sharded_log.h"

namespace codband::cluster {
namespace {

std::string NewLoopId() {
  std::random_device entropy;
  return fmt::format("{:08x}{:08x}", entropy(), entropy());
}

}  // namespace

Result<std::unique_ptr<store::PartitionLog>> OpenPostgresLog(const PostgresOptions& options) {
  if (options.dsns.empty()) {
    return Status::InvalidArgument("cluster: there is no connection string");
  }
  if (options.partitions > store::kMostPartitions) {
    return Status::InvalidArgument(fmt::format("partitions: is {}, expected 1 to {}",
                                               options.partitions, store::kMostPartitions));
  }
  const std::atomic<bool> never{false};
  std::vector<std::unique_ptr<store::PartitionLog>> logs;
  LoopRow wanted{.id = NewLoopId(),
                 .partitions = options.partitions,
                 .new_partitions = options.new_partitions,
                 .clusters = options.dsns.size()};
  for (const std::string& dsn : options.dsns) {
    const Connection::Options each{
        .dsn = dsn, .schema = options.loop, .timeout_ms = options.timeout_ms};
    auto connection = Connection::Open(each, never);
    if (!connection.ok()) return connection.status();
    const auto loop = options.create ? PrepareSchema(*connection.value(), options.loop, wanted)
                                     : FindSchema(*connection.value(), options.loop, wanted);
    if (!loop.ok()) return loop.status();
    wanted.id = loop.value().id;
    wanted.partitions = loop.value().partitions;
    ++wanted.cluster;
    logs.push_back(std::make_unique<PostgresCluster>(each, options.log));
  }
  if (logs.size() == 1) return std::move(logs[0]);
  return ShardLogs(std::move(logs));
}

}  // namespace codband::cluster
