// Who gets a column, through the engine: the catalogue has its part whatever requests bring.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "codband/engine/engine_testing.h"

namespace codband::engine {
namespace {

using features::NamedFeature;

// Of five sections: as many columns.
std::vector<Item> Articles(int count) {
  std::vector<Item> items;
  for (int i = 0; i < count; ++i) {
    items.push_back({.id = fmt::format("item{:02}", i),
                     .features = {},
                     .named = {{fmt::format("section={}", i % 5), 1}},
                     .tags = {}});
  }
  return items;
}

std::vector<std::string> ColumnNames(EngineBox& box) {
  std::vector<std::string> names;
  for (const ColumnReport& column : box->Features().columns) names.push_back(column.name);
  return names;
}

std::size_t CountOf(const std::vector<std::string>& names, std::string_view prefix) {
  return static_cast<std::size_t>(
      std::ranges::count_if(names, [&](const auto& name) { return name.starts_with(prefix); }));
}

// One request that brings hundreds of names takes no column from the catalogue, and leaves room for
// the contexts of others.
TEST(ColumnRoomTest, OneRequestCannotTakeAllColumns) {
  for (const bool in_context : {true, false}) {
    EngineBox box({}, 0);
    ASSERT_TRUE(box.Put(Articles(10)).ok());
    RankRequest many{.user = "", .candidates = {{.id = "item00"}, {.id = "x", .given = true}}};
    std::vector<NamedFeature>& names =
        in_context ? many.context_features : many.candidates[1].named;
    for (int i = 0; i < 260; ++i) names.push_back({fmt::format("junk{}", i), 1});
    for (int i = 0; i < 260; ++i) many.user_features.push_back({fmt::format("place[{}]", i), 1});
    ASSERT_TRUE(box.Rank(many).ok());
    EXPECT_LE(box->Stats().columns, 5U + 32 + 64);

    for (int user = 0; user < 3; ++user) {
      RankRequest usual{.user = fmt::format("user{}", user)};
      usual.context_features = {{"device=phone", 1}};
      ASSERT_TRUE(box.Rank(usual).ok());
    }
    EXPECT_EQ(CountOf(ColumnNames(box), "device=phone"), 1U);
    for (int i = 0; i < 60; ++i) {
      ASSERT_TRUE(box.Put({{.id = fmt::format("new{}", i),
                            .features = {},
                            .named = {{fmt::format("brand=new{}", i), 1}},
                            .tags = {}}})
                      .ok());
    }
    EXPECT_EQ(CountOf(ColumnNames(box), "brand=new"), 60U);
    EXPECT_TRUE(box->Features().sharing.empty());
  }
}

// Whatever sends so many names so often: the catalogue has its reserve.
TEST(ColumnRoomTest, ManyRequestsLeaveTheCatalogueItsReserve) {
  EngineBox box({}, 0);
  ASSERT_TRUE(
      box.Put({{.id = "a", .features = {}, .named = {{"genre=jazz", 1}}, .tags = {}}}).ok());
  for (int i = 0; i < 40; ++i) {
    RankRequest many{.user = ""};
    for (int n = 0; n < 60; ++n) {
      many.context_features.push_back({fmt::format("junk{}", i / 4 * 60 + n), 1});
    }
    ASSERT_TRUE(box.Rank(many).ok());
  }
  EXPECT_GT(box->Stats().shared_columns, 0U);
  for (int i = 0; i < 63; ++i) {
    ASSERT_TRUE(box.Put({{.id = fmt::format("new{}", i),
                          .features = {},
                          .named = {{fmt::format("brand=new{}", i), 1}},
                          .tags = {}}})
                    .ok());
  }
  EXPECT_EQ(CountOf(ColumnNames(box), "brand=new"), 63U);
}

// An id that is another one in every visit holds no column; a word that comes later does. Restarts
// make no difference.
TEST(ColumnRoomTest, ValuesOfOneVisitHoldNoColumn) {
  std::vector<std::vector<std::string>> found;
  for (const bool restarts : {false, true}) {
    EngineBox box({}, 0);
    ASSERT_TRUE(box.Put(Articles(5)).ok());
    for (int i = 0; i < 300; ++i) {
      if (restarts && i % 50 == 49) box.Open();
      RankRequest request{.event_id = fmt::format("e{}", i), .user = fmt::format("user{}", i / 4)};
      request.context_features = {{fmt::format("session=s{}", i / 4), 1},
                                  {fmt::format("request=r{}", i), 1},
                                  {i < 200      ? "page=home"
                                   : i % 2 == 0 ? "page=sale"
                                                : "page=new",
                                   1}};
      ASSERT_TRUE(box.Rank(request).ok());
      ASSERT_TRUE(box.Reward(request.event_id, 1).ok());
    }
    found.push_back(ColumnNames(box));
    EXPECT_EQ(CountOf(found.back(), "session=") + CountOf(found.back(), "request="), 31U);
    EXPECT_EQ(CountOf(found.back(), "page=sale"), 1U);
    EXPECT_EQ(CountOf(found.back(), "page=new"), 1U);
    EXPECT_TRUE(box->Check().ok());
  }
  EXPECT_EQ(found[0], found[1]);
}

std::vector<Item> Bare(int count) {
  std::vector<Item> items;
  for (int i = 0; i < count; ++i) {
    items.push_back({.id = fmt::format("bare{:02}", i), .features = {}, .named = {}, .tags = {}});
  }
  return items;
}

// The first items without features have a column each, the others none: they share none either. One
// that gets features has those alone.
TEST(ColumnRoomTest, ItemsWithoutFeaturesHaveTheirIds) {
  EngineBox box({}, 0);
  ASSERT_TRUE(box.Put(Bare(100)).ok());
  for (const bool reopened : {false, true}) {
    if (reopened) box.Open();
    EXPECT_EQ(box->Stats().columns, 64U);
    EXPECT_EQ(CountOf(ColumnNames(box), "id=bare"), 64U);
    EXPECT_EQ(box->Stats().shared_columns, 0U);
  }
  ASSERT_TRUE(
      box.Put({{.id = "bare00", .features = {}, .named = {{"genre=jazz", 1}}, .tags = {}}}).ok());
  EXPECT_EQ(box->Stats().columns, 65U);
  EXPECT_TRUE(box->Check().ok());
}

// Nothing is known of the items but who likes them: with nothing but effects of items all users
// were on one model.
TEST(ColumnRoomTest, UsersAreToldApartByItemsWithoutFeatures) {
  EngineBox box({}, 0);
  ASSERT_TRUE(box.Put(Bare(12)).ok());
  int liked = 0;
  constexpr int kUsers = 12;
  constexpr int kRounds = 60;
  for (int i = 0; i < kUsers * kRounds; ++i) {
    const int user = i % kUsers;
    const std::string event = fmt::format("e{}", i);
    const auto reply = box.Rank({.event_id = event, .user = fmt::format("user{}", user)});
    ASSERT_TRUE(reply.ok());
    const int shown = std::stoi(reply.value().reward_action_id.substr(4));
    const bool likes = shown % 3 == user % 3;
    if (i >= kUsers * kRounds / 2) liked += likes ? 1 : 0;
    ASSERT_TRUE(box.Reward(event, likes ? 1 : 0).ok());
  }
  EXPECT_GE(box->Stats().models, 3U);
  EXPECT_GT(liked, 0.95 * kUsers * kRounds / 2);
}

}  // namespace
}  // namespace codband::engine
