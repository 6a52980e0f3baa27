#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "codband/base/log.h"
#include "codband/cluster/postgres/connection.h"
#include "codband/cluster/postgres/lane.h"
#include "codband/cluster/postgres/session_watch.h"
#include "codband/store/partition_log.h"

namespace codband::cluster {

// The partitions of a loop that live in one PostgreSQL cluster, whose tables are there. Threads and
// connections: four that append, so that commits of several partitions share a write to disk; one
// for leases, which must not wait for anything large; one for large reads and writes; and one that
// listens, if somebody watches. While one of them waits for long another one looks now and then
// what has become of their sessions.
class PostgresCluster final : public store::PartitionLog {
 public:
  PostgresCluster(Connection::Options options, LogSink log);
  ~PostgresCluster() override;

  void Acquire(store::Partition partition, std::string node, std::int64_t lease_ms,
               Done<Result<store::PartitionState>> done) override;
  void Renew(std::vector<store::Claim> claims, std::int64_t lease_ms,
             Done<Result<std::vector<store::Claim>>> done) override;
  void Release(store::Claim claim, Done<Status> done) override;
  void Append(store::Claim claim, std::uint64_t sequence, std::string frame,
              Done<Status> done) override;
  void Read(store::Partition partition, std::uint64_t from, std::size_t most_bytes,
            Done<Result<std::vector<store::LogFrame>>> done) override;
  void Truncate(store::Claim claim, std::uint64_t below, Done<Status> done) override;
  void PutBlob(store::Claim claim, store::BlobId id, std::string bytes, Done<Status> done) override;
  void GetBlob(store::Partition partition, store::BlobId id,
               Done<Result<std::string>> done) override;
  void FindBlob(store::Partition partition, std::string name,
                Done<Result<std::uint64_t>> done) override;
  void ListBlobs(store::Partition partition,
                 Done<Result<std::vector<store::BlobPart>>> done) override;
  void DeleteBlobs(store::Claim claim, std::string name, std::uint64_t below,
                   Done<Status> done) override;
  void AppendShared(std::uint64_t sequence, std::string frame, Done<Status> done) override;
  void ReadShared(std::uint64_t from, std::size_t most_bytes,
                  Done<Result<std::vector<store::LogFrame>>> done) override;
  void KeepNode(store::NodeState node, std::int64_t lease_ms, Done<Status> done) override;
  void RemoveNode(std::string name, std::string instance, Done<Status> done) override;
  void ListNodes(Done<Result<std::vector<store::NodeState>>> done) override;
  void ListPartitions(Done<Result<std::vector<store::PartitionState>>> done) override;
  void Want(store::Partition partition, std::string node, Done<Status> done) override;
  void SetDraining(std::string node, bool draining, Done<Status> done) override;
  void Watch(std::function<void()> changed) override;
  void WatchBlobs(std::function<void()> changed) override { blobs_changed_ = std::move(changed); }

 private:
  void Listen(const std::function<void()>& changed);

  SessionWatch watch_;
  const Connection::Options options_;
  const LogSink log_;
  const std::string channel_;
  std::vector<std::unique_ptr<AppendLane>> appends_;
  Lane leases_;
  Lane bulk_;
  std::atomic<bool> stop_{false};
  std::function<void()> blobs_changed_;  // may be empty
  std::thread listener_;
};

}  // namespace codband::cluster
