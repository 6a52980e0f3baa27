#pragma once

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "codband/base/log.h"
#include "codband/base/status.h"
#include "codband/store/partition_log.h"

namespace codband::server {

// A user who was forgotten: in which partition, and up to which entry of its log.
struct ErasureId {
  store::Partition partition = 0;
  std::uint64_t sequence = 0;

  // "3.1207"
  std::string ToText() const;
  static std::optional<ErasureId> Parse(std::string_view text);
};

// What a partition holds no more, in the log, in its checkpoint there and in the copy of its owner:
// a blob of the partition. Numbers only grow.
struct ErasedMark {
  static constexpr const char* kName = "erased";

  std::uint64_t erased = 0;       // users forgotten up to this entry of its log
  std::uint64_t last_erased = 0;  // the last of them was, or 0
  bool shares = false;            // whether it imports pools
  // Of other partitions: pools from before they had learned up to these entries of theirs.
  std::map<store::Partition, std::uint64_t> pools = {};

  void Add(const ErasedMark& other);  // what either of them says
  friend bool operator==(const ErasedMark&, const ErasedMark&) = default;
  std::string Encode() const;
  static Result<ErasedMark> Decode(std::string_view bytes);
};

struct ErasureProgress {
  std::vector<std::string> waits_for = {};  // empty: nothing is left of the user
};

// Where a node has its copy of a partition.
std::filesystem::path CopyDirectory(const std::filesystem::path& data, store::Partition partition);

// Knows when nothing is left of users who were forgotten. An erasure is complete once
//   - the log, the checkpoint and the owner's copy of the user's partition are without them,
//   - older registers and pools are deleted,
//   - every partition has imported a pool without them, and its log, checkpoint and copy have none
//     from before.
// Copies that other nodes have of partitions that they do not own any more are deleted if users
// were erased since they left them, by a thread that looks every few seconds.
//
// Thread-safe.
class Erasures {
 public:
  struct Options {
    store::Partition partitions = 1;
    std::filesystem::path data = {};  // where copies are; empty: there are none
    // PoolKeeper::PoolAt; may be empty.
    std::function<std::optional<std::map<store::Partition, std::uint64_t>>(store::Partition,
                                                                           std::uint64_t cleared)>
        pool_at = {};
    LogSink log = {};  // may be empty
  };
  // The log outlives it.
  Erasures(store::PartitionLog& log, Options options);
  ~Erasures();
  Erasures(const Erasures&) = delete;
  Erasures& operator=(const Erasures&) = delete;

  // What an engine had cleared (EngineStats) before a checkpoint of it was made that is now in the
  // log. Blocks.
  struct Cleared {
    std::uint64_t cleared = 0;
    std::uint64_t erased = 0;
    std::uint64_t last_erased = 0;

    friend bool operator==(const Cleared&, const Cleared&) = default;
  };
  void NoteCheckpoint(const store::Claim& claim, const Cleared& cleared);

  // Blocks: asks for the marks of all partitions.
  Result<ErasureProgress> Look(const ErasureId& id);

  // This node's copy of a partition is in use from now on, or no more; then it has erased users up
  // to this entry. At the start none is.
  void UseCopy(store::Partition partition);
  void LeaveCopy(store::Partition partition, std::uint64_t erased);
  // Deletes copies that were left before users were erased. The thread does it.
  void DropOldCopies();

 private:
  Result<ErasedMark> ReadMark(store::Partition partition);
  void DropOldCopy(store::Partition partition);
  // A copy that is left, and up to which entry it has erased users. Precondition: the lock of
  // copies.
  void MarkLeft(store::Partition partition, std::uint64_t erased);
  void Tell(LogLevel level, store::Partition partition, std::string_view message) const;
  void Run();

  store::PartitionLog& log_;
  const Options options_;
  std::mutex copies_mutex_;  // of the copies that are not in use, and guards the next one
  std::set<store::Partition> in_use_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace codband::server
