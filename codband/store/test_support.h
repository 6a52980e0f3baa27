#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "codband/store/rocksdb_store.h"
#include "codband/store/store.h"

namespace codband::store {

// A test with a directory of its own.
class StoreTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    directory_ = FastDirectory() /
                 fmt::format("codband_{}_{}_{}", test->test_suite_name(), test->name(), ::getpid());
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::unique_ptr<Store> Open(const std::filesystem::path& directory,
                              const RocksDbOptions& options = {}) {
    auto store = OpenRocksDbStore(directory, options);
    EXPECT_TRUE(store.ok()) << store.status().ToString();
    return store.ok() ? std::move(store).value() : nullptr;
  }
  std::unique_ptr<Store> Open() { return Open(directory_ / "data"); }

  static Status OpenStatus(const std::filesystem::path& directory,
                           const RocksDbOptions& options = {}) {
    return OpenRocksDbStore(directory, options).status();
  }

  std::filesystem::path directory_;

 private:
  // In memory if there is enough: hundreds of databases are created, and syncing each to a disk is
  // slow. Losses of power are simulated by changing files, not by the disk.
  static std::filesystem::path FastDirectory() {
    struct statvfs memory {};
    const bool plenty = ::statvfs("/dev/shm", &memory) == 0 && ::access("/dev/shm", W_OK) == 0 &&
                        memory.f_bavail * memory.f_frsize > std::uint64_t{1} << 30;
    return plenty ? std::filesystem::path("/dev/shm") : std::filesystem::path(testing::TempDir());
  }
};

inline Status Put(Store& store, Table table, std::string key, std::string value,
                  bool sync = false) {
  StoreBatch batch;
  batch.Put(table, std::move(key), std::move(value));
  return store.Write(batch, sync);
}

// The value, or "(<code>)".
inline std::string Get(const Store& store, Table table, std::string_view key) {
  std::string value;
  const Status status = store.Get(table, key, value);
  return status.ok() ? value : "(" + std::string(StatusCodeName(status.code())) + ")";
}

inline std::map<std::string, std::string> All(const Store& store, Table table,
                                              std::string_view from = {},
                                              std::string_view to = {}) {
  std::map<std::string, std::string> content;
  std::string last;
  const Status status = store.Scan(table, from, to, [&](auto key, auto value) {
    EXPECT_TRUE(content.empty() || last < key) << "out of order";
    last = key;
    content.emplace(key, value);
    return true;
  });
  EXPECT_TRUE(status.ok()) << status.ToString();
  return content;
}

}  // namespace codband::store
