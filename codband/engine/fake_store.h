#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codband/store/store.h"

namespace codband::engine {

// A store in memory for tests. It fails where a test wants it to, can hold writes until the test
// lets them go on, and remembers them. Thread-safe.
class FakeStore final : public store::Store {
 public:
  using Table = store::Table;
  using Content = std::map<std::string, std::string>;
  enum class Call { kWrite, kWriteBulk, kGet, kScan };

  struct Written {
    std::vector<store::StoreBatch::Entry> entries;
    bool sync = false;

    bool Touches(Table table) const {
      for (const auto& entry : entries) {
        if (entry.table == table) return true;
      }
      return false;
    }
  };

  static constexpr const char* kFault = "the disk is broken";

  // Calls of this kind that touch the table fail until Heal(). A scan visits `scan_after` rows
  // before.
  void Fail(Call call, Table table, std::size_t scan_after = 0) {
    const std::lock_guard lock(mutex_);
    fault_ = {call, table, scan_after};
  }
  // The same with an exception, as if there were no memory.
  void Starve(Call call, Table table) {
    const std::lock_guard lock(mutex_);
    fault_ = {call, table, 0, true};
  }
  void Heal() {
    const std::lock_guard lock(mutex_);
    fault_.reset();
  }

  // Write waits from now on until ReleaseWrites().
  void HoldWrites() {
    const std::lock_guard lock(mutex_);
    hold_ = true;
  }
  void AwaitHeldWrite() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return held_ > 0; });
  }
  void ReleaseWrites() {
    const std::lock_guard lock(mutex_);
    hold_ = false;
    changed_.notify_all();
  }

  // Called at the end of every Write that works, before it returns.
  std::function<void()> on_written = {};

  std::vector<Written> writes() const {
    const std::lock_guard lock(mutex_);
    return writes_;
  }
  Content content(Table table) const {
    const std::lock_guard lock(mutex_);
    return tables_[static_cast<std::size_t>(table)];
  }
  void Put(Table table, const std::string& key, const std::string& value) {
    const std::lock_guard lock(mutex_);
    tables_[static_cast<std::size_t>(table)][key] = value;
  }
  // As if the process had been killed: the tables alone.
  void CopyTablesTo(FakeStore& other) const {
    const std::scoped_lock lock(mutex_, other.mutex_);
    other.tables_ = tables_;
  }

  Status Write(const store::StoreBatch& batch, bool sync) override {
    {
      std::unique_lock lock(mutex_);
      ++held_;
      changed_.notify_all();
      changed_.wait(lock, [&] { return !hold_; });
      --held_;
      CODBAND_RETURN_IF_ERROR(Apply(Call::kWrite, batch));
      writes_.push_back({.entries = batch.entries(), .sync = sync});
    }
    if (on_written) on_written();
    return {};
  }
  Status WriteBulk(store::StoreBatch batch) override {
    const std::lock_guard lock(mutex_);
    return Apply(Call::kWriteBulk, batch);
  }
  Status Get(Table table, std::string_view key, std::string& value) const override {
    const std::lock_guard lock(mutex_);
    if (Fails(Call::kGet, table)) return Status::IoError(kFault);
    const Content& content = tables_[static_cast<std::size_t>(table)];
    const auto found = content.find(std::string(key));
    if (found == content.end()) return Status::NotFound("no such key");
    value = found->second;
    return {};
  }
  Status Scan(Table table, std::string_view from, std::string_view to,
              const Visit& visit) const override {
    Content content;
    std::optional<std::size_t> rows_left;
    {
      const std::lock_guard lock(mutex_);
      content = tables_[static_cast<std::size_t>(table)];
      if (Fails(Call::kScan, table)) rows_left = fault_->scan_after;
    }
    for (auto row = content.lower_bound(std::string(from)); row != content.end(); ++row) {
      if (!to.empty() && row->first >= to) break;
      if (rows_left && (*rows_left)-- == 0) break;
      if (!visit(row->first, row->second)) return {};
    }
    return rows_left ? Status::IoError(kFault) : Status();
  }
  Status Backup(const std::filesystem::path&) override { return Status::IoError("not here"); }
  Status Scrub(const Traces& traces) override {
    const std::lock_guard lock(mutex_);
    scrubs_.push_back(traces);
    return {};
  }
  std::vector<Traces> scrubs() const {
    const std::lock_guard lock(mutex_);
    return scrubs_;
  }
  Status Verify() const override { return {}; }
  store::StoreStats Stats() const override { return {}; }

 private:
  struct Fault {
    Call call;
    Table table;
    std::size_t scan_after;
    bool throws = false;
  };
  bool Fails(Call call, Table table) const {
    const bool fails = fault_ && fault_->call == call && fault_->table == table;
    if (fails && fault_->throws) throw std::bad_alloc();
    return fails;
  }
  Status Apply(Call call, const store::StoreBatch& batch) {
    using Kind = store::StoreBatch::Kind;
    for (const auto& entry : batch.entries()) {
      if (Fails(call, entry.table)) return Status::IoError(kFault);
    }
    for (const auto& entry : batch.entries()) {
      Content& content = tables_[static_cast<std::size_t>(entry.table)];
      if (entry.kind == Kind::kPut) content[entry.key] = entry.value;
      if (entry.kind == Kind::kDelete) content.erase(entry.key);
      if (entry.kind == Kind::kDeleteRange) {
        content.erase(content.lower_bound(entry.key), content.lower_bound(entry.value));
      }
    }
    return {};
  }

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::array<Content, store::kTableCount> tables_;
  std::optional<Fault> fault_;
  std::vector<Written> writes_;
  std::vector<Traces> scrubs_;
  bool hold_ = false;
  int held_ = 0;
};

}  // namespace codband::engine
