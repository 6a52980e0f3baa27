#include "codband/base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace codband {
namespace {

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    directory_ = std::filesystem::path(testing::TempDir()) / (std::string("file_") + test->name());
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path directory_;
};

TEST_F(FileTest, ReplacesTheWholeContentAndLeavesNothingElse) {
  const auto path = directory_ / "state";
  ASSERT_TRUE(WriteFileDurably(path, "a long first content").ok());
  ASSERT_TRUE(WriteFileDurably(path, "short").ok());
  EXPECT_EQ(ReadFile(path).value(), "short");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_), {}), 1);
}

TEST_F(FileTest, MissingFileIsNotFoundWithItsPath) {
  const auto result = ReadFile(directory_ / "nothing");
  EXPECT_EQ(result.status().code(), StatusCode::kNotFound);
  EXPECT_NE(result.status().message().find("nothing"), std::string::npos);
}

TEST_F(FileTest, FailedWriteLeavesTheOldContent) {
  const auto path = directory_ / "missing" / "state";
  EXPECT_FALSE(WriteFileDurably(path, "x").ok());
  std::filesystem::create_directories(directory_ / "taken" / "inside");
  EXPECT_FALSE(WriteFileDurably(directory_ / "taken", "x").ok());
  EXPECT_TRUE(std::filesystem::exists(directory_ / "taken" / "inside"));
}

TEST_F(FileTest, CopyOfATreeHasEverythingAndIsIndependent) {
  const auto from = directory_ / "from";
  std::filesystem::create_directories(from / "a/empty");
  ASSERT_TRUE(WriteFileDurably(from / "one", std::string(100'000, 'x')).ok());
  ASSERT_TRUE(WriteFileDurably(from / "a/two", "2").ok());
  const auto to = directory_ / "to";
  ASSERT_TRUE(CopyTreeDurably(from, to).ok());
  ASSERT_TRUE(WriteFileDurably(from / "a/two", "changed").ok());
  EXPECT_EQ(ReadFile(to / "one").value(), std::string(100'000, 'x'));
  EXPECT_EQ(ReadFile(to / "a/two").value(), "2");
  EXPECT_TRUE(std::filesystem::is_directory(to / "a/empty"));
}

TEST_F(FileTest, TreesThatCannotBeCopiedAreRefused) {
  EXPECT_EQ(CopyTreeDurably(directory_ / "nothing", directory_ / "to").code(),
            StatusCode::kIoError);
  std::filesystem::create_directories(directory_ / "from");
  std::filesystem::create_symlink("/etc/passwd", directory_ / "from/link");
  const Status link = CopyTreeDurably(directory_ / "from", directory_ / "copy");
  EXPECT_EQ(link.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(link.message().find("from/link is neither"), std::string::npos) << link.message();
}

TEST_F(FileTest, EnsureDirectoryCreatesParentsAndAcceptsExisting) {
  EXPECT_TRUE(EnsureDirectory(directory_ / "a/b/c").ok());
  EXPECT_TRUE(std::filesystem::is_directory(directory_ / "a/b/c"));
  EXPECT_TRUE(EnsureDirectory(directory_ / "a/b/c").ok());
  EXPECT_TRUE(EnsureDirectory(directory_ / "d/").ok());
}

TEST_F(FileTest, EnsureDirectoryRefusesAFileInTheWay) {
  ASSERT_TRUE(WriteFileDurably(directory_ / "file", "x").ok());
  const Status taken = EnsureDirectory(directory_ / "file");
  EXPECT_EQ(taken.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(taken.message(), (directory_ / "file").string() + " exists and is not a directory");
  const Status below = EnsureDirectory(directory_ / "file/sub");
  EXPECT_EQ(below.code(), StatusCode::kIoError);
  EXPECT_NE(below.message().find((directory_ / "file/sub").string()), std::string::npos);
  EXPECT_EQ(EnsureDirectory("").code(), StatusCode::kInvalidArgument);
}

TEST_F(FileTest, EnsureDirectoryRefusesOneThatCannotBeWritten) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  ASSERT_TRUE(EnsureDirectory(directory_ / "locked").ok());
  ASSERT_EQ(chmod((directory_ / "locked").c_str(), 0555), 0);
  const Status status = EnsureDirectory(directory_ / "locked");
  EXPECT_EQ(status.code(), StatusCode::kIoError);
  EXPECT_NE(status.message().find("Permission denied"), std::string::npos);
}

mode_t ModeOf(const std::filesystem::path& path) {
  struct stat file {};
  EXPECT_EQ(::lstat(path.c_str(), &file), 0) << path;
  return file.st_mode & 07777;
}

TEST_F(FileTest, PrivateFilesAndDirectoriesAreForTheirOwnerAlone) {
  const mode_t before = ::umask(0);
  EXPECT_TRUE(EnsurePrivateDirectory(directory_ / "a/b").ok());
  EXPECT_TRUE(WriteFileDurably(directory_ / "a/b/x", "x", FileAccess::kPrivate).ok());
  EXPECT_TRUE(EnsureDirectory(directory_ / "shared/deep").ok());
  ::umask(before);
  EXPECT_EQ(ModeOf(directory_ / "a"), 0700U);
  EXPECT_EQ(ModeOf(directory_ / "a/b"), 0700U);
  EXPECT_EQ(ModeOf(directory_ / "a/b/x"), 0600U);
  EXPECT_EQ(ModeOf(directory_ / "shared/deep"), 0777U);
  EXPECT_EQ(EnsurePrivateDirectory(directory_ / "a/b/x").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(EnsurePrivateDirectory(directory_ / "a/b/x/y").code(), StatusCode::kIoError);
}

TEST_F(FileTest, RightsOfOthersAreTakenAwayAndCounted) {
  const auto tree = directory_ / "tree";
  std::filesystem::create_directories(tree / "inside");
  ASSERT_TRUE(WriteFileDurably(tree / "inside/x", "x").ok());
  ASSERT_TRUE(WriteFileDurably(directory_ / "outside", "x").ok());
  std::filesystem::create_symlink(directory_ / "outside", tree / "link");
  ::chmod(tree.c_str(), 0755);
  ::chmod((tree / "inside").c_str(), 0750);
  ::chmod((tree / "inside/x").c_str(), 0444);
  ::chmod((directory_ / "outside").c_str(), 0644);
  EXPECT_EQ(MakePrivate(tree, Reach::kOne).value(), 1U);
  EXPECT_EQ(ModeOf(tree), 0700U);
  EXPECT_EQ(ModeOf(tree / "inside"), 0750U);
  EXPECT_EQ(MakePrivate(tree).value(), 2U);
  EXPECT_EQ(ModeOf(tree / "inside"), 0700U);
  EXPECT_EQ(ModeOf(tree / "inside/x"), 0400U);
  EXPECT_EQ(ModeOf(directory_ / "outside"), 0644U) << "links are not followed";
  EXPECT_EQ(MakePrivate(tree).value(), 0U);
  EXPECT_EQ(MakePrivate(directory_ / "nothing").value(), 0U);
}

}  // namespace
}  // namespace codband
