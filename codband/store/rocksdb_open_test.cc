#include "codband/store/rocksdb_open.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "codband/base/file.h"
#include "codband/store/list_of_files.h"
#include "codband/store/test_support.h"

namespace codband::store {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class RocksDbOpenTest : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    data_ = directory_ / "data";
    rocksdb_ = data_ / "rocksdb";
  }

  // Every file with its content and time of change.
  static std::map<std::string, std::string> Files(const fs::path& directory) {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(directory)) {
      const auto time = entry.last_write_time().time_since_epoch().count();
      files[entry.path()] = fmt::format("{} ", time) +
                            (entry.is_regular_file() ? ReadFile(entry.path()).value() : "");
    }
    return files;
  }

  fs::path data_, rocksdb_;
};

TEST_F(RocksDbOpenTest, MakesDirectoriesOnlyIfAsked) {
  for (const RocksDbOptions& options :
       {RocksDbOptions{.create = false}, RocksDbOptions{.read_only = true}}) {
    const Status status = OpenStatus(directory_ / "a" / "b", options);
    EXPECT_EQ(status.code(), StatusCode::kNotFound);
    EXPECT_THAT(status.message(), HasSubstr((directory_ / "a" / "b" / "rocksdb").string()));
    EXPECT_FALSE(fs::exists(directory_ / "a"));
  }
  EXPECT_NE(Open(directory_ / "a" / "b"), nullptr);
  EXPECT_NE(Open(directory_ / "a" / "b", {.create = false}), nullptr);
}

TEST_F(RocksDbOpenTest, AFileInTheWayIsAnInvalidArgument) {
  ASSERT_TRUE(WriteFileDurably(directory_ / "file", "x").ok());
  EXPECT_EQ(OpenStatus(directory_ / "file").code(), StatusCode::kInvalidArgument);
  fs::create_directories(data_);
  ASSERT_TRUE(WriteFileDurably(rocksdb_, "x").ok());
  const Status status = OpenStatus(data_);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr(rocksdb_.string()));
}

TEST_F(RocksDbOpenTest, FilesOfOthersAreLeftAlone) {
  fs::create_directories(rocksdb_);
  ASSERT_TRUE(WriteFileDurably(rocksdb_ / "thesis.txt", "x").ok());
  const auto before = Files(data_);
  const Status status = OpenStatus(data_);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), AllOf(HasSubstr(rocksdb_.string()), HasSubstr("thesis.txt")));
  EXPECT_EQ(Files(data_), before);
}

TEST_F(RocksDbOpenTest, AnotherProgramsDatabaseIsRefused) {
  rocksdb::Options options;
  options.create_if_missing = true;
  rocksdb::DB* db = nullptr;
  fs::create_directories(data_);
  ASSERT_TRUE(rocksdb::DB::Open(options, rocksdb_, &db).ok());
  std::unique_ptr<rocksdb::DB> owned(db);
  ASSERT_TRUE(db->Put({}, "theirs", "1").ok());
  owned.reset();
  const Status status = OpenStatus(data_);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), AllOf(HasSubstr(rocksdb_.string()), HasSubstr("another program")));

  ASSERT_TRUE(rocksdb::DB::Open(options, rocksdb_, &db).ok());
  owned.reset(db);
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  ASSERT_TRUE(db->CreateColumnFamily({}, "theirs too", &handle).ok());
  ASSERT_TRUE(db->DestroyColumnFamilyHandle(handle).ok());
  owned.reset();
  for (const bool read_only : {false, true}) {
    const Status again = OpenStatus(data_, {.read_only = read_only});
    EXPECT_EQ(again.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(again.message(), AllOf(HasSubstr(rocksdb_.string()), HasSubstr("'theirs too'")));
  }
}

TEST_F(RocksDbOpenTest, AMakingThatWasCutOffIsFinished) {
  // RocksDB makes "default" first, then one column family after the other.
  rocksdb::Options options;
  options.create_if_missing = true;
  rocksdb::DB* db = nullptr;
  fs::create_directories(data_);
  ASSERT_TRUE(rocksdb::DB::Open(options, rocksdb_, &db).ok());
  std::unique_ptr<rocksdb::DB>(db).reset();
  EXPECT_EQ(OpenStatus(data_, {.create = false}).code(), StatusCode::kNotFound);
  {
    const auto store = Open(data_, {.read_only = true});
    EXPECT_EQ(Get(*store, Table::kUsers, "ann"), "(kNotFound)");
    EXPECT_TRUE(All(*store, Table::kUsers).empty());
    EXPECT_TRUE(store->Verify().ok());
  }
  const auto store = Open(data_);
  ASSERT_TRUE(Put(*store, Table::kPeople, "a", "1").ok());
  // Before that, it makes files of which none is the database yet.
  fs::create_directories(directory_ / "early" / "rocksdb");
  ASSERT_TRUE(WriteFileDurably(directory_ / "early" / "rocksdb" / "LOCK", "").ok());
  ASSERT_TRUE(WriteFileDurably(directory_ / "early" / "rocksdb" / "000001.dbtmp", "x").ok());
  EXPECT_NE(Open(directory_ / "early"), nullptr);
}

