#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "codband/base/log.h"
#include "codband/base/status.h"
#include "codband/base/timers.h"
#include "codband/cluster/partition_map.h"
#include "codband/store/partition_log.h"

namespace codband::cluster {

// What serves the partitions that a node owns. Called by the node alone, from its timers.
class PartitionHost {
 public:
  virtual ~PartitionHost() = default;

  // Brings the partition up to `state.last_sequence`, which is final, and serves it under this
  // claim. `done`, from any thread: it is served, or why not. A Close may come before.
  virtual void Open(const store::PartitionState& state, std::function<void(Status)> done) = 0;
  // Serves it no longer. `done`, from any thread: nothing of it is under way any more, and the
  // partition may be opened again. `fenced`: it belongs to somebody else already.
  virtual void Close(store::Partition partition, bool fenced, std::function<void()> done) = 0;

  // Follows the log of a partition that is not open, so that a later Open has little left to do.
  // Frames up to `last` are final. Said again whenever there is more; failures are tried again
  // then.
  virtual void Follow(store::Partition partition, std::uint64_t last) = 0;
  // No longer. What was read may be kept.
  virtual void EndFollow(store::Partition partition) = 0;
  // The last frame that a followed partition has; 0: none yet.
  virtual std::uint64_t FollowedTo(store::Partition partition) const = 0;
};

struct NodeOptions {
  std::string name = {};
  std::string url = {};
  std::string instance = {};     // of this process, random
  std::int64_t lease_ms = 3000;  // after so long without a sign of life others take over
  bool standby = true;           // follows its share of what others serve
  LogSink log = {};              // may be empty
  // Told of the map whenever it was seen; may be empty.
  std::function<void(const PartitionMap&)> on_map = {};
};

// One node of a cluster: makes itself known, takes its share of the partitions, keeps their leases,
// gives some up when others come, takes over from the dead; and follows its share of those that
// others serve. It decides nothing alone: the log does.
//
// Everything runs on the timers, one task after the other: the functions are called from there too,
// or before the timers run. Log, host and timers outlive it.
class Node {
 public:
  Node(store::PartitionLog& log, Timers& timers, PartitionHost& host, NodeOptions options);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Begins. As long as another living node has the name it waits, and says so.
  void Start();
  // Gives up all partitions and leaves; then calls `done`. Without an answer of the log it takes
  // until the leases are over for others to take over.
  void Drain(std::function<void()> done);

  // As it was seen last; without partitions before it was.
  const PartitionMap& map() const { return map_; }
  bool serves(store::Partition partition) const;
  // The host cannot serve this claim any more: it is over, or the host is in trouble.
  void NoteBroken(const store::Claim& claim, bool fenced);
  // What is wrong now; empty if nothing is.
  const std::string& problem() const { return problem_; }

 private:
  struct Held {
    store::Claim claim = {};
    enum class Phase { kOpening, kServing, kClosing } phase = Phase::kOpening;
  };

  // A callback of the log or the host that goes on here on the timers, if this node is still there.
  template <typename T>
  std::function<void(T)> Then(std::function<void(T&)> next);
  store::NodeState Self() const;
  void Tick();
  // One of each at a time: in an outage of the log they would pile up. One whose answer came late
  // is said again at once, as its lease is over already.
  void KeepAlive();
  void Renew();
  bool IsLate(std::int64_t since_ms) const;
  void Look();
  void LookWhenALeaseEnds();
  void Balance();
  std::vector<store::Partition> NotNow();
  void FollowOthers();
  void Take(store::Partition partition);
  void Opened(const store::Claim& claim, const Status& status);
  void Close(store::Partition partition, bool fenced);
  void Closed(const store::Claim& claim, bool fenced);
  void GiveUp(const store::Claim& claim);
  void LeaveIfDone();
  void Note(const Status& status);
  void Tell(LogLevel level, std::string message) const;

  store::PartitionLog& log_;
  Timers& timers_;
  PartitionHost& host_;
  const NodeOptions options_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  PartitionMap map_;
  std::map<store::Partition, Held> held_;
  std::set<store::Partition> followed_;
  std::map<store::Partition, std::int64_t> not_before_ms_;  // when it may be taken again
  std::map<store::Partition, std::int64_t> over_since_ms_;  // leases, as seen here
  bool registered_ = false;
  bool keeping_alive_ = false;
  bool renewing_ = false;
  bool looking_ = false;
  bool taking_ = false;
  bool draining_ = false;
  int releasing_ = 0;
  std::function<void()> drained_;
  std::string problem_;
};

}  // namespace codband::cluster
