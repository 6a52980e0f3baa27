#include "codband/store/fault_file_system.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "codband/store/test_support.h"

namespace codband::store {
namespace {

constexpr int kSeeds = 60;

struct Disk {
  explicit Disk(std::shared_ptr<FaultFileSystem> files)
      : disk(std::move(files)), env(rocksdb::NewCompositeEnv(disk)) {}
  Disk() : Disk(std::make_shared<FaultFileSystem>(1)) {}

  std::unique_ptr<rocksdb::WritableFile> Make(const std::string& path) {
    std::unique_ptr<rocksdb::WritableFile> file;
    EXPECT_TRUE(env->NewWritableFile(path, &file, {}).ok());
    return file;
  }
  void SyncRoot() {
    std::unique_ptr<rocksdb::Directory> root;
    EXPECT_TRUE(env->NewDirectory("/", &root).ok());
    EXPECT_TRUE(root->Fsync().ok());
  }
  // "(gone)" if there is no such file.
  std::string Read(const std::string& path) {
    std::string text;
    return rocksdb::ReadFileToString(env.get(), path, &text).ok() ? text : "(gone)";
  }
  // What is left of the file by power cuts with different seeds.
  std::set<std::string> AfterCuts(const std::string& path) {
    std::set<std::string> left;
    for (int seed = 0; seed < kSeeds; ++seed) left.insert(Disk(disk->CutPower(seed)).Read(path));
    return left;
  }

  std::shared_ptr<FaultFileSystem> disk;
  std::unique_ptr<rocksdb::Env> env;
};

TEST(FaultFileSystemTest, APowerCutLeavesWhatWasSyncedAndAnyPartOfTheRest) {
  Disk disk;
  const auto file = disk.Make("/file");
  ASSERT_TRUE(file->Append("synced").ok());
  ASSERT_TRUE(file->Sync().ok());
  EXPECT_TRUE(disk.AfterCuts("/file").contains("(gone)")) << "its name was not synced";
  disk.SyncRoot();
  EXPECT_EQ(disk.AfterCuts("/file"), std::set<std::string>{"synced"});

  ASSERT_TRUE(file->Append(" and more").ok());
  const auto left = disk.AfterCuts("/file");
  EXPECT_TRUE(left.contains("synced"));
  EXPECT_TRUE(left.contains("synced and more"));
  EXPECT_GT(left.size(), 4U) << "parts of it, too";
  for (const std::string& text : left) EXPECT_EQ(text.substr(0, 6), "synced");
  EXPECT_EQ(disk.Read("/file"), "synced and more") << "the disk itself goes on";
}

TEST(FaultFileSystemTest, NamesAreDurableOnceTheirDirectoryIsSynced) {
  Disk disk;
  const auto old = disk.Make("/old");
  ASSERT_TRUE(old->Append("old").ok() && old->Sync().ok());
  const auto fresh = disk.Make("/fresh");
  ASSERT_TRUE(fresh->Append("new").ok() && fresh->Sync().ok());
  disk.SyncRoot();
  ASSERT_TRUE(disk.env->RenameFile("/fresh", "/old").ok());
  EXPECT_EQ(disk.AfterCuts("/old"), (std::set<std::string>{"new", "old"}));
  disk.SyncRoot();
  EXPECT_EQ(disk.AfterCuts("/old"), std::set<std::string>{"new"});
  EXPECT_EQ(disk.AfterCuts("/fresh"), std::set<std::string>{"(gone)"});
  ASSERT_TRUE(disk.env->DeleteFile("/old").ok());
  EXPECT_EQ(disk.AfterCuts("/old"), (std::set<std::string>{"(gone)", "new"}));
}

TEST(FaultFileSystemTest, ACutOffEndMayComeBackUntilItIsSynced) {
  Disk disk;
  const auto file = disk.Make("/file");
  ASSERT_TRUE(file->Append("long text").ok() && file->Sync().ok());
  disk.SyncRoot();
  ASSERT_TRUE(file->Truncate(4).ok());
  EXPECT_EQ(disk.AfterCuts("/file"), (std::set<std::string>{"long", "long text"}));
  ASSERT_TRUE(file->Sync().ok());
  EXPECT_EQ(disk.AfterCuts("/file"), std::set<std::string>{"long"});
}

TEST(FaultFileSystemTest, AFullDiskWritesWhatFits) {
  Disk disk;
  const auto file = disk.Make("/file");
  disk.disk->SetCapacity(10);
  const auto status = file->Append("0123456789abc");
  EXPECT_TRUE(status.IsNoSpace()) << status.ToString();
  EXPECT_EQ(disk.Read("/file"), "0123456789");
  disk.disk->SetCapacity(100);
  EXPECT_TRUE(file->Append("x").ok());
}

TEST(FaultFileSystemTest, ErrorsComeAsOftenAsAskedForAndAFailedSyncKeepsNothing) {
  Disk disk;
  const auto file = disk.Make("/file");
  disk.SyncRoot();
  ASSERT_TRUE(file->Append("text").ok());
  disk.disk->SetFaults({.write_error = 1, .sync_error = 1});
  EXPECT_TRUE(file->Append("more").IsIOError());
  EXPECT_TRUE(file->Sync().IsIOError());
  EXPECT_EQ(disk.disk->failures(), 2U);
  EXPECT_TRUE(disk.AfterCuts("/file").contains(""));
  disk.disk->SetFaults({.read_error = 1});
  EXPECT_EQ(disk.Read("/file"), "(gone)");
}

// RocksDB counts a batch as written whose sync failed.
TEST(FaultFileSystemTest, ABatchWhoseSyncFailedDoesNotComeBack) {
  Disk disk;
  auto store = std::move(OpenRocksDbStore("/data", {.env = disk.env.get()})).value();
  ASSERT_TRUE(Put(*store, Table::kItems, "a", "1", true).ok());
  disk.disk->SetFaults({.sync_error = 1});
  EXPECT_EQ(Put(*store, Table::kItems, "b", "2", true).code(), StatusCode::kIoError);
  disk.disk->SetFaults({});
  ASSERT_TRUE(Put(*store, Table::kItems, "c", "3", true).ok());
  const std::map<std::string, std::string> expected = {{"a", "1"}, {"c", "3"}};
  EXPECT_EQ(All(*store, Table::kItems), expected);
  store.reset();
  store = std::move(OpenRocksDbStore("/data", {.env = disk.env.get()})).value();
  EXPECT_EQ(All(*store, Table::kItems), expected);
}

// The directories of a new store are durable with the first write.
TEST(FaultFileSystemTest, AStoreKeepsWhatItSyncedFromItsFirstWriteOn) {
  Disk disk;
  const auto open = [](Disk& on) {
    auto store = OpenRocksDbStore("/data", {.env = on.env.get()});
    EXPECT_TRUE(store.ok()) << store.status().ToString();
    return std::move(store).value();
  };
  const auto store = open(disk);
  ASSERT_TRUE(Put(*store, Table::kItems, "a", "1", true).ok());
  ASSERT_TRUE(Put(*store, Table::kItems, "b", std::string(3000, '2'), false).ok());
  std::set<std::size_t> found;
  for (int seed = 0; seed < kSeeds; ++seed) {
    Disk left(disk.disk->CutPower(seed));
    const auto after = open(left);
    EXPECT_EQ(Get(*after, Table::kItems, "a"), "1") << seed;
    found.insert(All(*after, Table::kItems).size());
  }
  EXPECT_EQ(found, (std::set<std::size_t>{1, 2})) << "what was not synced may be there or not";
}

}  // namespace
}  // namespace codband::store
