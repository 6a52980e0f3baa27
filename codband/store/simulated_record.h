#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "codband/base/status.h"
#include "codband/base/timers.h"
#include "codband/store/partition_log.h"

namespace codband::store {

// The record of a simulated cluster, as a database would keep it: every function is one
// transaction. What the functions mean is in partition_log.h. Not thread-safe.
class SimulatedRecord {
 public:
  // `time` outlives it.
  SimulatedRecord(Partition partitions, const Timers& time);

  Result<PartitionState> Acquire(Partition partition, const std::string& node,
                                 std::int64_t lease_ms);
  std::vector<Claim> Renew(const std::vector<Claim>& claims, std::int64_t lease_ms);
  Status Release(const Claim& claim);
  // `session`: see Resolve. kUnavailable: it is another one now.
  Status Append(const Claim& claim, std::uint64_t session, std::uint64_t sequence,
                const std::string& frame);
  // What has become of an append whose answer was lost. It begins a new session of the claim, so
  // that the append cannot happen any more if it has not happened yet.
  struct Resolved {
    Status status = {};  // what Append would have answered
    std::uint64_t session = 0;
  };
  Resolved Resolve(const Claim& claim, std::uint64_t sequence);
  Result<std::vector<LogFrame>> Read(Partition partition, std::uint64_t from,
                                     std::size_t most_bytes) const;
  Status Truncate(const Claim& claim, std::uint64_t below);
  Status PutBlob(const Claim& claim, const BlobId& id, const std::string& bytes);
  Result<std::string> GetBlob(Partition partition, const BlobId& id) const;
  Result<std::uint64_t> FindBlob(Partition partition, const std::string& name) const;
  std::vector<BlobPart> ListBlobs(Partition partition) const;
  Status DeleteBlobs(const Claim& claim, const std::string& name, std::uint64_t below);
  Status AppendShared(std::uint64_t sequence, const std::string& frame);
  std::vector<LogFrame> ReadShared(std::uint64_t from, std::size_t most_bytes) const;
  Status KeepNode(const NodeState& node, std::int64_t lease_ms);
  Status RemoveNode(const std::string& name, const std::string& instance);
  std::vector<NodeState> ListNodes() const;
  std::vector<PartitionState> ListPartitions() const;
  Status Want(Partition partition, const std::string& node);
  Status SetDraining(const std::string& node, bool draining);

  // Counts changes of owners and nodes; for Watch.
  std::uint64_t changes() const { return changes_; }

  // The record's clock is set.
  void JumpClock(std::int64_t ms) { clock_offset_ms_ += ms; }
  // Every frame that was ever appended, the truncated ones too.
  const std::vector<LogFrame>& History(Partition partition) const {
    return rows_.at(partition).history;
  }

 private:
  struct Row {
    std::uint64_t epoch = 0;
    std::uint64_t session = 0;
    std::string owner = {};
    std::string wanted = {};
    std::int64_t lease_until_ms = 0;
    std::uint64_t first_sequence = 1;
    std::vector<LogFrame> history = {};
    // How long the log was when each epoch began.
    std::map<std::uint64_t, std::uint64_t> begins_after = {};
    std::map<std::tuple<std::string, std::uint64_t, std::uint32_t>, std::string> blobs = {};
  };
  std::int64_t now_ms() const { return time_.now_ms() + clock_offset_ms_; }
  Status CheckClaim(const Claim& claim) const;
  PartitionState StateOf(Partition partition) const;

  const Timers& time_;
  std::int64_t clock_offset_ms_ = 0;
  std::uint64_t changes_ = 0;
  std::vector<Row> rows_;
  std::vector<std::string> shared_;
  std::map<std::string, NodeState> nodes_;  // lease_left_ms: when it ends, by the record's clock
};

}  // namespace codband::store
