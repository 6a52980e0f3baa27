#include "codband/store/named_files.h"

#include <gtest/gtest.h>

#include <memory>

#include "codband/base/file.h"
#include "codband/store/fault_file_system.h"
#include "codband/store/test_support.h"

namespace codband::store {
namespace {

class NamedFilesTest : public StoreTest {
 protected:
  NamedFiles files_{rocksdb::FileSystem::Default()};
};

// A log is emptied before it is deleted, but not where a backup has the same bytes.
TEST_F(NamedFilesTest, ALogThatABackupSharesIsDeletedAndNotEmptied) {
  const std::string log = (directory_ / "1.log").string();
  const std::string copy = (directory_ / "copy.log").string();
  ASSERT_TRUE(WriteFileDurably(log, "entries").ok());
  ASSERT_TRUE(files_.LinkFile(log, copy, {}, nullptr).ok());
  ASSERT_TRUE(files_.DeleteFile(log, {}, nullptr).ok());
  EXPECT_FALSE(std::filesystem::exists(log));
  EXPECT_EQ(ReadFile(copy).value(), "entries");
}

// Whatever fails on the way, short of everything: a log with bytes that were never synced does not
// come back.
TEST(NamedFilesPowerCutTest, ADeletedLogDoesNotComeBackWithUnsyncedBytes) {
  int back = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto disk = std::make_shared<FaultFileSystem>(seed);
    NamedFiles files(disk);
    std::unique_ptr<rocksdb::FSWritableFile> log;
    ASSERT_TRUE(files.NewWritableFile("/1.log", {}, &log, nullptr).ok());
    std::unique_ptr<rocksdb::FSDirectory> directory;
    ASSERT_TRUE(files.NewDirectory("/", {}, &directory, nullptr).ok());
    ASSERT_TRUE(directory->Fsync({}, nullptr).ok());
    ASSERT_TRUE(log->Append("never synced", {}, nullptr).ok());
    disk->SetFaults({.sync_error = 0.3});
    ASSERT_TRUE(files.DeleteFile("/1.log", {}, nullptr).ok());
    std::uint64_t bytes = 0;
    const auto left = disk->CutPower(seed);
    if (left->GetFileSize("/1.log", {}, &bytes, nullptr).ok() && bytes > 0) ++back;
  }
  EXPECT_LE(back, 1);  // if all six syncs fail
}

}  // namespace
}  // namespace codband::store
