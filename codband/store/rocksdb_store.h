#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "codband/store/store.h"

namespace rocksdb {
class Env;
}

namespace codband::store {

struct RocksDbOptions {
  bool create = true;      // make the directory and the tables if they are not there
  bool read_only = false;  // nothing is changed, not even repaired
  std::uint64_t cache_bytes = 64 << 20;
  std::uint64_t write_buffer_bytes = 32 << 20;  // of all tables together
  // Where the files are; the system's own if not given. Outlives the store. Another one knows
  // neither Backup nor the size on disk.
  rocksdb::Env* env = nullptr;
};

// Opens the tables in `directory`/rocksdb. A torn write at the end of the write-ahead log is
// dropped; it had not been acknowledged. kUnavailable: another process has it open. kNotFound:
// there is nothing and `create` is false. kCorruption: the data is damaged. kInvalidArgument: the
// directory is of another program, or of a newer version. With `read_only` another process may have
// it open; what that process writes later is not seen.
Result<std::unique_ptr<Store>> OpenRocksDbStore(const std::filesystem::path& directory,
                                                const RocksDbOptions& options = {});

// Whether another process has the tables in `directory`/rocksdb open for writing. Changes nothing,
// and works where nothing can be written.
bool IsRocksDbStoreInUse(const std::filesystem::path& directory);

}  // namespace codband::store
