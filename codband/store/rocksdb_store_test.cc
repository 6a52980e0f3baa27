#include "codband/store/rocksdb_store.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "codband/store/store_testing.h"

namespace codband {
namespace {

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

}  // namespace
}  // namespace codband
