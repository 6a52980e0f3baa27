#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "codband/base/status.h"

namespace codband::store {

// A slice of the users of one loop, with an ordered log of its own.
using Partition = std::uint32_t;
inline constexpr Partition kMostPartitions = 256;

// The right to append to a partition's log. Every Acquire gives a higher epoch and ends those
// before it; nothing else makes a claim invalid, least of all a clock.
struct Claim {
  Partition partition = 0;
  std::uint64_t epoch = 0;

  friend bool operator==(const Claim&, const Claim&) = default;
};

struct PartitionState {
  Partition partition = 0;
  std::uint64_t epoch = 0;           // 0: never owned
  std::string owner = {};            // a node's name; empty: nobody's
  std::uint64_t last_sequence = 0;   // of the last frame
  std::uint64_t first_sequence = 1;  // of the first frame that was not truncated
  std::int64_t lease_left_ms = 0;    // by the log's clock; 0 and less: anybody may take it
  std::string wanted = {};           // the node that an operator wants it on; empty: any

  Claim claim() const { return {.partition = partition, .epoch = epoch}; }
};

// What one Append wrote.
struct LogFrame {
  std::uint64_t sequence = 0;
  std::uint64_t epoch = 0;
  std::string bytes = {};

  friend bool operator==(const LogFrame&, const LogFrame&) = default;
};

// A partition whose log a node follows while another one serves it, and how far it has come.
struct Followed {
  Partition partition = 0;
  std::uint64_t sequence = 0;

  friend bool operator==(const Followed&, const Followed&) = default;
};

// A process that serves partitions. `instance` tells two processes of one name apart.
struct NodeState {
  std::string name = {};
  std::string url = {};
  std::string instance = {};
  std::int64_t lease_left_ms = 0;  // by the log's clock; 0 and less: it is taken for dead
  std::string version = {};        // of the program
  bool draining = false;           // its partitions are to go elsewhere
  bool standby = false;            // follows what others serve
  std::vector<Followed> follows = {};
};

// Large bytes beside the log, in parts: checkpoints, versions of the pool. Part 0 is put last: a
// version that has it is complete.
struct BlobId {
  std::string name = {};
  std::uint64_t version = 0;
  std::uint32_t part = 0;

  friend bool operator==(const BlobId&, const BlobId&) = default;
};

struct BlobPart {
  BlobId id = {};
  std::uint64_t bytes = 0;

  friend bool operator==(const BlobPart&, const BlobPart&) = default;
};

// What is decided once for a whole cluster and never lost: who owns a partition, and what was
// appended to its log. Every node has one of these, connected to the same record.
//
// Sequences of a partition's frames are 1, 2, 3, … without gaps, and no two owners can append at
// the same time: Append names its epoch, and only the highest epoch can append. Leases say when a
// partition may be taken over; they are measured by the record's own clock. Safety does not depend
// on them.
//
// Functions may be called from any thread and return at once. `done` is called later, from a thread
// of the log, which it must not block. Answers:
//   kGone          fenced: the epoch is over, another owner has the partition
//   kUnavailable   the record cannot be reached, or is busy; try again
// Any other code is the caller's mistake, or damage.
class PartitionLog {
 public:
  template <typename T>
  using Done = std::function<void(T)>;

  virtual ~PartitionLog() = default;

  // Takes a partition that has no owner, or whose owner's lease is over: fences every earlier
  // owner. The answer has the new epoch, and the last sequence, which is final up to there:
  // everything that earlier owners were told is in the log is in it. kConflict: another lease
  // holds. After kUnavailable it may have been taken all the same; the lease then runs out.
  virtual void Acquire(Partition partition, std::string node, std::int64_t lease_ms,
                       Done<Result<PartitionState>> done) = 0;
  // Prolongs the leases of these claims. Answers with those that are over.
  virtual void Renew(std::vector<Claim> claims, std::int64_t lease_ms,
                     Done<Result<std::vector<Claim>>> done) = 0;
  // Gives the partition up: anybody may take it at once. The epoch is over.
  virtual void Release(Claim claim, Done<Status> done) = 0;

