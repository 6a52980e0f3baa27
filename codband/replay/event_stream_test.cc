#include "codband/replay/event_stream.h"

#include <algorithm>
#include <map>
#include <set>

#include "codband/base/file.h"
#include "codband/base/parse.h"
#include "codband/data/test_support.h"

namespace codband::replay {
namespace {

// `users` users with `each` events at the same times.
std::vector<StreamEvent> Events(std::uint32_t users, std::uint32_t each) {
  std::vector<StreamEvent> events;
  for (std::uint32_t user = 0; user < users; ++user) {
    for (std::uint32_t i = 0; i < each; ++i) {
      events.push_back({.user = user, .source = user, .item = i, .time = 100 - i});
    }
  }
  return events;
}

// Whether the events of every user are in time order.
bool EachUserInTime(const std::vector<StreamEvent>& events) {
  std::map<std::uint32_t, std::int64_t> last;
  for (const StreamEvent& event : events) {
    const auto [found, fresh] = last.try_emplace(event.user, event.time);
    if (event.time < found->second) return false;
    found->second = event.time;
  }
  return true;
}

std::vector<std::uint32_t> Users(const std::vector<StreamEvent>& events) {
  std::vector<std::uint32_t> users;
  for (const StreamEvent& event : events) users.push_back(event.user);
  return users;
}

TEST(EventStreamTest, StackedUsersComeOneAfterTheOtherInRandomOrder) {
  std::vector<StreamEvent> events = Events(20, 5);
  OrderEvents(StreamOrder::kStacked, 1, false, events);
  EXPECT_TRUE(EachUserInTime(events));
  std::vector<std::uint32_t> users = Users(events);
  EXPECT_FALSE(std::ranges::is_sorted(users));
  users.erase(std::unique(users.begin(), users.end()), users.end());
  EXPECT_EQ(users.size(), 20U);  // each in one piece

  std::vector<StreamEvent> numbered = Events(20, 5);
  OrderEvents(StreamOrder::kStacked, 1, true, numbered);
  EXPECT_TRUE(std::ranges::is_sorted(Users(numbered)));
  for (std::size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i].source, numbered[i].source);

  std::vector<StreamEvent> other = Events(20, 5);
  OrderEvents(StreamOrder::kStacked, 2, false, other);
  EXPECT_NE(Users(other), Users(events));
}

TEST(EventStreamTest, InterleavedUsersKeepTheirEventsInTimeOrder) {
  std::vector<StreamEvent> events = Events(20, 5);
  OrderEvents(StreamOrder::kInterleaved, 1, false, events);
  EXPECT_TRUE(EachUserInTime(events));
  std::vector<std::uint32_t> users = Users(events);
  std::ranges::sort(users);
  EXPECT_EQ(users, Users(Events(20, 5)));
  EXPECT_EQ(std::set(users.begin(), users.end()).size(), 20U);
  users = Users(events);
  users.erase(std::unique(users.begin(), users.end()), users.end());
  EXPECT_GT(users.size(), 60U);
}

TEST(EventStreamTest, TimeOrderIsByTimeThenUser) {
  std::vector<StreamEvent> events = Events(3, 4);
  OrderEvents(StreamOrder::kTime, 1, false, events);
  EXPECT_EQ(Users(events), (std::vector<std::uint32_t>{0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(events.front().time, 97);
  EXPECT_EQ(events.back().time, 100);
}

TEST(EventStreamTest, EventsAreDrawnUniformly) {
  std::map<std::uint32_t, int> times_kept;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    std::vector<StreamEvent> events = Events(1, 10);
    DrawEvents(3, seed, events);
    ASSERT_EQ(events.size(), 3U);
    ASSERT_TRUE(events[0].item < events[1].item && events[1].item < events[2].item);
    for (const StreamEvent& event : events) ++times_kept[event.item];
  }
  // Mean 1200, standard deviation 29: five of them.
  for (std::uint32_t item = 0; item < 10; ++item) EXPECT_NEAR(times_kept[item], 1200, 145);
  std::vector<StreamEvent> all = Events(1, 10);
  DrawEvents(0, 1, all);
  EXPECT_EQ(all.size(), 10U);
  DrawEvents(11, 1, all);
  EXPECT_EQ(all.size(), 10U);
}

class WriteEventsTest : public data::DirectoryTest {
 protected:
  Status Run(const std::vector<StreamEvent>& events, std::size_t items, EventsOptions options) {
    const PositiveItems positives(10, events);
    std::vector<std::uint64_t> user_ids(10);
    std::vector<std::uint64_t> item_ids(items);
    for (std::size_t i = 0; i < user_ids.size(); ++i) user_ids[i] = 1000 + i;
    for (std::size_t i = 0; i < items; ++i) item_ids[i] = 10 * i;
    std::filesystem::remove_all(directory_ / "out");
    auto out = data::OutputDirectory::Create(directory_ / "out", false, {});
    auto file = out.value().Open("events.tsv");
    const Status status =
        WriteEvents(events, positives, user_ids, item_ids, options, file.value(), part_);
    EXPECT_TRUE(file.value().Close().ok());
    EXPECT_TRUE(out.value().Commit().ok());
    text_ = ReadFile(directory_ / "out" / "events.tsv").value();
    return status;
  }

  std::string text_;
};

TEST_F(WriteEventsTest, PositiveComesFirstAndTheOthersAreNoPositivesOfTheSource) {
  // Source 3 has all items but 20, 30 and 40.
  std::vector<StreamEvent> events;
  for (const std::uint32_t item : {0U, 1U, 5U, 6U}) {
    events.push_back({.user = 2, .source = 3, .item = item, .time = item});
  }
  ASSERT_TRUE(Run(events, 7, {.candidates = 4}).ok());
  std::istringstream lines(text_);
  std::string line;
  std::set<std::string> orders;
  for (const StreamEvent& event : events) {
    ASSERT_TRUE(std::getline(lines, line));
    const std::string head =
        "1002\t" + std::to_string(event.time) + "\t" + std::to_string(10 * event.item) + ",";
    ASSERT_TRUE(line.starts_with(head)) << line;
    std::string rest = line.substr(head.size()) + ",";
    std::vector<std::string> others = {rest.substr(0, 3), rest.substr(3, 3), rest.substr(6)};
    orders.insert(rest);
    std::ranges::sort(others);
    EXPECT_EQ(others, (std::vector<std::string>{"20,", "30,", "40,"})) << line;
  }
  EXPECT_GT(orders.size(), 1U);
  EXPECT_FALSE(std::getline(lines, line));
}

TEST_F(WriteEventsTest, TooFewItemsAreAnError) {
  const Status status = Run({{.user = 0, .source = 0, .item = 1, .time = 0}}, 4, {.candidates = 5});
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("5 candidates of 4 items"), std::string::npos);
}

TEST_F(WriteEventsTest, CandidatesDependOnSeedAndNumberOfTheEventAlone) {
  const std::vector<StreamEvent> two = {{.user = 0, .source = 0, .item = 1, .time = 0},
                                        {.user = 1, .source = 1, .item = 2, .time = 5}};
  ASSERT_TRUE(Run(two, 1000, {.candidates = 9, .seed = 7}).ok());
  const std::string both = text_;
  ASSERT_TRUE(Run({two[0]}, 1000, {.candidates = 9, .seed = 7}).ok());
  EXPECT_TRUE(both.starts_with(text_));
  ASSERT_TRUE(Run({two[0]}, 1000, {.candidates = 9, .seed = 8}).ok());
  EXPECT_FALSE(both.starts_with(text_));
}

}  // namespace
}  // namespace codband::replay
