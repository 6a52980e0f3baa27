#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codband/base/status.h"
#include "codband/store/partition_log.h"

namespace codband::server {

// What a backup of a loop has beside its partitions, in a file of its own.
struct LoopFile {
  static constexpr const char* kName = "loop";

  store::Partition partitions = 0;
  std::vector<std::string> shared = {};  // the frames of the shared log
  std::string pool = {};                 // the newest PoolBlob of the merger; empty: none

  std::string Encode() const;
  // kCorruption on what Encode cannot have written, kInvalidArgument if it is of a newer version.
  static Result<LoopFile> Decode(std::string_view bytes);
  static Result<LoopFile> Read(const std::filesystem::path& backup);
};

// Copies a loop into a new directory, while nodes serve it: a data directory for each partition
// (partition-N, which ExamineData can look at), and a LoopFile. Every partition is of one moment,
// the last frame at the time; the moments differ, as partitions do not depend on each other. Until
// it is complete the name ends in ".partial". Group and others get no rights to it. Returns what is
// in it.
Result<std::string> BackUpCluster(store::PartitionLog& log, const std::filesystem::path& out);

// Opens a loop, which is made if it is not there, with as many partitions.
using OpenLoop =
    std::function<Result<std::unique_ptr<store::PartitionLog>>(store::Partition partitions)>;

struct FillOptions {
  // How many partitions the loop gets: of a backup as many as it had unless given, of a data
  // directory one.
  std::optional<store::Partition> partitions = {};
  // Where several are made out of one, or others than there were: a directory with room for two
  // copies of everything. Empty: where the source is.
  std::filesystem::path scratch = {};
  // Of the server: what its log has behind the checkpoint is learned with it.
  std::uint64_t seed = 1;
};

// Puts a backup into a loop that is new: nothing was ever in it, and no node has joined. The backup
// is examined before the loop is opened. kInvalidArgument and kCheckFailed: nothing was written. If
// it fails or is interrupted later no node serves the loop, and it can be repeated (new_loop.h).
Result<std::string> RestoreCluster(const OpenLoop& open, const std::filesystem::path& from,
                                   const FillOptions& options = {});

// Puts a data directory that no server runs on into a new loop: of one partition, whose node goes
// on bit for bit, or of several (cluster_parts.h). As RestoreCluster; the directory is not changed.
Result<std::string> ImportData(const OpenLoop& open, const std::filesystem::path& data,
                               const FillOptions& options = {});

// The other way round, of a loop that nodes may be serving: a new data directory with everything up
// to now. Of several partitions each is of one moment, its last frame at the time; `seed` is that
// of the nodes.
Result<std::string> ExportData(store::PartitionLog& log, const std::filesystem::path& out,
                               std::uint64_t seed = 1);

}  // namespace codband::server