TEST_F(RocksDbOpenTest, MissingAndDamagedFilesAreCorruption) {
  {
    auto store = Open(data_);
    StoreBatch batch;
    for (int i = 0; i < 1000; ++i) batch.Put(Table::kUsers, fmt::format("{}", i), "1");
    ASSERT_TRUE(store->WriteBulk(std::move(batch)).ok());
  }
  fs::path table, manifest;
  for (const auto& entry : fs::directory_iterator(rocksdb_)) {
    if (entry.path().extension() == ".sst") table = entry.path();
    if (IsListOfFiles(entry.path().string())) manifest = entry.path();
  }
  fs::remove(manifest.string() + kTwinSuffix);
  for (const fs::path& path : {table, manifest, rocksdb_ / "CURRENT"}) {
    const std::string content = ReadFile(path).value();
    fs::remove(path);
    for (const bool read_only : {false, true}) {
      const Status status = OpenStatus(data_, {.read_only = read_only});
      EXPECT_EQ(status.code(), StatusCode::kCorruption) << status.ToString();
      EXPECT_THAT(status.message(), HasSubstr(path.stem().string()));
    }
    std::string damaged = content;
    damaged[content.size() / 2] = static_cast<char>(~damaged[content.size() / 2]);
    if (path == table) damaged.resize(content.size() / 2);
    ASSERT_TRUE(WriteFileDurably(path, damaged).ok());
    const Status status = OpenStatus(data_);
    EXPECT_EQ(status.code(), StatusCode::kCorruption) << status.ToString();
    EXPECT_THAT(status.message(), HasSubstr(rocksdb_.string()));
    ASSERT_TRUE(WriteFileDurably(path, content).ok());
  }
  EXPECT_EQ(All(*Open(data_), Table::kUsers).size(), 1000U);
}

TEST_F(RocksDbOpenTest, OneAtATimeInThisProcess) {
  auto store = Open(data_);
  const Status status = OpenStatus(data_);
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), AllOf(HasSubstr((rocksdb_ / "LOCK").string()),
                                      HasSubstr("this process has it open already")));
  // Having asked does not release the lock.
  EXPECT_EQ(OpenStatus(data_).code(), StatusCode::kUnavailable);
  ASSERT_TRUE(Put(*store, Table::kItems, "a", "1").ok());
  store.reset();
  EXPECT_EQ(Get(*Open(data_), Table::kItems, "a"), "1");
}

TEST_F(RocksDbOpenTest, OneProcessAtATime) {
  ASSERT_NE(Open(data_), nullptr);
  int ready[2], finish[2];
  ASSERT_EQ(::pipe2(ready, O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(finish, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    // The lock alone: RocksDB's threads are not in this process.
    const int fd = ::open((rocksdb_ / "LOCK").c_str(), O_RDWR | O_CLOEXEC);
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    char byte = ::fcntl(fd, F_SETLK, &lock) == 0 ? 'y' : 'n';
    const bool told = ::write(ready[1], &byte, 1) == 1;
    ::close(finish[1]);
    ::_exit(told && ::read(finish[0], &byte, 1) >= 0 ? 0 : 1);
  }
  ::close(finish[0]);
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ASSERT_EQ(byte, 'y');
  const Status status = OpenStatus(data_);
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), AllOf(HasSubstr(fmt::format("process {} has it open", child)),
                                      HasSubstr((rocksdb_ / "LOCK").string())));
  ::close(finish[1]);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  ::close(ready[0]);
  ::close(ready[1]);
  EXPECT_NE(Open(data_), nullptr);
}

TEST_F(RocksDbOpenTest, ReadOnlySeesTheLogWhileItIsWrittenAndChangesNothing) {
  auto store = Open(data_);
  ASSERT_TRUE(Put(*store, Table::kItems, "only in the log", "1").ok());
  StoreBatch bulk;
  bulk.Put(Table::kUsers, "ann", "1");
  ASSERT_TRUE(store->WriteBulk(std::move(bulk)).ok());
  const auto before = Files(data_);
  {
    auto reader = Open(data_, {.read_only = true});
    EXPECT_EQ(Get(*reader, Table::kItems, "only in the log"), "1");
    EXPECT_EQ(Get(*reader, Table::kUsers, "ann"), "1");
    EXPECT_TRUE(reader->Verify().ok());
    StoreBatch batch;
    batch.Put(Table::kItems, "a", "1");
    for (const Status& status : {reader->Write(batch, true), reader->WriteBulk(batch)}) {
      EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
      EXPECT_THAT(status.message(), HasSubstr("for reading only"));
    }
  }
  EXPECT_EQ(Files(data_), before);
  ASSERT_TRUE(Put(*store, Table::kItems, "still works", "1").ok());
}

TEST_F(RocksDbOpenTest, ReadOnlyRepairsNothing) {
  ASSERT_TRUE(Put(*Open(data_), Table::kItems, "a", "1").ok());
  for (const auto& entry : fs::directory_iterator(rocksdb_)) {
    if (entry.path().extension() == ".log" && entry.file_size() > 0) {
      fs::resize_file(entry.path(), entry.file_size() - 1);
    }
  }
  fs::create_directories(rocksdb_ / "bulk");
  ASSERT_TRUE(WriteFileDurably(rocksdb_ / "bulk" / "0-users.sst", "half").ok());
  const auto before = Files(data_);
  EXPECT_EQ(Get(*Open(data_, {.read_only = true}), Table::kItems, "a"), "(kNotFound)");
  EXPECT_EQ(Files(data_), before);
  EXPECT_NE(Open(data_), nullptr);
  EXPECT_FALSE(fs::exists(rocksdb_ / "bulk")) << "what a bulk write left is removed";
}

}  // namespace
}  // namespace codband::store
