#pragma once

#include <rocksdb/db.h>

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "codband/base/status.h"
#include "codband/store/rocksdb_store.h"
#include "codband/store/rocksdb_tables.h"

namespace codband {

// An open RocksDB with its handles.
struct RocksDbHandle {
  std::unique_ptr<rocksdb::DB> db;
  std::array<rocksdb::ColumnFamilyHandle*, kTableCount> tables{};  // null: not there (read-only)
  std::vector<rocksdb::ColumnFamilyHandle*> handles;

  RocksDbHandle() = default;
  RocksDbHandle(RocksDbHandle&&) = default;
  RocksDbHandle& operator=(RocksDbHandle&& other) noexcept {
    Close();
    db = std::move(other.db);
    tables = other.tables;
    handles = std::move(other.handles);
    return *this;
  }
  ~RocksDbHandle() { Close(); }

  void Close() {
    if (!db) return;
    for (auto* handle : handles) static_cast<void>(db->DestroyColumnFamilyHandle(handle));
    handles.clear();
    static_cast<void>(db->Close());  // of a log that failed before, it says so again
    db.reset();
  }
};

// What the status means for a caller: "cannot <action> <path>: <reason>".
Status FromRocksDb(const rocksdb::Status& status, std::string_view action,
                   const std::filesystem::path& path);

// Opens the database in `path` as it is; makes it, or tables that are missing, unless `read_only`.
// `existing`: the column families that are there, which matters for reading only.
Result<RocksDbHandle> OpenRocksDb(const std::filesystem::path& path, const RocksDbLayout& layout,
                                  const std::vector<std::string>& existing, bool read_only);

// The same after a look at what is there: whether it is ours, and undamaged as far as RocksDB does
// not look itself. The errors are those of OpenRocksDbStore.
Result<RocksDbHandle> CheckAndOpenRocksDb(const std::filesystem::path& path,
                                          const RocksDbLayout& layout,
                                          const RocksDbOptions& options);

}  // namespace codband
