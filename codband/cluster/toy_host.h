#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codband/base/timers.h"
#include "codband/cluster/node.h"
#include "codband/cluster/replica.h"
#include "codband/store/partition_log.h"

namespace codband::cluster {

// The timers of one simulated process: it can be stopped for a while, or killed.
class ProcessTimers final : public Timers {
 public:
  explicit ProcessTimers(VirtualTime& time) : time_(time) {}
  ~ProcessTimers() override { *alive_ = false; }
  ProcessTimers(const ProcessTimers&) = delete;
  ProcessTimers& operator=(const ProcessTimers&) = delete;

  std::int64_t now_ms() const override { return time_.now_ms(); }
  void After(std::int64_t delay_ms, std::function<void()> task) override;

  std::int64_t stopped_until_ms = 0;

 private:
  VirtualTime& time_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// A toy state instead of an engine: what was done for each client, once, and a digest over all
// frames in their order.
class ToyState final : public Replica {
 public:
  Position position() const override { return position_; }
  Status Clear() override;
  Status LoadPart(std::string_view part) override;
  Status FinishLoad(const Position& position) override;
  Status Apply(const store::LogFrame& frame) override;

  // In parts of a few clients each.
  Checkpoint MakeCheckpoint() const;
  std::uint64_t digest() const { return digest_; }
  // Whether this command of a client was done.
  bool Did(std::uint64_t client, std::uint64_t command) const;
  // Clients whose commands were done out of their order: there must be none.
  std::uint64_t disorders() const { return disorders_; }

  static std::string FrameOf(std::uint64_t client, std::uint64_t command);

 private:
  Position position_;
  std::uint64_t digest_ = 0;
  std::uint64_t disorders_ = 0;
  std::map<std::uint64_t, std::uint64_t> last_;  // command of each client
};

// What is kept on the disk of a simulated machine: replicas by partition.
using ToyDisk = std::map<store::Partition, ToyState>;

// Serves toy states by a partition log, as a real node serves engines: a command is appended, then
// applied, then acknowledged.
class ToyHost final : public PartitionHost {
 public:
  using Done = std::function<void(Status)>;

  ToyHost(store::PartitionLog& log, Timers& timers, ToyDisk& disk,
          std::uint64_t frames_between_checkpoints)
      : log_(log), timers_(timers), disk_(disk), between_(frames_between_checkpoints) {}
  ~ToyHost() override { *alive_ = false; }

  void Open(const store::PartitionState& state, std::function<void(Status)> done) override;
  void Close(store::Partition partition, bool fenced, std::function<void()> done) override;
  void Follow(store::Partition partition, std::uint64_t last) override;
  void EndFollow(store::Partition partition) override;
  std::uint64_t FollowedTo(store::Partition partition) const override;

  // kUnavailable: try again, perhaps elsewhere.
  void Submit(store::Partition partition, std::uint64_t client, std::uint64_t command, Done done);

  std::function<void(const store::Claim&)> on_fenced;
  std::function<void(std::uint64_t lacked)> on_open;  // so many frames of the log
  std::function<void()> on_anew;  // the log does not reach back to a followed one any more

 private:
  struct Command {
    std::uint64_t client = 0;
    std::uint64_t command = 0;
    Done done;
  };
  struct Served {
    store::Claim claim = {};
    bool open = false;  // false: it catches up, or is being closed
    bool appending = false;
    bool storing = false;  // a checkpoint
    std::uint32_t attempts = 0;
    std::uint64_t checkpoint = 0;  // the sequence of the last one
    std::vector<Command> queue = {};
    std::function<void()> closed = {};
  };
  // A partition that is followed. What is read goes on when it is not followed any more.
  struct Standby {
    bool reading = false;
    bool caught_up = false;  // once: what is new is all that is read
    bool ended = false;
    std::function<void()> then = {};  // when nothing is read any more
  };
  Post PostHere();
  void ReadOn(store::Partition partition, std::uint64_t last);
  void OpenNow(const store::PartitionState& state, const std::function<void(Status)>& done);
  void Next(store::Partition partition);
  void Answered(store::Partition partition, const Command& command, const store::LogFrame& frame,
                const Status& status);
  void EndIfIdle(store::Partition partition);
  void StoreCheckpointIfDue(store::Partition partition);

  store::PartitionLog& log_;
  Timers& timers_;
  ToyDisk& disk_;
  const std::uint64_t between_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::map<store::Partition, Served> served_;
  std::map<store::Partition, Standby> standbys_;
};

}  // namespace codband::cluster
