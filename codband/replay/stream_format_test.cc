#include "codband/replay/stream_format.h"

#include <rapidcheck/gtest.h>

#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "codband/base/file.h"
#include "codband/data/test_support.h"

namespace codband::replay {
namespace {

class ReadStreamTest : public data::DirectoryTest {
 protected:
  Result<RecordedStream> Read(const std::string& features, const std::string& events) const {
    EXPECT_TRUE(WriteFileDurably(directory_ / "features.tsv", features).ok());
    EXPECT_TRUE(WriteFileDurably(directory_ / "events.tsv", events).ok());
    return ReadStream(directory_);
  }

  Result<RecordedStream> ReadLogOf(const std::string& features, const std::string& log) const {
    EXPECT_TRUE(WriteFileDurably(directory_ / "features.tsv", features).ok());
    EXPECT_TRUE(WriteFileDurably(directory_ / "log.tsv", log).ok());
    return ReadLog(directory_);
  }
};

constexpr const char* kFeatures = "7\t0.5\t-1\n3\t0\t2e-3\n12\t1\t1\n";
constexpr const char* kEvents = "40\t1254348000000\t3,7\n5\t1254348000000.5\t12\n40\t-1\t7,12,3\n";

TEST_F(ReadStreamTest, KeepsTheOrderOfItemsEventsAndCandidates) {
  const auto stream = Read(kFeatures, kEvents);
  ASSERT_TRUE(stream.ok()) << stream.status().message();
  EXPECT_EQ(stream.value().dim, 2U);
  EXPECT_EQ(stream.value().item_count(), 3U);
  EXPECT_EQ(stream.value().features, (std::vector<double>{0.5, -1, 0, 2e-3, 1, 1}));
  EXPECT_EQ(stream.value().candidates, (std::vector<std::uint32_t>{1, 0, 2, 0, 2, 1}));
  ASSERT_EQ(stream.value().events.size(), 3U);
  EXPECT_EQ(stream.value().events[1].user, 5U);
  EXPECT_EQ(stream.value().events[2].user, 40U);
  EXPECT_EQ(stream.value().events[2].begin, 3U);
  EXPECT_EQ(stream.value().events[2].end, 6U);
  EXPECT_EQ(stream.value().user_count, 2U);
  EXPECT_DOUBLE_EQ(stream.value().chance(), 1.0 / 2 + 1 + 1.0 / 3);
}

TEST_F(ReadStreamTest, ShownItemOfALogComesFirst) {
  const auto log = ReadLogOf(kFeatures, "40\t5\t7\t1\t3,7,12\n5\t6\t12\t0\t12\n");
  ASSERT_TRUE(log.ok()) << log.status().message();
  EXPECT_TRUE(log.value().logged);
  EXPECT_EQ(log.value().candidates, (std::vector<std::uint32_t>{0, 1, 2, 2}));
  ASSERT_EQ(log.value().events.size(), 2U);
  EXPECT_EQ(log.value().events[0].reward, 1);
  EXPECT_EQ(log.value().events[1].reward, 0);
  EXPECT_EQ(log.value().total_reward(), 1);
  EXPECT_EQ(log.value().chance(), 1);
  EXPECT_EQ(log.value().user_count, 2U);
}

TEST_F(ReadStreamTest, MalformedLogsAreRefusedWithTheLine) {
  const auto message = [&](const std::string& log) {
    const auto read = ReadLogOf(kFeatures, log);
    EXPECT_EQ(read.status().code(), StatusCode::kInvalidArgument);
    return read.status().message();
  };
  const std::string good = "40\t5\t7\t1\t3,7,12\n";
  EXPECT_NE(message(good + "1\t2\t3,7\n")
                .find("log.tsv, line 2: 3 fields, expected 5: user id, "
                      "timestamp, item shown, click, item ids"),
            std::string::npos);
  EXPECT_NE(message("1\t2\t7\t2\t7\n").find("click = '2', expected 0 or 1"), std::string::npos);
  EXPECT_NE(message("1\t2\t7\t1\t3,12\n").find("item shown = '7', expected one of the candidates"),
            std::string::npos);
  EXPECT_NE(message("1\t2\t7\t1\t\n").find("no candidates"), std::string::npos);
  EXPECT_NE(message("1\t2\t7\t0\t7\n").find("none of 1 events has a click"), std::string::npos);
  EXPECT_NE(message("").find("is empty"), std::string::npos);
  std::filesystem::remove(directory_ / "log.tsv");
  EXPECT_EQ(ReadLog(directory_).status().code(), StatusCode::kNotFound);
}

TEST_F(ReadStreamTest, AcceptsCrlfAndAMissingFinalLineBreak) {
  const auto stream = Read("7\t0.5\r\n3\t0", "40\t0\t3,7\r\n5\t0\t7");
  ASSERT_TRUE(stream.ok()) << stream.status().message();
  EXPECT_EQ(stream.value().features, (std::vector<double>{0.5, 0}));
  EXPECT_EQ(stream.value().events.size(), 2U);
}

TEST_F(ReadStreamTest, BadInputNamesFileLineAndWhatWasExpected) {
  std::string wide = "1";
  for (std::size_t i = 0; i <= kMaxFeatures; ++i) wide += "\t0";
  const struct {
    std::string features;
    std::string events;
    std::string message;
  } cases[] = {
      {"", kEvents, "features.tsv is empty, expected a line for each item"},
      {"7\n", kEvents, "features.tsv, line 1: 0 features, expected an item id and 1 to 1024"},
      {wide, kEvents, "features.tsv, line 1: 1025 features, expected an item id and 1 to 1024"},
      {"7\t1\t2\n3\t1\n", kEvents, "features.tsv, line 2: 1 features, expected 2 as on the first"},
      {"7\t1\t2\n\n", kEvents, "features.tsv, line 2: 0 features, expected 2 as on the first"},
      {"7\t1\n3\t1\t\n", kEvents, "features.tsv, line 2: 2 features, expected 1 as on the first"},
      {"7\t1\n3\t1\nx\t1\n", kEvents, "features.tsv, line 3: item = 'x', expected a whole number"},
      {"7\t1\t2\n3\t1\t1.x\n", kEvents,
       "line 2: feature 2 = '1.x', expected a number within ±1e+15"},
      {"7\tnan\n", kEvents, "line 1: feature 1 = 'nan', expected a number within ±1e+15"},
      {"7\t1e16\n", kEvents, "line 1: feature 1 = '1e16', expected a number within ±1e+15"},
      {"7\t\n", kEvents, "line 1: feature 1 = '', expected a number within ±1e+15"},
      {"7\t1\n3\t1\n7\t2\n", kEvents,
       "features.tsv, line 3: item 7 a second time, expected each item once"},
      {kFeatures, "", "events.tsv is empty, expected a line for each event"},
      {kFeatures, "1\t0\n", "events.tsv, line 1: 2 fields, expected 3: user id, timestamp, item"},
      {kFeatures, "1\t0\t3\t7\n", "events.tsv, line 1: 4 fields, expected 3: user id, timestamp"},
      {kFeatures, "1\t0\t3\n-1\t0\t3\n", "events.tsv, line 2: user = '-1', expected a whole"},
      {kFeatures, "1\tnow\t3\n", "events.tsv, line 1: timestamp = 'now', expected a number"},
      {kFeatures, "1\t0\t3\n1\t0\t\n", "events.tsv, line 2: no candidates, expected at least 1"},
      {kFeatures, "1\t0\t3,\n", "events.tsv, line 1: item = '', expected a whole number"},
      {kFeatures, "1\t0\t3,a\n", "events.tsv, line 1: item = 'a', expected a whole number"},
      {kFeatures, "1\t0\t3\n1\t0\t3,4\n",
       "events.tsv, line 2: item 4 is unknown, expected one of features.tsv"},
      {kFeatures, "1\t0\t3,7\n1\t0\t7,3,7\n",
       "events.tsv, line 2: item 7 a second time, expected each candidate once"},
      {std::string(1000, 'x') + "\t1\n", kEvents,
       "item = '" + std::string(40, 'x') + "...', expected"},
  };
  for (const auto& [features, events, message] : cases) {
    const auto stream = Read(features, events);
    ASSERT_FALSE(stream.ok()) << message;
    EXPECT_EQ(stream.status().code(), StatusCode::kInvalidArgument) << message;
    EXPECT_NE(stream.status().message().find(message), std::string::npos)
        << message << "\n"
        << stream.status().message();
    EXPECT_EQ(stream.status().message().rfind(directory_.string(), 0), 0U)
        << stream.status().message();
  }
}

TEST_F(ReadStreamTest, MissingFilesAreNamed) {
  for (const char* name : {"features.tsv", "events.tsv"}) {
    ASSERT_TRUE(Read(kFeatures, kEvents).ok());
    std::filesystem::remove(directory_ / name);
    const auto stream = ReadStream(directory_);
    EXPECT_EQ(stream.status().code(), StatusCode::kNotFound);
    EXPECT_NE(stream.status().message().find(directory_ / name), std::string::npos);
  }
}

// Tags and origins.
class ReadNotesTest : public data::DirectoryTest {
 protected:
  ReadNotesTest() {
    Write("features.tsv", "7\t1\t0\n3\t0\t1\n12\t1\t1\n");
    Write("events.tsv", "0\t0\t3,7\n0\t0\t12,3\n1\t0\t7\n");
    stream_ = ReadStream(directory_).value();
  }

