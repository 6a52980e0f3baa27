#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "codband/base/random.h"
#include "codband/base/timers.h"
#include "codband/store/partition_log.h"
#include "codband/store/simulated_record.h"

namespace codband::store {

// What can go wrong between a node and the record. A message is a call or its answer.
struct SimulatedFaults {
  std::int64_t most_delay_ms = 2;  // of a message
  double slow = 0;                 // the share of messages that take up to `most_slow_ms`
  std::int64_t most_slow_ms = 0;
  double lost = 0;   // the share of messages that are lost
  bool cut = false;  // nothing gets through
};

// One node's connection to a simulated record. Delays and losses are drawn from a seed: the same
// seed and the same calls give the same run. A call that gets no answer in time is given up, but
// may still happen later, as in a real database: its message is on the way. Not thread-safe.
class SimulatedLog final : public PartitionLog {
 public:
  static constexpr std::int64_t kTimeoutMs = 500;
  static constexpr std::int64_t kRetryMs = 100;

  // `record` and `time` outlive it and what it has begun.
  SimulatedLog(SimulatedRecord& record, VirtualTime& time, EventKey key);
  ~SimulatedLog() override;
  SimulatedLog(const SimulatedLog&) = delete;
  SimulatedLog& operator=(const SimulatedLog&) = delete;

  SimulatedFaults faults = {};
  // The node is killed: nobody is told anything any more. What is on the way arrives.
  void Crash() { link_->crashed = true; }

  void Acquire(Partition partition, std::string node, std::int64_t lease_ms,
               Done<Result<PartitionState>> done) override;
  void Renew(std::vector<Claim> claims, std::int64_t lease_ms,
             Done<Result<std::vector<Claim>>> done) override;
  void Release(Claim claim, Done<Status> done) override;
  void Append(Claim claim, std::uint64_t sequence, std::string frame, Done<Status> done) override;
  void Read(Partition partition, std::uint64_t from, std::size_t most_bytes,
            Done<Result<std::vector<LogFrame>>> done) override;
  void Truncate(Claim claim, std::uint64_t below, Done<Status> done) override;
  void PutBlob(Claim claim, BlobId id, std::string bytes, Done<Status> done) override;
  void GetBlob(Partition partition, BlobId id, Done<Result<std::string>> done) override;
  void FindBlob(Partition partition, std::string name, Done<Result<std::uint64_t>> done) override;
  void ListBlobs(Partition partition, Done<Result<std::vector<BlobPart>>> done) override;
  void DeleteBlobs(Claim claim, std::string name, std::uint64_t below, Done<Status> done) override;
  void AppendShared(std::uint64_t sequence, std::string frame, Done<Status> done) override;
  void ReadShared(std::uint64_t from, std::size_t most_bytes,
                  Done<Result<std::vector<LogFrame>>> done) override;
  void KeepNode(NodeState node, std::int64_t lease_ms, Done<Status> done) override;
  void RemoveNode(std::string name, std::string instance, Done<Status> done) override;
  void ListNodes(Done<Result<std::vector<NodeState>>> done) override;
  void ListPartitions(Done<Result<std::vector<PartitionState>>> done) override;
  void Want(Partition partition, std::string node, Done<Status> done) override;
  void SetDraining(std::string node, bool draining, Done<Status> done) override;
  void Watch(std::function<void()> changed) override;

 private:
  // Shared with what is on the way, which may outlive the log.
  struct Link {
    bool crashed = false;  // or destroyed
  };
  // Sends a message, runs `effect` at the record, and calls `answered` with what it returns, or
  // `lost` if no answer came in time.
  template <typename T>
  void Exchange(std::function<T()> effect, std::function<void(T)> answered,
                std::function<void()> lost);
  // The same, where it does no harm if nobody knows whether it happened.
  template <typename T>
  void Call(std::function<T()> effect, Done<T> done);
  void Resolve(Claim claim, std::uint64_t sequence);
  void AnswerAppend(const Claim& claim, const Status& status);
  void Look(std::uint64_t seen, std::function<void()> changed);
  bool Lost() { return faults.cut || random_.Uniform() < faults.lost; }
  std::int64_t Delay();

  SimulatedRecord& record_;
  VirtualTime& time_;
  RandomStream random_;
  std::shared_ptr<Link> link_ = std::make_shared<Link>();
  std::map<Partition, Claim> sessions_of_;       // the claim that a session belongs to
  std::map<Partition, std::uint64_t> sessions_;  // of appends
  std::map<Partition, Done<Status>> appends_;    // without an answer yet
};

}  // namespace codband::store
