// codband prepare lastfm and delicious.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/prepare_testing.h"

namespace codband {
namespace {

TEST_F(PrepareTest, LastFmFollowsTheProtocol) {
  WriteLastFm();
  const Outcome outcome = Prepare(kLastFm);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");  // no progress bar in a pipe
  EXPECT_NE(outcome.out.find("codband replay results/a"), std::string::npos);
  EXPECT_EQ(Results(), std::vector<std::string>{"a"});

  const std::vector<PreparedEvent> events = Events();
  const std::vector<std::string> origins = Split(Text("origins.tsv"), '\n');
  ASSERT_EQ(origins.size(), events.size());
  ASSERT_EQ(events.size(), 320U);  // all but that of user 98
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
  std::map<std::uint64_t, std::size_t> sizes;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const std::uint64_t source = std::stoull(origins[i]);
    const std::vector<std::uint64_t>& items = events[i].items;
    ASSERT_EQ(items.size(), 5U);
    EXPECT_TRUE(positives_.contains({source, items[0]}));
    EXPECT_TRUE(seen.insert({source, items[0]}).second);  // every pair once
    for (std::size_t k = 1; k < items.size(); ++k) {
      EXPECT_FALSE(positives_.contains({source, items[k]}));
    }
    EXPECT_EQ(std::set(items.begin(), items.end()).size(), 5U);
    ++sizes[events[i].user];
    if (i == 0) continue;
    // Stacked: numbered as they come, each in time.
    EXPECT_GE(events[i].user, events[i - 1].user);
    if (events[i].user == events[i - 1].user) {
      EXPECT_GE(events[i].time, events[i - 1].time);
    }
  }
  // Two groups of 160 events in three parts.
  std::multiset<std::size_t> parts;
  for (const auto& [user, size] : sizes) parts.insert(size);
  EXPECT_EQ(parts, (std::multiset<std::size_t>{53, 53, 53, 53, 54, 54}));
  // A group is a circle of friends.
  for (const std::string& origin : origins) {
    const std::vector<std::string> fields = Split(origin, '\t');
    EXPECT_EQ(fields.at(1), origins[0].substr(0, 1) == fields.at(0).substr(0, 1)
                                ? Split(origins[0], '\t').at(1)
                                : (Split(origins[0], '\t').at(1) == "0" ? "1" : "0"));
  }
}

TEST_F(PrepareTest, TimesAreOfTheFirstTagOrElseTheUsersMedian) {
  WriteLastFm();
  ASSERT_EQ(Prepare(kLastFm).exit_code, 0);
  const std::vector<PreparedEvent> events = Events();
  const std::vector<std::string> origins = Split(Text("origins.tsv"), '\n');
  std::size_t at_median = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const auto user = static_cast<int>(std::stoul(origins[i]) % 10);
    const int circle = static_cast<int>(std::stoul(origins[i]) / 10) - 1;
    const int place =
        (static_cast<int>(events[i].items[0]) - 100 - 40 * circle - 7 * user + 4000) % 40;
    // Ten tags at 0, 2, ..., 18: the median is 9.
    const int expected = place % 2 == 0 ? place : 9;
    at_median += place % 2;
    EXPECT_EQ(events[i].time, 1'200'000'000'000 + 1000 * user + expected);
  }
  EXPECT_EQ(at_median, 160U);
}

TEST_F(PrepareTest, TagsAreUtf8WithTheirCounts) {
  WriteLastFm();
  ASSERT_EQ(Prepare(kLastFm).exit_code, 0);
  const std::string tags = Text("tags.tsv");
  EXPECT_NE(tags.find("\ttäg 3\t"), std::string::npos);
  std::size_t sum = 0;
  for (const std::string& line : Split(tags, '\n')) {
    const std::vector<std::string> fields = Split(line, '\t');
    ASSERT_EQ(fields.size(), 3U);
    sum += std::stoul(fields[2]);
  }
  EXPECT_EQ(sum, 160U);
}

TEST_F(PrepareTest, DeliciousCountsBookmarks) {
  Write("tags.dat", "id\tvalue\n1\ta\n2\tb\n3\tc\n");
  std::string contacts = "userID\tcontactID\ttimestamp\n";
  std::string tagged = "userID\tbookmarkID\ttagID\ttimestamp\n";
  for (int user = 1; user <= 6; ++user) {
    contacts += fmt::format("{}\t{}\t5\n", user, user % 6 + 1);
    for (int i = 0; i < 4; ++i) {
      const int bookmark = 50 + user * 3 + i;
      tagged += fmt::format("{}\t{}\t{}\t{}\n", user, bookmark, 1 + i % 3, 1000 * user + i);
      tagged += fmt::format("{}\t{}\t{}\t{}\n", user, bookmark, 1 + bookmark % 3, 1000 * user + i);
    }
  }
  Write("user_contacts-timestamps.dat", contacts);
  Write("user_taggedbookmarks-timestamps.dat", tagged);
  const Outcome outcome = Prepare("delicious --dim 2 --groups 2 --parts 1 --candidates 4");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(Meta()["stream"]["events"], 24);
  EXPECT_EQ(Meta()["stream"]["users"], 2);
  EXPECT_EQ(Run("replay results/a --policies random").exit_code, 0);
}

}  // namespace
}  // namespace codband
