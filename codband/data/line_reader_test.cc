#include "codband/data/line_reader.h"

#include <zlib.h>

#include <string>
#include <vector>

#include "codband/data/test_support.h"

namespace codband::data {
namespace {

class LineReaderTest : public DirectoryTest {
 protected:
  std::vector<std::string> Lines(std::string_view content) const {
    return LinesOf(Write("file", content));
  }
  static std::vector<std::string> LinesOf(const std::filesystem::path& path) {
    auto reader = LineReader::Open(path);
    EXPECT_TRUE(reader.ok());
    std::vector<std::string> lines;
    while (reader.value().Next()) lines.emplace_back(reader.value().line());
    EXPECT_TRUE(reader.value().status().ok()) << reader.value().status().message();
    EXPECT_EQ(reader.value().number(), lines.size());
    EXPECT_EQ(reader.value().share(), 1);
    return lines;
  }

  std::filesystem::path WriteGzip(const std::string& content) const {
    const std::filesystem::path path = directory_ / "file.gz";
    gzFile file = gzopen(path.c_str(), "wb");
    gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
    gzclose(file);
    return path;
  }
};

using Strings = std::vector<std::string>;

TEST_F(LineReaderTest, RemovesLineBreaksAndByteOrderMark) {
  EXPECT_EQ(Lines("\xEF\xBB\xBFid\r\na\n\nlast"), (Strings{"id", "a", "", "last"}));
  EXPECT_EQ(Lines("a\n\xEF\xBB\xBF b\n"), (Strings{"a", "\xEF\xBB\xBF b"}));
  EXPECT_EQ(Lines(""), Strings{});
  EXPECT_EQ(Lines("\n"), Strings{""});
}

TEST_F(LineReaderTest, LinesAcrossBuffersStayWhole) {
  std::string content;
  Strings expected;
  for (int i = 0; i < 3000; ++i) {
    expected.push_back(std::string(static_cast<std::size_t>(i * 7 % 1000), 'x') +
                       std::to_string(i));
    content += expected.back() + "\r\n";
  }
  EXPECT_EQ(Lines(content), expected);
  EXPECT_EQ(LinesOf(WriteGzip(content)), expected);
}

TEST_F(LineReaderTest, TruncatedGzipIsReported) {
  std::string content;
  for (int i = 0; i < 100'000; ++i) content += std::to_string(i * 7919 % 100'003) + "\n";
  const std::filesystem::path path = WriteGzip(content);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  auto reader = LineReader::Open(path).value();
  while (reader.Next()) {
  }
  EXPECT_EQ(reader.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(reader.status().message().find("file.gz"), std::string::npos);
}

TEST_F(LineReaderTest, TruncatedFileHasNoLineBreakAtItsEnd) {
  const auto end_of = [&](const std::string& content, bool malformed) {
    auto reader = LineReader::Open(Write("file", content)).value();
    while (reader.Next()) {
    }
    EXPECT_TRUE(reader.status().ok());
    return reader.CheckEnd(malformed);
  };
  std::string large;
  while (large.size() < 100'000) large += "some text\n";
  EXPECT_TRUE(end_of("a\nb\n", true).ok());
  EXPECT_TRUE(end_of("a\nb", false).ok());  // written by hand
  EXPECT_TRUE(end_of(large, true).ok());
  EXPECT_EQ(end_of(large + "so", false).code(), StatusCode::kInvalidArgument);
  const Status status = end_of("a\nb\nc", true);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("file ends within line 3"), std::string::npos);
}

TEST_F(LineReaderTest, EndlessLineIsReportedWithItsNumber) {
  const auto path = Write("file", "short\n" + std::string(2 * kMaxLineBytes, 'x'));
  auto reader = LineReader::Open(path).value();
  EXPECT_TRUE(reader.Next());
  EXPECT_FALSE(reader.Next());
  EXPECT_EQ(reader.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(reader.status().message().find("line 2"), std::string::npos);
}

TEST_F(LineReaderTest, MissingFileAndDirectoryAreErrors) {
  EXPECT_EQ(LineReader::Open(directory_ / "none").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(LineReader::Open(directory_).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace codband::data