  RecordedStream stream_;
};

TEST_F(ReadNotesTest, TagsAreReadByItem) {
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

TEST_F(ReadNotesTest, MissingFilesAreNoError) {
  EXPECT_FALSE(ReadTags(directory_, stream_).value().has_value());
  EXPECT_FALSE(ReadOrigins(directory_, stream_).value().has_value());
  Write("tags.tsv", "");
  EXPECT_FALSE(ReadTags(directory_, stream_).value().has_value());
}

TEST_F(ReadNotesTest, OriginsMayHaveAHeading) {
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

TEST_F(ReadNotesTest, OriginsFollowReorderedEvents) {
  Write("origins.tsv", "4\t0\n5\t1\n6\t2\n");
  std::swap(stream_.events[0], stream_.events[2]);
  const auto origins = ReadOrigins(directory_, stream_);
  EXPECT_EQ(origins.value()->sources, (std::vector<std::uint64_t>{6, 5, 4}));
  EXPECT_EQ(origins.value()->groups, (std::vector<std::uint64_t>{2, 1, 0}));
}

TEST_F(ReadNotesTest, BadLinesNameFileLineValueAndWhatWasExpected) {
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

// What a stream's files hold.
struct Contents {
  RecordedStream stream;
  ItemTags tags;
  EventOrigins origins;
};

Contents AnyContents(bool logged) {
  Contents made;
  RecordedStream& stream = made.stream;
  stream.logged = logged;
  stream.dim = *rc::gen::inRange<std::size_t>(1, 4);
  stream.item_ids = *rc::gen::nonEmpty(
      rc::gen::unique<std::vector<std::uint64_t>>(rc::gen::arbitrary<std::uint64_t>()));
  const std::size_t items = stream.item_ids.size();
  for (std::size_t i = 0; i < items * stream.dim; ++i) {
    stream.features.push_back(*rc::gen::inRange(-100'000'000, 100'000'000) / 1e4);
  }
  const auto users =
      *rc::gen::nonEmpty(rc::gen::container<std::vector<UserId>>(rc::gen::arbitrary<UserId>()));
  stream.user_count = std::set(users.begin(), users.end()).size();
  for (const UserId user : users) {
    const auto first = *rc::gen::inRange<std::size_t>(0, items);
    const auto count = *rc::gen::inRange<std::size_t>(1, items + 1);
    const std::size_t begin = stream.candidates.size();
    for (std::size_t i = 0; i < count; ++i) {
      stream.candidates.push_back(static_cast<std::uint32_t>((first + i) % items));
    }
    // A log needs a click somewhere.
    const bool click = !logged || stream.events.empty() || *rc::gen::arbitrary<bool>();
    stream.events.push_back({.user = user,
                             .begin = begin,
                             .end = stream.candidates.size(),
                             .reward = click ? 1.0 : 0.0,
                             .number = stream.events.size()});
    made.origins.sources.push_back(*rc::gen::arbitrary<std::uint64_t>());
    made.origins.groups.push_back(*rc::gen::arbitrary<std::uint64_t>());
  }
  // Names come in the order in which they are first used.
  made.tags.names = {"pop", "new wave", "日本"};
  made.tags.of_item.resize(items);
  made.tags.of_item[0] = {{.tag = 0, .count = 1}, {.tag = 1, .count = 7}, {.tag = 2, .count = 2}};
  for (auto& tags : made.tags.of_item) {
    if (!tags.empty() || !*rc::gen::arbitrary<bool>()) continue;
    tags.push_back({.tag = *rc::gen::inRange<std::uint32_t>(0, 3),
                    .count = static_cast<double>(*rc::gen::inRange(1, 1'000'000))});
  }
  return made;
}

data::OutputFile OpenFile(const data::OutputDirectory& out, std::string_view name) {
  auto file = out.Open(std::string(name));
  RC_ASSERT(file.ok());
  return std::move(file).value();
}

void WriteContents(const Contents& contents, const data::OutputDirectory& out) {
  const RecordedStream& stream = contents.stream;
  auto features = OpenFile(out, kFeaturesFile);
  auto events = OpenFile(out, stream.logged ? kLogFile : kEventsFile);
  auto tags = OpenFile(out, kTagsFile);
  auto origins = OpenFile(out, kOriginsFile);
  for (std::size_t i = 0; i < stream.item_count(); ++i) {
    WriteItem(stream.item_ids[i], std::span(stream.features).subspan(i * stream.dim, stream.dim),
              features);
    for (const ItemTags::Count& tag : contents.tags.of_item[i]) {
      WriteTag(stream.item_ids[i], contents.tags.names[tag.tag],
               static_cast<std::size_t>(tag.count), tags);
    }
  }
  for (std::size_t i = 0; i < stream.events.size(); ++i) {
    const RecordedStream::Event& event = stream.events[i];
    std::vector<std::uint64_t> ids;
    for (std::size_t c = event.begin; c < event.end; ++c) {
      ids.push_back(stream.item_ids[stream.candidates[c]]);
    }
    const auto time = *rc::gen::arbitrary<std::int64_t>();
    if (stream.logged) {
      WriteLogged(event.user, time, ids.front(), event.reward > 0, ids, events);
    } else {
      WriteEvent(event.user, time, ids, events);
    }
    WriteOrigin(contents.origins.sources[i], contents.origins.groups[i], origins);
  }
  for (data::OutputFile* file : {&features, &events, &tags, &origins}) {
    RC_ASSERT(file->Close().ok());
  }
}

class StreamFormatTest : public data::DirectoryTest {};

RC_GTEST_FIXTURE_PROP(StreamFormatTest, ReadsBackWhatIsWritten, (bool logged)) {
  const Contents written = AnyContents(logged);
  auto out = data::OutputDirectory::Create(directory_ / "stream", false, {});
  RC_ASSERT(out.ok());
  WriteContents(written, out.value());
  RC_ASSERT(out.value().Commit().ok());
  const auto stream = logged ? ReadLog(directory_ / "stream") : ReadStream(directory_ / "stream");
  RC_ASSERT(stream.ok());
  RC_ASSERT(stream.value() == written.stream);
  const auto tags = ReadTags(directory_ / "stream", stream.value());
  RC_ASSERT(tags.ok() && tags.value() == written.tags);
  const auto origins = ReadOrigins(directory_ / "stream", stream.value());
  RC_ASSERT(origins.ok() && origins.value().has_value());
  RC_ASSERT(origins.value()->file == "origins.tsv");
  RC_ASSERT(origins.value()->sources == written.origins.sources);
  RC_ASSERT(origins.value()->groups == written.origins.groups);
}

}  // namespace
}  // namespace codband::replay
