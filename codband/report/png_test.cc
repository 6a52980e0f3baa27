#include "codband/report/png.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>

#include "codband/base/file.h"
#include "codband/report/line_chart.h"

namespace codband::report {
namespace {

namespace fs = std::filesystem;

class PngTest : public testing::Test {
 protected:
  PngTest() {
    std::string name = testing::TempDir() + "/codband_png_XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  ~PngTest() override {
    std::error_code ignored;
    fs::remove_all(directory_, ignored);
  }

  std::string Path(const std::string& name) const { return directory_ + "/" + name; }
  static std::string Read(const std::string& path) { return ReadFile(path).value(); }
  std::size_t FileCount() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(directory_), fs::directory_iterator{}));
  }

  std::string directory_;
};

TEST_F(PngTest, WithoutTheProgramSaysWhatToInstall) {
  const char* path = std::getenv("PATH");
  const std::string saved = path == nullptr ? "" : path;
  setenv("PATH", directory_.c_str(), 1);
  const Status status = WritePng(Path("a.svg"), Path("a.png"));
  setenv("PATH", saved.c_str(), 1);
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("install librsvg2-bin"), std::string::npos);
}

TEST_F(PngTest, IsDrawnFromAChart) {
  ASSERT_TRUE(WriteFileDurably(Path("a.svg"), RenderSvg(LineChart{.title = "a"})).ok());
  const Status status = WritePng(Path("a.svg"), Path("a.png"));
  if (status.code() == StatusCode::kUnavailable) GTEST_SKIP() << status.message();
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(Read(Path("a.png")).substr(1, 3), "PNG");
  // Width, big-endian, at byte 16: twice the nominal 560.
  EXPECT_EQ(Read(Path("a.png")).substr(16, 4), std::string("\0\0\x04\x60", 4));
  EXPECT_EQ(FileCount(), 2u);
}

TEST_F(PngTest, OfABrokenChartFailsAndKeepsTheOldFile) {
  ASSERT_TRUE(WriteFileDurably(Path("a.svg"), "<svg").ok());
  ASSERT_TRUE(WriteFileDurably(Path("a.png"), "old").ok());
  const Status status = WritePng(Path("a.svg"), Path("a.png"));
  if (status.code() == StatusCode::kUnavailable) GTEST_SKIP() << status.message();
  EXPECT_EQ(status.code(), StatusCode::kIoError);
  EXPECT_NE(status.message().find(Path("a.svg")), std::string::npos);
  EXPECT_EQ(Read(Path("a.png")), "old");
  EXPECT_EQ(FileCount(), 2u);
}

}  // namespace
}  // namespace codband::report
