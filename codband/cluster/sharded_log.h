#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "codband/store/partition_log.h"

namespace codband::cluster {

// Several logs that share the partitions of one loop: partition p lives in log p mod count. Nodes
// and what all partitions share are known to the first alone.
class ShardedLog final : public store::PartitionLog {
 public:
  explicit ShardedLog(std::vector<std::unique_ptr<store::PartitionLog>> logs)
      : logs_(std::move(logs)) {}

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

 private:
  store::PartitionLog& Home(store::Partition partition) { return *logs_[partition % logs_.size()]; }

  std::vector<std::unique_ptr<store::PartitionLog>> logs_;
};

}  // namespace codband::cluster