  // Appends a frame. `sequence` is one more than that of the last frame. Never "perhaps":
  //   kOk           it is in the log, for good
  //   kGone         fenced: it is not and never will be
  //   kUnavailable  it is not and never will be, unless it is appended again
  //   kIoError      this object was destroyed before the outcome was known: give up the claim
  // As long as the outcome is not known there is no answer. One at a time for a partition.
  virtual void Append(Claim claim, std::uint64_t sequence, std::string frame,
                      Done<Status> done) = 0;
  // The frames from this sequence on, in order: as many as come to about `most_bytes`, at least
  // one; none if there are no more. kNotFound: this one was truncated, begin with a checkpoint.
  virtual void Read(Partition partition, std::uint64_t from, std::size_t most_bytes,
                    Done<Result<std::vector<LogFrame>>> done) = 0;
  // Deletes the frames below a sequence. What they did is in a checkpoint.
  virtual void Truncate(Claim claim, std::uint64_t below, Done<Status> done) = 0;

  // Blobs say what the log says, so that a late one of an owner who is being fenced does no harm.
  virtual void PutBlob(Claim claim, BlobId id, std::string bytes, Done<Status> done) = 0;
  // kNotFound: there is no such part.
  virtual void GetBlob(Partition partition, BlobId id, Done<Result<std::string>> done) = 0;
  // The newest complete version of this name; kNotFound if there is none.
  virtual void FindBlob(Partition partition, std::string name,
                        Done<Result<std::uint64_t>> done) = 0;
  // Every part of every version of all names, in the order of names, versions and parts.
  virtual void ListBlobs(Partition partition, Done<Result<std::vector<BlobPart>>> done) = 0;
  // Deletes the versions below this one.
  virtual void DeleteBlobs(Claim claim, std::string name, std::uint64_t below,
                           Done<Status> done) = 0;

  // The log of what all partitions share: frames 1, 2, 3, … without gaps, which anybody may append.
  // kConflict: another frame has this sequence, or those before it are not there yet: read them.
  // After kUnavailable it may be in the log all the same, or still come: read it.
  virtual void AppendShared(std::uint64_t sequence, std::string frame, Done<Status> done) = 0;
  // As Read. Their epoch is 0.
  virtual void ReadShared(std::uint64_t from, std::size_t most_bytes,
                          Done<Result<std::vector<LogFrame>>> done) = 0;

  // Announces a node, or prolongs its lease. It is draining if it says so itself, or if that was
  // set for this instance. kConflict: another instance has the name.
  virtual void KeepNode(NodeState node, std::int64_t lease_ms, Done<Status> done) = 0;
  virtual void RemoveNode(std::string name, std::string instance, Done<Status> done) = 0;
  // The dead ones too.
  virtual void ListNodes(Done<Result<std::vector<NodeState>>> done) = 0;
  // All partitions, in their order.
  virtual void ListPartitions(Done<Result<std::vector<PartitionState>>> done) = 0;

  // What an operator wants: this partition on this node (any, if empty), this node without
  // partitions. Nodes follow it when they see it. kNotFound: there is no such partition or node.
  virtual void Want(Partition partition, std::string node, Done<Status> done) = 0;
  virtual void SetDraining(std::string node, bool draining, Done<Status> done) = 0;

  // Calls `changed` soon after a partition or a node has come or gone, and perhaps without cause.
  // It may miss some: look now and then as well. One function for each log.
  virtual void Watch(std::function<void()> changed) = 0;
  // The same for new versions of blobs, of any partition; to be said before Watch. A log that
  // cannot tell never calls it.
  virtual void WatchBlobs(std::function<void()> /*changed*/) {}
};

inline Status Fenced(const Claim& claim) {
  return {StatusCode::kGone, "partition " + std::to_string(claim.partition) + ": epoch " +
                                 std::to_string(claim.epoch) +
                                 " is over, another owner has taken the partition"};
}
inline bool IsFenced(const Status& status) { return status.code() == StatusCode::kGone; }

}  // namespace codband::store
