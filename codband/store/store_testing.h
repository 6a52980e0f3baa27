#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "codband/store/rocksdb_store.h"
#include "codband/store/store.h"

namespace codband {

// A test with a directory of its own.
class StoreTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    directory_ = std::filesystem::path(testing::TempDir()) /
                 (std::string("store_") + test->test_suite_name() + "_" + test->name());
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

}  // namespace codband
