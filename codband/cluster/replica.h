#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "codband/base/status.h"
#include "codband/store/partition_log.h"

namespace codband::cluster {

// Up to where a state follows its partition's log: the last frame that is in it. The same position
// means the same frames before it, for one epoch appends one sequence at most once.
struct Position {
  std::uint64_t sequence = 0;  // 0: nothing is in it
  std::uint64_t epoch = 0;

  friend bool operator==(const Position&, const Position&) = default;
};

// A state that is made from a partition's log alone. It can be lost at any time and made again.
class Replica {
 public:
  virtual ~Replica() = default;

  virtual Position position() const = 0;
  // Empties it. Its position is then 0.
  virtual Status Clear() = 0;
  // A part of a checkpoint, in order, after Clear; then the position of all of them together.
  virtual Status LoadPart(std::string_view part) = 0;
  virtual Status FinishLoad(const Position& position) = 0;
  // The frame after its position.
  virtual Status Apply(const store::LogFrame& frame) = 0;
};

// Runs a function soon, never within the call: on a thread that may be blocked.
using Post = std::function<void(std::function<void()>)>;

// Brings a replica up to the frame `last`, which is in the log: what it has is checked against the
// log; if it is something else, or too old, it begins anew with the last checkpoint. `done` gets
// why it was not possible: kUnavailable, or damage. The replica and the log outlive it.
void CatchUp(store::PartitionLog& log, store::Partition partition, Replica& replica,
             std::uint64_t last, Post post, std::function<void(Status)> done);

// The same for a replica that CatchUp or this has brought up in this process: its frames are those
// of the log, and only what is new is read. kNotFound: the log does not reach back to it any more;
// CatchUp begins anew.
void FollowLog(store::PartitionLog& log, store::Partition partition, Replica& replica,
               std::uint64_t last, Post post, std::function<void(Status)> done);

// CatchUp and FollowLog, and return when it is done. Not on a thread of the log.
Status CatchUpAndWait(store::PartitionLog& log, store::Partition partition, Replica& replica,
                      std::uint64_t last);
Status FollowLogAndWait(store::PartitionLog& log, store::Partition partition, Replica& replica,
                        std::uint64_t last);

// A checkpoint of a partition: what makes a replica of this position.
struct Checkpoint {
  Position position = {};
  std::uint32_t attempt = 0;  // another number each time that an owner makes one
  std::vector<std::string> parts = {};
};

// Stores a checkpoint; once it is there, the frames that are in it are deleted, and older
// checkpoints. kGone: the claim is over. If it fails, nothing is lost.
void StoreCheckpoint(store::PartitionLog& log, const store::Claim& claim, Checkpoint checkpoint,
                     std::function<void(Status)> done);

}  // namespace codband::cluster
