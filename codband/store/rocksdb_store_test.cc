#include "codband/store/rocksdb_store.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/perf_context.h>
#include <rocksdb/perf_level.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "codband/base/file.h"
#include "codband/base/random.h"
#include "codband/store/test_support.h"

namespace codband::store {
namespace {

namespace fs = std::filesystem;
using Content = std::map<std::string, std::string>;
using testing::HasSubstr;

class RocksDbStoreTest : public StoreTest {};

TEST_F(RocksDbStoreTest, KeepsWhatWasWrittenInEveryTable) {
  {
    auto store = Open();
    StoreBatch batch;
    for (std::size_t i = 0; i < kTableCount; ++i) {
      batch.Put(static_cast<Table>(i), "key", fmt::format("value {}", i));
    }
    ASSERT_TRUE(store->Write(batch, true).ok());
  }
  auto store = Open();
  for (std::size_t i = 0; i < kTableCount; ++i) {
    EXPECT_EQ(Get(*store, static_cast<Table>(i), "key"), fmt::format("value {}", i));
  }
}

TEST_F(RocksDbStoreTest, KeysAndValuesAreAnyBytes) {
  auto store = Open();
  const std::string zeros("\0\0", 2), high("\xff\xfe\0x", 4);
  ASSERT_TRUE(Put(*store, Table::kItems, zeros, high).ok());
  ASSERT_TRUE(Put(*store, Table::kItems, high, "").ok());
  ASSERT_TRUE(Put(*store, Table::kItems, "", "of the empty key").ok());
  EXPECT_EQ(Get(*store, Table::kItems, zeros), high);
  EXPECT_EQ(Get(*store, Table::kItems, high), "");
  EXPECT_EQ(Get(*store, Table::kItems, ""), "of the empty key");
  EXPECT_EQ(All(*store, Table::kItems),
            (Content{{"", "of the empty key"}, {zeros, high}, {high, ""}}));
}

TEST_F(RocksDbStoreTest, GetOfAMissingKeyIsNotFoundAndLeavesTheValueAlone) {
  auto store = Open();
  ASSERT_TRUE(Put(*store, Table::kUsers, "ann", "1").ok());
  std::string value = "before";
  EXPECT_EQ(store->Get(Table::kUsers, "bob", value).code(), StatusCode::kNotFound);
  EXPECT_EQ(store->Get(Table::kItems, "ann", value).code(), StatusCode::kNotFound);
  EXPECT_EQ(value, "before");
}

TEST_F(RocksDbStoreTest, LaterEntriesOfABatchWin) {
  auto store = Open();
  ASSERT_TRUE(Put(*store, Table::kLog, "k5", "old").ok());
  StoreBatch batch;
  batch.Put(Table::kLog, "k1", "a");
  batch.Put(Table::kLog, "k1", "b");
  batch.Put(Table::kLog, "k2", "a");
  batch.Delete(Table::kLog, "k2");
  batch.Put(Table::kLog, "k3", "gone");
  batch.DeleteRange(Table::kLog, "k3", "k6");
  batch.Put(Table::kLog, "k4", "after the range");
  ASSERT_TRUE(store->Write(batch, false).ok());
  EXPECT_EQ(All(*store, Table::kLog), (Content{{"k1", "b"}, {"k4", "after the range"}}));
}

TEST_F(RocksDbStoreTest, DeleteRangeLeavesItsEndAndOtherTables) {
  auto store = Open();
  for (const Table table : {Table::kLog, Table::kItems}) {
    for (const char* key : {"a", "b", "c"}) ASSERT_TRUE(Put(*store, table, key, key).ok());
  }
  StoreBatch batch;
  batch.DeleteRange(Table::kLog, "a", "c");
  batch.DeleteRange(Table::kItems, "c", "a");  // nothing is in there
  batch.DeleteRange(Table::kItems, "b", "b");
  ASSERT_TRUE(store->Write(batch, false).ok());
  EXPECT_EQ(All(*store, Table::kLog), (Content{{"c", "c"}}));
  EXPECT_EQ(All(*store, Table::kItems).size(), 3U);
}

TEST_F(RocksDbStoreTest, ScanGoesFromInclusiveToExclusive) {
  auto store = Open();
  for (const char* key : {"a", "b", "c", "d"}) {
    ASSERT_TRUE(Put(*store, Table::kItems, key, "").ok());
  }
  EXPECT_EQ(All(*store, Table::kItems, "b", "d"), (Content{{"b", ""}, {"c", ""}}));
  EXPECT_EQ(All(*store, Table::kItems, "bb"), (Content{{"c", ""}, {"d", ""}}));
  EXPECT_EQ(All(*store, Table::kItems, "b", "b"), Content{});
  EXPECT_EQ(All(*store, Table::kItems, "d", "a"), Content{});
  std::vector<std::string> seen;
  ASSERT_TRUE(store
                  ->Scan(Table::kItems, "", "",
                         [&](auto key, auto) {
                           seen.emplace_back(key);
                           return key < "b";
                         })
                  .ok());
  EXPECT_EQ(seen, (std::vector<std::string>{"a", "b"}));
}

TEST_F(RocksDbStoreTest, ScanSeesOneMomentAndItsVisitorMayUseTheStore) {
  auto store = Open();
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(Put(*store, Table::kPending, fmt::format("{:03}", i), "old").ok());
  }
  int seen = 0;
  const Status status = store->Scan(Table::kPending, "", "", [&](auto key, auto value) {
    EXPECT_EQ(value, "old");
    EXPECT_EQ(Get(*store, Table::kPending, key), seen == 0 ? "old" : "new");
    if (seen++ == 0) {
      StoreBatch batch;
      for (int i = 0; i < 200; ++i) batch.Put(Table::kPending, fmt::format("{:03}", i), "new");
      EXPECT_TRUE(store->Write(batch, false).ok());
    }
    return true;
  });
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(seen, 100);
  EXPECT_EQ(All(*store, Table::kPending).size(), 200U);
}

TEST_F(RocksDbStoreTest, BulkWriteSortsAndTheLastOfEqualKeysWins) {
  {
    auto store = Open();
    StoreBatch first;
    first.Put(Table::kUsers, "dora", "0");
    first.Put(Table::kUsers, "eve", "0");
    ASSERT_TRUE(store->WriteBulk(std::move(first)).ok());
    StoreBatch batch;
    batch.Put(Table::kUsers, "carl", "1");
    batch.Put(Table::kMeta, "checkpoint", "7");
    batch.Put(Table::kUsers, "ann", "1");
    batch.Put(Table::kUsers, "carl", "2");
    batch.Put(Table::kUsers, "bob", "1");
    batch.Delete(Table::kUsers, "bob");
    batch.Delete(Table::kUsers, "dora");
    batch.Delete(Table::kUsers, "eve");
    batch.Put(Table::kUsers, "eve", "3");
    batch.Delete(Table::kUsers, "nobody");
    ASSERT_TRUE(store->WriteBulk(std::move(batch)).ok());
    ASSERT_TRUE(store->WriteBulk({}).ok());
  }
  auto store = Open();
  EXPECT_EQ(All(*store, Table::kUsers), (Content{{"ann", "1"}, {"carl", "2"}, {"eve", "3"}}));
  EXPECT_EQ(All(*store, Table::kMeta), (Content{{"checkpoint", "7"}}));
}

TEST_F(RocksDbStoreTest, BulkWriteRefusesRangesAndChangesNothing) {
  auto store = Open();
  StoreBatch batch;
  batch.Put(Table::kUsers, "ann", "1");
  batch.DeleteRange(Table::kUsers, "b", "c");
  EXPECT_EQ(store->WriteBulk(std::move(batch)).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(All(*store, Table::kUsers), Content{});
}

// The filter of a file is as large as a part of a small cache.
TEST_F(RocksDbStoreTest, ALookupAmongManyReadsLittle) {
  auto store = Open(directory_ / "data", {.cache_bytes = 1 << 20, .write_buffer_bytes = 1 << 20});
  constexpr std::uint64_t kRecords = 500'000;
  const auto key = [](std::uint64_t i) { return fmt::format("{:08}", i); };
  StoreBatch batch;
  for (std::uint64_t i = 0; i < kRecords; ++i) batch.Put(Table::kUsers, key(i), "x");
  ASSERT_TRUE(store->WriteBulk(std::move(batch)).ok());
  constexpr std::uint64_t kLookups = 200;
  RandomStream random({1, 1}, 1);
  rocksdb::SetPerfLevel(rocksdb::PerfLevel::kEnableCount);
  rocksdb::get_perf_context()->Reset();
  for (std::uint64_t i = 0; i < kLookups; ++i) {
    EXPECT_EQ(Get(*store, Table::kUsers, key(random.Below(kRecords))), "x");
  }
  rocksdb::SetPerfLevel(rocksdb::PerfLevel::kDisable);
  EXPECT_LT(rocksdb::get_perf_context()->block_read_byte / kLookups, 50'000U);
}

// How many deleted entries a look at the front of the table goes over.
std::uint64_t SkippedAtTheFront(const Store& store, Table table) {
  rocksdb::SetPerfLevel(rocksdb::PerfLevel::kEnableCount);
  rocksdb::get_perf_context()->Reset();
  EXPECT_TRUE(store.Scan(table, "", "", [](auto, auto) { return false; }).ok());
  rocksdb::SetPerfLevel(rocksdb::PerfLevel::kDisable);
  return rocksdb::get_perf_context()->internal_delete_skipped_count +
         rocksdb::get_perf_context()->internal_key_skipped_count;
}

TEST_F(RocksDbStoreTest, TheFrontOfAQueueIsFoundWithoutWalkingOverAllThatIsGone) {
  auto store = Open();
  constexpr int kEntries = 400'000;
  constexpr int kWaiting = 1'000;
  const auto key = [](int i) { return fmt::format("{:012}-event", i); };
  std::uint64_t most = 0;
  for (int i = 0; i < kEntries; i += 500) {
    StoreBatch batch;
    for (int k = i; k < i + 500; ++k) {
      batch.Put(Table::kDeadlines, key(k), "");
      if (k >= kWaiting) batch.Delete(Table::kDeadlines, key(k - kWaiting));
    }
    ASSERT_TRUE(store->Write(batch, false).ok());
    if (i % 20'000 == 0) most = std::max(most, SkippedAtTheFront(*store, Table::kDeadlines));
  }
  // About 40'000 entries are in memory or not yet compacted; without compaction 800'000 would be.
  EXPECT_LT(most, 100'000U);
  EXPECT_EQ(All(*store, Table::kDeadlines).size(), kWaiting);
}

TEST_F(RocksDbStoreTest, BulkWriteLeavesNoFilesOfItsOwn) {
  auto store = Open();
  for (int i = 0; i < 3; ++i) {
    StoreBatch batch;
    for (int k = 0; k < 1000; ++k) batch.Put(Table::kUsers, fmt::format("{}", k), "1");
    ASSERT_TRUE(store->WriteBulk(std::move(batch)).ok());
    EXPECT_TRUE(fs::is_empty(directory_ / "data" / "rocksdb" / "bulk"));
  }
}

TEST_F(RocksDbStoreTest, BulkWriteThatCannotBeginFailsAndChangesNothing) {
  auto store = Open();
  ASSERT_TRUE(Put(*store, Table::kItems, "a", "1").ok());
  // A file where its directory should be.
  const fs::path bulk = directory_ / "data" / "rocksdb" / "bulk";
  ASSERT_TRUE(WriteFileDurably(bulk, "in the way").ok());
  StoreBatch batch;
  batch.Put(Table::kUsers, "ann", "1");
  batch.Put(Table::kMeta, "generation", "1");
  const Status status = store->WriteBulk(batch);
  EXPECT_EQ(status.code(), StatusCode::kIoError);
  EXPECT_THAT(status.message(), HasSubstr(bulk.string()));
  EXPECT_TRUE(All(*store, Table::kUsers).empty());
  EXPECT_TRUE(All(*store, Table::kMeta).empty());
  EXPECT_EQ(Get(*store, Table::kItems, "a"), "1");
  fs::remove(bulk);
  ASSERT_TRUE(store->WriteBulk(batch).ok());
  EXPECT_EQ(Get(*store, Table::kMeta, "generation"), "1");
}

TEST_F(RocksDbStoreTest, BackupIsAMomentWhileOthersWrite) {
  constexpr int kBackups = 8;
  auto store = Open();
  std::atomic<bool> done = false;
  std::vector<std::thread> writers;
  writers.emplace_back([&] {
    for (int i = 0; !done; ++i) {
      StoreBatch batch;
      batch.Put(Table::kLog, fmt::format("{:08}", i), std::string(500, 'v'));
      batch.Put(Table::kItems, "last", fmt::format("{}", i));
      ASSERT_TRUE(store->Write(batch, false).ok());
    }
  });
  writers.emplace_back([&] {
    for (int i = 0; !done; ++i) {
      // What a batch says of a bulk write before it, the copy has to know.
      StoreBatch bulk;
      for (int k = 0; k < 50; ++k) {
        bulk.Put(Table::kUsers, fmt::format("{}", k), fmt::format("{:08}", i));
      }
      ASSERT_TRUE(store->WriteBulk(std::move(bulk)).ok());
      ASSERT_TRUE(Put(*store, Table::kPeople, "bulk", fmt::format("{:08}", i)).ok());
    }
  });
  for (int i = 0; i < kBackups; ++i) {
    const fs::path copy = directory_ / fmt::format("backup{}", i);
    const Status status = store->Backup(copy);
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
  done = true;
  for (auto& writer : writers) writer.join();
  for (int i = 0; i < kBackups; ++i) {
    const auto copy = Open(directory_ / fmt::format("backup{}", i));
    ASSERT_NE(copy, nullptr);
    EXPECT_TRUE(copy->Verify().ok());
    const Content log = All(*copy, Table::kLog);
    EXPECT_EQ(Get(*copy, Table::kItems, "last"),
              log.empty() ? "(kNotFound)" : fmt::format("{}", log.size() - 1));
    const Content users = All(*copy, Table::kUsers);
    for (const auto& [user, value] : users) EXPECT_EQ(value, users.begin()->second);
    const std::string known = Get(*copy, Table::kPeople, "bulk");
    if (known != "(kNotFound)") {
      ASSERT_FALSE(users.empty());
      EXPECT_GE(users.begin()->second, known);
    }
    ASSERT_TRUE(Put(*copy, Table::kItems, "goes on", "1").ok());
  }
  EXPECT_EQ(Get(*store, Table::kItems, "goes on"), "(kNotFound)");
}

TEST_F(RocksDbStoreTest, BackupFailsCleanly) {
  auto store = Open();
  ASSERT_TRUE(Put(*store, Table::kItems, "a", "1").ok());
  fs::create_directories(directory_ / "taken");
  const Status taken = store->Backup(directory_ / "taken");
  EXPECT_EQ(taken.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(taken.message(), HasSubstr((directory_ / "taken").string()));
  EXPECT_TRUE(fs::is_empty(directory_ / "taken"));
  ASSERT_TRUE(WriteFileDurably(directory_ / "file", "").ok());
  EXPECT_EQ(store->Backup(directory_ / "file").code(), StatusCode::kInvalidArgument);
  const Status below = store->Backup(directory_ / "file" / "backup");
  EXPECT_EQ(below.code(), StatusCode::kIoError);
  EXPECT_THAT(below.message(), HasSubstr((directory_ / "file").string()));
  // Something of RocksDB's is gone, so that it fails in the middle.
  StoreBatch bulk;
  bulk.Put(Table::kUsers, "ann", "1");
  ASSERT_TRUE(store->WriteBulk(std::move(bulk)).ok());
  for (const auto& entry : fs::directory_iterator(directory_ / "data" / "rocksdb")) {
    if (entry.path().extension() == ".sst") fs::remove(entry.path());
  }
  const Status broken = store->Backup(directory_ / "backup");
  EXPECT_FALSE(broken.ok());
  EXPECT_THAT(broken.message(), HasSubstr((directory_ / "backup").string()));
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(directory_)) {
    left.push_back(entry.path().filename());
  }
  EXPECT_THAT(left, testing::UnorderedElementsAre("data", "file", "taken"));
}

TEST_F(RocksDbStoreTest, BackupGoesToAnotherFileSystem) {
  const fs::path temporary = testing::TempDir();
  struct stat here = {};
  struct stat there = {};
  ASSERT_EQ(::stat(directory_.c_str(), &here), 0);
  ASSERT_EQ(::stat(temporary.c_str(), &there), 0);
  if (here.st_dev == there.st_dev) {
    GTEST_SKIP() << directory_ << " and " << temporary << " are on one file system";
  }
  auto store = Open();
  ASSERT_TRUE(Put(*store, Table::kItems, "a", "1").ok());
  StoreBatch bulk;
  bulk.Put(Table::kUsers, "ann", "1");
  ASSERT_TRUE(store->WriteBulk(std::move(bulk)).ok());
  const fs::path parent = temporary / fmt::format("codband_copy_{}", ::getpid());
  const fs::path copy = parent / "below";
  const Status status = store->Backup(copy / "");
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(Get(*Open(copy), Table::kItems, "a"), "1");
  EXPECT_EQ(Get(*Open(copy), Table::kUsers, "ann"), "1");
  fs::remove_all(parent);
}

TEST_F(RocksDbStoreTest, VerifyFindsDamageInTablesAndLogs) {
  auto store = Open();
  StoreBatch bulk;
  for (int i = 0; i < 10'000; ++i) {
    bulk.Put(Table::kUsers, fmt::format("{}", i), fmt::format("{}", i * 31));
  }
  ASSERT_TRUE(store->WriteBulk(std::move(bulk)).ok());
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(Put(*store, Table::kItems, fmt::format("{}", i), std::string(100, 'v')).ok());
  }
  ASSERT_TRUE(store->Verify().ok());
  for (const char* const extension : {".sst", ".log"}) {
    for (const auto& entry : fs::directory_iterator(directory_ / "data" / "rocksdb")) {
      if (entry.path().extension() != extension) continue;
      std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
      const auto flip = [&] {
        const auto at = static_cast<std::streamoff>(entry.file_size() / 3);
        file.seekg(at);
        const char byte = static_cast<char>(file.get() ^ 1);
        file.seekp(at);
        file.put(byte).flush();
      };
      flip();
      const Status status = store->Verify();
      EXPECT_EQ(status.code(), StatusCode::kCorruption);
      EXPECT_THAT(status.message(), HasSubstr(entry.path().filename().string()));
      flip();
      EXPECT_TRUE(store->Verify().ok());
    }
  }
}

TEST_F(RocksDbStoreTest, StatsGrowWithTheContentAndMemoryIsBounded) {
  auto store = Open(directory_ / "data", {.cache_bytes = 4 << 20, .write_buffer_bytes = 2 << 20});
  const StoreStats before = store->Stats();
  RandomStream random({.seed = 1, .event = 0}, 0);
  std::string value(1'000, ' ');
  std::uint64_t most = 0;
  for (int i = 0; i < 20'000; ++i) {
    for (std::size_t k = 0; k < 500; k += 8) value[k] = static_cast<char>(random());
    ASSERT_TRUE(Put(*store, static_cast<Table>(i % static_cast<int>(kTableCount)),
                    fmt::format("{}", i), value)
                    .ok());
    if (i % 1'000 == 0) most = std::max(most, store->Stats().memory_bytes);
  }
  for (std::size_t i = 0; i < kTableCount; ++i) All(*store, static_cast<Table>(i));
  most = std::max(most, store->Stats().memory_bytes);
  EXPECT_GT(store->Stats().disk_bytes, before.disk_bytes + 1'000'000);
  EXPECT_GT(most, before.memory_bytes);
  EXPECT_LT(most, 12U << 20);
}

TEST_F(RocksDbStoreTest, ManyThreadsDoEverythingAtOnce) {
  auto store = Open();
  constexpr int kThreads = 4;
  constexpr int kWrites = 300;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kWrites; ++i) {
        const std::string key = fmt::format("{}-{}", t, i);
        StoreBatch batch;
        batch.Put(Table::kPending, key, key);
        batch.Put(Table::kDeadlines, key, "");
        ASSERT_TRUE(store->Write(batch, i % 50 == 0).ok());
        ASSERT_EQ(Get(*store, Table::kPending, key), key);
        if (i % 100 == 0) {
          StoreBatch bulk;
          bulk.Put(Table::kUsers, key, key);
          ASSERT_TRUE(store->WriteBulk(std::move(bulk)).ok());
        }
        if (i % 100 == 50) {
          int rows = 0;
          ASSERT_TRUE(
              store->Scan(Table::kDeadlines, "", "", [&](auto, auto) { return ++rows > 0; }).ok());
          ASSERT_GT(rows, i);
          ASSERT_GT(store->Stats().disk_bytes, 0U);
        }
        if (i == 150 && t == 0) {
          ASSERT_TRUE(store->Verify().ok());
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(All(*store, Table::kPending).size(), kThreads * kWrites);
  EXPECT_EQ(All(*store, Table::kUsers).size(), kThreads * kWrites / 100);
}

}  // namespace
}  // namespace codband::store
