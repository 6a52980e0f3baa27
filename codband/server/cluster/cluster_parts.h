#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "codband/base/status.h"
#include "codband/store/partition_log.h"

namespace codband::server {

// From one data directory to those of several partitions and back, on disk. What is read is not
// changed, and nobody may change it meanwhile.

// Makes a backup of a loop (BackUpCluster) of several partitions out of a data directory
// (engine/store_splitter.h), in a new directory. Returns what is in it. kInvalidArgument: it cannot
// be split. `seed`: of the server, for what is in its log and no checkpoint has yet.
Result<std::string> SplitData(const std::filesystem::path& data, store::Partition partitions,
                              const std::filesystem::path& backup, std::uint64_t seed);

// Makes one data directory out of the partitions of a backup, several (engine/store_joiner.h) or
// one. `scratch` is a new directory for copies, and is deleted.
Status JoinData(const std::filesystem::path& backup, store::Partition partitions,
                const std::filesystem::path& data, const std::filesystem::path& scratch,
                std::uint64_t seed);

}  // namespace codband::server
