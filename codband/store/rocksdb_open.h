#pragma once

#include <rocksdb/db.h>
#include <rocksdb/listener.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "codband/base/status.h"
#include "codband/store/rocksdb_store.h"
#include "codband/store/rocksdb_tables.h"

namespace codband::store {

// Remembers why RocksDB has stopped, and keeps it from recovering by itself; see
// RocksDbStore::Recover. Thread-safe.
class ErrorListener final : public rocksdb::EventListener {
 public:
  bool failed() const { return failed_; }          // something, also in the background
  bool log_failed() const { return log_failed_; }  // the write-ahead log
  rocksdb::Status status() const {                 // the first failure
    const std::lock_guard lock(mutex_);
    return status_;
  }

  void OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status* status) override {
    using Reason = rocksdb::BackgroundErrorReason;
    const std::lock_guard lock(mutex_);
    if (status_.ok()) status_ = *status;
    if (reason == Reason::kWriteCallback || reason == Reason::kMemTable) log_failed_ = true;
    failed_ = true;
  }
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason, rocksdb::Status,
                            bool* auto_recovery) override {
    *auto_recovery = false;
  }

 private:
  mutable std::mutex mutex_;
  rocksdb::Status status_;
  std::atomic<bool> failed_ = false;
  std::atomic<bool> log_failed_ = false;
};

// An open RocksDB with its handles.
struct RocksDbHandle {
  std::unique_ptr<rocksdb::DB> db;
  std::array<rocksdb::ColumnFamilyHandle*, kTableCount> tables{};  // null: not there (read-only)
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  std::shared_ptr<ErrorListener> listener;  // RocksDB has it, too

  RocksDbHandle() = default;
  RocksDbHandle(RocksDbHandle&&) = default;
  RocksDbHandle& operator=(RocksDbHandle&& other) noexcept {
    Close();
    db = std::move(other.db);
    tables = other.tables;
    handles = std::move(other.handles);
    listener = std::move(other.listener);
    return *this;
  }
  ~RocksDbHandle() { Close(); }

  void Close() {
    if (!db) return;
    for (auto* handle : handles) static_cast<void>(db->DestroyColumnFamilyHandle(handle));
    handles.clear();
    static_cast<void>(db->Close());  // repeats the error of a log that has failed
    db.reset();
  }
};

// What the status means for a caller: "cannot <action> <path>: <reason>".
Status FromRocksDb(const rocksdb::Status& status, std::string_view action,
                   const std::filesystem::path& path);

// Opens the database in `path`; creates it, or missing tables, unless `read_only`. `existing`: the
// column families that are there; used if `read_only`.
Result<RocksDbHandle> OpenRocksDb(const std::filesystem::path& path, const RocksDbLayout& layout,
                                  const std::vector<std::string>& existing, bool read_only);

// The same, after checks that RocksDB does not make: that the database is ours, and that its
// write-ahead logs are undamaged. The errors are those of OpenRocksDbStore.
Result<RocksDbHandle> CheckAndOpenRocksDb(const std::filesystem::path& path,
                                          const RocksDbLayout& layout,
                                          const RocksDbOptions& options);

}  // namespace codband::store
