#include "codband/replay/stream_notes.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "codband/base/file.h"

namespace codband::replay {
namespace {

class StreamNotesTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    directory_ = std::filesystem::path(testing::TempDir()) / (std::string("notes_") + test->name());
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    Write("features.tsv", "7\t1\t0\n3\t0\t1\n12\t1\t1\n");
    Write("events.tsv", "0\t0\t3,7\n0\t0\t12,3\n1\t0\t7\n");
    stream_ = ReadStream(directory_).value();
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void Write(const char* name, const std::string& text) const {
    EXPECT_TRUE(WriteFileDurably(directory_ / name, text).ok());
  }

  std::filesystem::path directory_;
  RecordedStream stream_;
};

TEST_F(StreamNotesTest, TagsGoWithTheirItems) {
  Write("tags.tsv", "3\trock\t4\n12\trock\t1\n12\tnew wave\t2.5\r\n");
  const auto tags = ReadTags(directory_, stream_);
  ASSERT_TRUE(tags.ok()) << tags.status().message();
  ASSERT_TRUE(tags.value().has_value());
  EXPECT_EQ(tags.value()->names, (std::vector<std::string>{"rock", "new wave"}));
  ASSERT_EQ(tags.value()->of_item.size(), 3U);
  EXPECT_TRUE(tags.value()->of_item[0].empty());
  ASSERT_EQ(tags.value()->of_item[1].size(), 1U);
  EXPECT_EQ(tags.value()->of_item[1][0].count, 4);
  ASSERT_EQ(tags.value()->of_item[2].size(), 2U);
  EXPECT_EQ(tags.value()->of_item[2][1].tag, 1U);
  EXPECT_EQ(tags.value()->of_item[2][1].count, 2.5);
}

TEST_F(StreamNotesTest, MissingFilesAreNoError) {
  EXPECT_FALSE(ReadTags(directory_, stream_).value().has_value());
  EXPECT_FALSE(ReadOrigins(directory_, stream_).value().has_value());
  Write("tags.tsv", "");
  EXPECT_FALSE(ReadTags(directory_, stream_).value().has_value());
}

TEST_F(StreamNotesTest, OriginsComeWithOrWithoutAHeading) {
  Write("meta.tsv", "underlying_user\tsuper_user\n1230\t1\n1230\t1\n8\t2\n");
  const auto meta = ReadOrigins(directory_, stream_);
  ASSERT_TRUE(meta.ok()) << meta.status().message();
  EXPECT_EQ(meta.value()->file, "meta.tsv");
  EXPECT_EQ(meta.value()->sources, (std::vector<std::uint64_t>{1230, 1230, 8}));
  EXPECT_EQ(meta.value()->groups, (std::vector<std::uint64_t>{1, 1, 2}));
  Write("origins.tsv", "4\t0\n5\t0\n6\t0");
  EXPECT_EQ(ReadOrigins(directory_, stream_).value()->sources,
            (std::vector<std::uint64_t>{4, 5, 6}));
}

TEST_F(StreamNotesTest, OriginsFollowEventsThatArePlayedInAnotherOrder) {
  Write("origins.tsv", "4\t0\n5\t1\n6\t2\n");
  std::swap(stream_.events[0], stream_.events[2]);
  const auto origins = ReadOrigins(directory_, stream_);
  EXPECT_EQ(origins.value()->sources, (std::vector<std::uint64_t>{6, 5, 4}));
  EXPECT_EQ(origins.value()->groups, (std::vector<std::uint64_t>{2, 1, 0}));
}

TEST_F(StreamNotesTest, BadLinesNameFileLineValueAndWhatWasExpected) {
  const struct {
    const char* file;
    const char* text;
    const char* message;
  } cases[] = {
      {"tags.tsv", "3\trock\n", "tags.tsv, line 1: 2 fields, expected 3: item id, tag, how often"},
      {"tags.tsv", "3\trock\t1\nx\trock\t1\n", "line 2: item = 'x', expected a whole number"},
      {"tags.tsv", "4\trock\t1\n", "line 1: item 4 is unknown, expected one of features.tsv"},
      {"tags.tsv", "3\t\t1\n", "line 1: no tag, expected the text of one"},
      {"tags.tsv", "3\trock\t0\n", "how often = '0', expected a number above 0"},
      {"tags.tsv", "3\trock\tnan\n", "how often = 'nan', expected a number above 0"},
      {"tags.tsv", "3\trock\tinf\n", "how often = 'inf', expected a number above 0"},
      {"meta.tsv", "1\t2\t3\n", "meta.tsv, line 1: 3 fields, expected 2: user in the data set"},
      {"meta.tsv", "1\t2\na\t2\n", "line 2: user in the data set = 'a', expected a whole number"},
      {"meta.tsv", "1\tb\n", "line 1: group = 'b', expected a whole number"},
      {"meta.tsv", "1\t2\n1\t2\n",
       "meta.tsv tells the origin of 2 events, expected 3, as many as events.tsv has"},
      {"meta.tsv", "", "meta.tsv tells the origin of 0 events, expected 3"},
  };
  for (const auto& [file, text, message] : cases) {
    std::filesystem::remove(directory_ / "tags.tsv");
    std::filesystem::remove(directory_ / "meta.tsv");
    Write(file, text);
    const auto tags = ReadTags(directory_, stream_);
    const auto origins = ReadOrigins(directory_, stream_);
    const Status& status = tags.ok() ? origins.status() : tags.status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << message;
    EXPECT_NE(status.message().find(message), std::string::npos) << status.message();
  }
}

TEST_F(StreamNotesTest, BestItemsShareTheirWeightAmongTheirTags) {
  Write("tags.tsv", "7\tpop\t1000\n3\trock\t3\n3\tpop\t1\n12\tzydeco\t2\n12\tfolk\t2\n");
  const auto tags = ReadTags(directory_, stream_).value();
  // Scores of 7, 3 and 12: 0, 1, 1.
  const std::vector<double> theta = {0, 1};
  const auto best = TagsOfBestItems(stream_, *tags, theta, 2, 10);
  ASSERT_EQ(best.size(), 4U);
  EXPECT_EQ(best[0].tag, "rock");
  EXPECT_DOUBLE_EQ(best[0].weight, 0.75);
  EXPECT_EQ(best[1].tag, "folk");
  EXPECT_EQ(best[2].tag, "zydeco");
  EXPECT_DOUBLE_EQ(best[2].weight, 0.5);
  EXPECT_EQ(best[3].tag, "pop");
  EXPECT_DOUBLE_EQ(best[3].weight, 0.25);
  // Of equal scores the first in the file, and no more tags than asked for.
  const auto one = TagsOfBestItems(stream_, *tags, theta, 1, 1);
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].tag, "rock");
  const auto all = TagsOfBestItems(stream_, *tags, theta, 100, 10);
  EXPECT_EQ(all[0].tag, "pop");
  EXPECT_DOUBLE_EQ(all[0].weight, 1.25);
}

}  // namespace
}  // namespace codband::replay
