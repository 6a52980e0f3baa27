#pragma once

#include <fmt/format.h>
#include <rocksdb/db.h>
#include <rocksdb/listener.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
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

  // What was found to be damaged, each once.
  void NoteDamage(const std::string& text) {
    constexpr std::size_t kMost = 100;
    const std::lock_guard lock(mutex_);
    if (damage_.size() < kMost && std::ranges::find(damage_, text) == damage_.end()) {
      damage_.push_back(text);
    }
  }
  std::vector<std::string> damage() const {
    const std::lock_guard lock(mutex_);
    return damage_;
  }
  // Tables in which a compaction met damage, since they were last taken.
  bool has_damaged_tables() const { return has_damaged_tables_; }
  std::vector<std::string> TakeDamagedTables() {
    const std::lock_guard lock(mutex_);
    has_damaged_tables_ = false;
    return std::exchange(damaged_tables_, {});
  }

  void OnCompactionCompleted(rocksdb::DB*, const rocksdb::CompactionJobInfo& job) override {
    if (!job.status.IsCorruption()) return;
    NoteDamage(
        fmt::format("a file of table '{}' is damaged: {}; the table is not compacted until "
                    "it is repaired",
                    job.cf_name, job.status.ToString()));
    const std::lock_guard lock(mutex_);
    damaged_tables_.push_back(job.cf_name);
    has_damaged_tables_ = true;
  }
  void OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status* status) override {
    using Reason = rocksdb::BackgroundErrorReason;
    if (reason == Reason::kCompaction && status->IsCorruption()) {
      *status = rocksdb::Status::OK();  // the rest goes on
      return;
    }
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
  std::vector<std::string> damage_;
  std::vector<std::string> damaged_tables_;
  std::atomic<bool> has_damaged_tables_ = false;
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

// Checks that no process has the database open. One may open it right after; then opening fails.
Status CheckLock(rocksdb::Env& env, const std::filesystem::path& path);

// A store of an open database in `path`.
std::unique_ptr<Store> MakeRocksDbStore(const std::filesystem::path& path, RocksDbLayout layout,
                                        bool read_only, RocksDbHandle database);

// A key as text: as it is if it can be printed, else in hexadecimal.
std::string KeyText(std::string_view key);
// "table 'users' is damaged from 'a' to 'b': <reason>".
std::string LostText(Table table, const Store::Lost& lost);

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
