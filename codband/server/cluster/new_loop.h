#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "codband/base/status.h"
#include "codband/store/partition_log.h"

namespace codband::server {

// All frames of the log that partitions share, from the first one on.
Result<std::vector<std::string>> ReadWholeCatalogue(store::PartitionLog& log);

// What is written into a new loop. Until all of it is there no node can take a partition: all are
// wanted on a node of its own name, which is taken to be alive. If this is interrupted the loop
// stays so, and the same can be written again; when that node is gone the loop is complete.
class NewLoop {
 public:
  static constexpr const char* kName = "(restore)";
  static constexpr std::int64_t kLeaseMs = 30'000;

  explicit NewLoop(store::PartitionLog& log) : log_(log) {}

  // kInvalidArgument: there is something in it that an interrupted one has not written.
  // kUnavailable: another one writes, or was interrupted less than kLeaseMs ago.
  Status Take(store::Partition partitions);
  // The frames of the shared log, from the first one on, and the pool to go on with (PoolBlob;
  // empty: none).
  Status PutShared(const std::vector<std::string>& frames, std::string_view pool);
  // What is in the data directory becomes the partition's checkpoint.
  Status Fill(store::Partition partition, const std::filesystem::path& data);
  // All is there.
  Status LetGo();

 private:
  Status Hold(store::Partition partitions);

  store::PartitionLog& log_;
  std::vector<store::Claim> claims_;
  std::vector<std::uint64_t> last_;  // frames of the partitions' logs
};

}  // namespace codband::server
