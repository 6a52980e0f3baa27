#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "codband/base/log.h"
#include "codband/base/status.h"
#include "codband/engine/engine.h"
#include "codband/policy/shared_pool.h"
#include "codband/server/cluster/lent_engine.h"
#include "codband/store/partition_log.h"

namespace codband::server {

// What a partition publishes, as it is in the log.
struct RegisterBlob {
  std::uint64_t sequence = 0;  // up to which log entry of the partition it is learned
  std::string bytes = {};      // as SharedPool has it

  std::string Encode() const;
  static Result<RegisterBlob> Decode(std::string_view bytes);
};

// A pool for one partition, as it is in the log: what the partition imports, and which registers
// are in it.
struct PoolBlob {
  std::map<store::Partition, std::uint64_t> registers = {};  // versions
  std::string import = {};
  std::map<store::Partition, std::uint64_t> sequences = {};  // of the registers

  std::string Encode() const;
  static Result<PoolBlob> Decode(std::string_view bytes);
};

// Lets the partitions of a loop learn together (policy/shared_pool.h): publishes the registers of
// the partitions of this node, gives them the pools that are for them, and, if this node has
// partition 0, merges the registers of all. Registers and pools are blobs of the log, so that only
// who owns a partition can publish for it, and only who owns partition 0 can merge. Everything may
// be lost or late: what is published next makes up for it.
//
// A thread of its own. Thread-safe.
class PoolKeeper {
 public:
  static constexpr std::int64_t kPeriodMs = 100;  // between steps
  // It looks for what others have written when the log tells that there is something, and so often.
  static constexpr std::int64_t kLookMs = 1000;
  static constexpr std::int64_t kAtTheLatestMs = 5000;  // what was learned is published after it
  // Registers are spread out so that all partitions of the loop together write about this much, and
  // pools likewise; but what was learned is published at the latest as said above.
  static constexpr std::int64_t kBytesPerSecond = 1 << 18;

  // Registers are blobs of their partitions; pools are of partition 0, whose owner merges.
  static constexpr const char* kRegister = "register";
  static constexpr store::Partition kMerger = 0;
  static std::string PoolName(store::Partition partition);

  // The log outlives it.
  PoolKeeper(store::PartitionLog& log, store::Partition partitions, LogSink sink);
  ~PoolKeeper();
  PoolKeeper(const PoolKeeper&) = delete;
  PoolKeeper& operator=(const PoolKeeper&) = delete;

  // The engine learns together with the others from now on, if its policy can.
  void Attach(const store::Claim& claim, engine::Engine& engine);
  // Returns once the engine is not used any more.
  void Detach(store::Partition partition);

  struct Facts {
    std::uint64_t imported = 0;  // pools, since the start
    std::uint64_t merged = 0;    // by this node
    std::uint64_t bytes = 0;     // of registers and pools that this node has written
    // For how long others may not have heard of what was published here: 0 if all of it is in the
    // newest pool.
    double age_seconds = 0;
  };
  Facts facts() const;

  // Of the pool that the partition had imported when its log entry `cleared` was made, or a later
  // one: up to which log entries the others had learned what is in it. Later calls are for the same
  // entry or later ones. Nothing: the partition is not here, or its policy shares nothing.
  using Sequences = std::map<store::Partition, std::uint64_t>;
  std::optional<Sequences> PoolAt(store::Partition partition, std::uint64_t cleared);

  // To be called, from any thread and at any time, when there may be something new in the log.
  std::function<void()> Waker() const {
    return [woken = woken_] { *woken = true; };
  }

 private:
  struct Member {
    Member(const store::Claim& the_claim, engine::Engine& engine)
        : claim(the_claim), lent(engine) {}
    const store::Claim claim;
    LentEngine lent;
    std::atomic<bool> importing{false};  // a callback of the engine ends it
    std::atomic<bool> imported{false};   // and says here how it went
    std::atomic<bool> import_failed{false};
    Sequences importing_sequences = {};  // of that pool; of who steps
    // Pools that were imported, and entries before which that was; guarded by the keeper's mutex.
    std::deque<std::pair<std::uint64_t, Sequences>> imports = {};
    // Of who steps.
    std::uint64_t registers = 0;  // how many were made
    std::uint64_t learned = 0;    // what was published, as Partition::learned counts
    std::int64_t published_ms = 0;
    std::int64_t next_ms = 0;
    bool look = true;        // whether there is a newer pool is to be asked
    std::uint64_t pool = 0;  // the newest that was imported
    std::deque<std::pair<std::uint64_t, std::int64_t>> unmerged = {};  // registers, and since when
  };
  using Members = std::vector<std::shared_ptr<Member>>;

  void Run();
  void Step(bool look);
  Status Publish(Member& member, std::int64_t now_ms);
  Status Merge(Member& first, std::int64_t now_ms);
  // The registers that are new.
  Status ReadRegisters();
  Status WritePools(Member& first, const SharedPool::Merged& merged);
  Status Import(const std::shared_ptr<Member>& member);
  // How long to wait after what took so many bytes for each partition.
  std::int64_t SpacingMs(std::int64_t bytes_each) const;
  void NoteImported(Member& member);
  void Note(const Status& status);

  store::PartitionLog& log_;
  const store::Partition partitions_;
  const LogSink sink_;
  // Shared with those who wake it.
  const std::shared_ptr<std::atomic<bool>> woken_ = std::make_shared<std::atomic<bool>>(true);
  std::mutex step_mutex_;  // guards what follows
  bool in_trouble_ = false;
  // Of the merger, for one claim of partition 0.
  std::uint64_t epoch_ = 0;
  RegisterShelf shelf_;
  std::map<store::Partition, std::uint64_t> versions_;
  std::map<store::Partition, std::uint64_t> merged_versions_;
  Sequences sequences_;  // of the registers
  std::uint64_t pools_ = 0;
  std::string previous_;
  std::int64_t next_merge_ms_ = 0;
  bool look_for_registers_ = true;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  std::map<store::Partition, std::shared_ptr<Member>> members_;
  Facts facts_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace codband::server
