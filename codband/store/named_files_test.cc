#include "codband/store/named_files.h"

#include <gtest/gtest.h>

#include "codband/base/file.h"
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

}  // namespace
}  // namespace codband::store
