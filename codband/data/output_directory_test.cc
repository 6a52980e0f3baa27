#include "codband/data/output_directory.h"

#include "codband/base/file.h"
#include "codband/data/test_support.h"

namespace codband::data {
namespace {

class OutputDirectoryTest : public DirectoryTest {
 protected:
  Result<OutputDirectory> Create(bool overwrite = false) const {
    return OutputDirectory::Create(directory_ / "out/", overwrite, {"a", "b"});
  }
  // Writes the file "a" and commits.
  Status WriteA(std::string_view content, bool overwrite = false) const {
    auto out = Create(overwrite);
    if (!out.ok()) return out.status();
    auto file = out.value().Open("a");
    file.value().Write(content);
    CODBAND_RETURN_IF_ERROR(file.value().Close());
    return out.value().Commit();
  }
  std::size_t NamesInParent() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(directory_), {}));
  }
};

TEST_F(OutputDirectoryTest, AppearsAtomicallyOnCommit) {
  {
    auto out = Create();
    auto file = out.value().Open("a");
    file.value().Print("{}\t{}\n", 1, "x");
    ASSERT_TRUE(file.value().Close().ok());
    EXPECT_FALSE(std::filesystem::exists(directory_ / "out"));
    ASSERT_TRUE(out.value().Commit().ok());
  }
  EXPECT_EQ(ReadFile(directory_ / "out" / "a").value(), "1\tx\n");
  EXPECT_EQ(NamesInParent(), 1U);
}

TEST_F(OutputDirectoryTest, NothingRemainsWithoutCommit) {
  {
    auto out = Create();
    auto file = out.value().Open("a");
    file.value().Write(std::string(1 << 20, 'x'));
    EXPECT_EQ(NamesInParent(), 1U);
  }
  EXPECT_EQ(NamesInParent(), 0U);
}

TEST_F(OutputDirectoryTest, EmptyDirectoryIsFilled) {
  std::filesystem::create_directories(directory_ / "out");
  ASSERT_TRUE(WriteA("1").ok());
  EXPECT_EQ(ReadFile(directory_ / "out" / "a").value(), "1");
}

TEST_F(OutputDirectoryTest, EarlierResultIsReplacedOnlyIfAskedTo) {
  ASSERT_TRUE(WriteA("1").ok());
  Write("out/b", "old");
  const Status refused = WriteA("2");
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(refused.message().find("--overwrite"), std::string::npos);
  EXPECT_EQ(ReadFile(directory_ / "out" / "a").value(), "1");
  ASSERT_TRUE(WriteA("2", true).ok());
  EXPECT_EQ(ReadFile(directory_ / "out" / "a").value(), "2");
  EXPECT_FALSE(std::filesystem::exists(directory_ / "out" / "b"));
  EXPECT_EQ(NamesInParent(), 1U);
}

TEST_F(OutputDirectoryTest, DirectoryWithOtherFilesIsNeverReplaced) {
  std::filesystem::create_directories(directory_ / "out");
  Write("out/thesis.tex", "years of work");
  const Status refused = WriteA("1", true);
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(refused.message().find("thesis.tex"), std::string::npos);
  EXPECT_EQ(ReadFile(directory_ / "out" / "thesis.tex").value(), "years of work");
}

TEST_F(OutputDirectoryTest, InvalidNamesAreRefused) {
  Write("file", "x");
  EXPECT_EQ(OutputDirectory::Create("", false, {}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(OutputDirectory::Create("..", true, {}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(OutputDirectory::Create("/", true, {}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(OutputDirectory::Create(directory_ / "file", true, {}).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_FALSE(OutputDirectory::Create(directory_ / "file" / "out", true, {}).ok());
}

TEST_F(OutputDirectoryTest, FileIsNeverWrittenTwice) {
  auto out = Create();
  EXPECT_TRUE(out.value().Open("a").ok());
  EXPECT_EQ(out.value().Open("a").status().code(), StatusCode::kIoError);
}

}  // namespace
}  // namespace codband::data
