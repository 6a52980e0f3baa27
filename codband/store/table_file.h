#pragma once

#include <rocksdb/file_system.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "codband/base/status.h"

namespace codband::store {

// RocksDB's table files (….sst), seen from outside. When RocksDB (7.8) opens one, it reads the
// block of properties without its checksum. If the block's last four bytes, the number of restart
// points, are damaged so that their highest bit is set, an assertion fails.

// kCorruption if that would happen. OK for a file that RocksDB refuses by itself, or cannot read.
rocksdb::IOStatus CheckTableFile(rocksdb::FileSystem& files, const std::string& path);

// Sets those bytes right in a file for which CheckTableFile says kCorruption.
Status MendTableFile(rocksdb::FileSystem& files, const std::filesystem::path& path);

}  // namespace codband::store
