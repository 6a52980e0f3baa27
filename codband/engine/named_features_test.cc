// Features by name, through the engine: columns that grow while it serves, and contexts.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "codband/base/random.h"
#include "codband/engine/engine_testing.h"

namespace codband::engine {
namespace {

using features::NamedFeature;

constexpr std::size_t kByName = 0;

// A shop: items have a category, a brand, a price and tags. Under the context "morning" everybody
// likes news, in the evening music.
constexpr std::array<const char*, 5> kCategories = {"news", "music", "shoes", "garden", "toys"};

std::vector<Item> Shop(std::size_t count) {
  std::vector<Item> items;
  RandomStream random({11, 0}, 1);
  for (std::size_t i = 0; i < count; ++i) {
    Item item{.id = fmt::format("item{:02}", i), .features = {}, .named = {}, .tags = {}};
    item.named.push_back({fmt::format("category={}", kCategories[i % 5]), 1});
    item.named.push_back({fmt::format("brand=b{}", random.Below(20)), 1});
    item.named.push_back({"price", random.Uniform()});
    item.named.push_back({fmt::format("tags=t{}", random.Below(4)), 1});
    items.push_back(item);
  }
  return items;
}

struct SiteVisitor {
  bool with_context = true;
  std::size_t users = 8;
  std::uint64_t seed = 1;
};

// Plays rounds of all users. Returns the chance of a click of what was shown, over the last half.
double PlayShop(EngineBox& box, const std::vector<Item>& items, const SiteVisitor& visitor,
                std::size_t rounds) {
  double sum = 0;
  std::size_t count = 0;
  for (std::size_t round = 0; round < rounds; ++round) {
    for (std::size_t user = 0; user < visitor.users; ++user) {
      RandomStream random({visitor.seed, round * visitor.users + user}, 2);
      const bool morning = random.Uniform() < 0.5;
      RankRequest request{.event_id = fmt::format("e{}-{}", round, user),
                          .user = fmt::format("user{}", user)};
      if (visitor.with_context) {
        request.context_features = {{morning ? "time=morning" : "time=evening", 1}};
      }
      const auto reply = box.Rank(request);
      EXPECT_TRUE(reply.ok()) << reply.status().ToString();
      if (!reply.ok()) return 0;
      const std::size_t shown =
          static_cast<std::size_t>(std::stoul(reply.value().reward_action_id.substr(4)));
      const std::string& category = items[shown].named[0].name;
      const double chance = category == (morning ? "category=news" : "category=music") ? 0.6 : 0.05;
      const auto reward = box.Reward(request.event_id, random.Uniform() < chance ? 1 : 0);
      EXPECT_TRUE(reward.ok()) << reward.status().ToString();
      if (2 * round < rounds) continue;
      sum += chance;
      ++count;
    }
  }
  return sum / static_cast<double>(count);
}

TEST(NamedFeaturesTest, ATasteThatTheContextTurnsIsLearned) {
  const std::vector<Item> items = Shop(40);
  for (const bool with_context : {true, false}) {
    EngineBox box({.columns = {.columns = 96}, .exploration_floor = 0}, kByName);
    ASSERT_TRUE(box.Put(items).ok());
    const double rate = PlayShop(box, items, {.with_context = with_context}, 120);
    if (with_context) {
      EXPECT_GT(rate, 0.95 * 0.6);
    } else {
      EXPECT_NEAR(rate, 0.325, 0.03);  // it can only choose between the two
    }
  }
}

// One step of a shop whose catalogue, contexts and inline actions bring new names all the time.
void GrowBy(EngineBox& box, int step) {
  const std::string id = fmt::format("i{}", step);
  ASSERT_TRUE(box.Put({{.id = id,
                        .features = {},
                        .named = {{fmt::format("name{}", step), 1}, {"price", 0.1 * step}},
                        .tags = {}}})
                  .ok());
  RankRequest request{.event_id = fmt::format("e{}", step),
                      .user = fmt::format("user{}", step % 5),
                      .candidates = {{.id = id}, {.id = "here"}}};
  request.candidates[1].named = {{fmt::format("inline{}", step % 7), 2}, {"price", 1}};
  request.context_features = {{fmt::format("device=d{}", step % 3), 1}};
  if (step % 4 == 0) request.user_features = {{"age", 0.3}};
  const auto reply = box.Rank(request);
  ASSERT_TRUE(reply.ok()) << reply.status().ToString();
  const auto reward = box.Reward(request.event_id, reply.value().reward_action_id == id ? 1 : 0);
  ASSERT_TRUE(reward.ok()) << reward.status().ToString();
}

// What a directory holds after an engine has run on it for a moment.
StoredState StateAfterOpening(const std::filesystem::path& directory,
                              const EngineOptions& options) {
  auto store = store::OpenRocksDbStore(directory);
  EXPECT_TRUE(store.ok());
  auto engine = Engine::Open(std::move(store).value(), options);
  EXPECT_TRUE(engine.ok()) << engine.status().ToString();
  if (!engine.ok()) return {};
  EXPECT_TRUE(engine.value()->Checkpoint().ok());
  engine.value().reset();
  return ReadStoredState(directory);
}

// The 33rd, the 129th and the 257th name, and those that share, come while it serves. With restarts
// and checkpoints in between, and from the log alone, everything is the same, bit for bit.
TEST(NamedFeaturesTest, ColumnsGrowWhileItServesAsAReplayOfTheLogHasIt) {
  const EngineOptions options{.columns = {.columns = 280}, .users_in_memory = 100'000};
  constexpr int kSteps = 300;
  EngineBox whole(options, kByName);
  std::size_t before = 0;
  for (int step = 0; step < kSteps; ++step) {
    GrowBy(whole, step);
    const EngineStats stats = whole->Stats();
    ASSERT_GE(stats.columns + stats.shared_columns, before);
    ASSERT_GE(stats.dim, stats.columns + stats.shared_columns);
    before = stats.columns + stats.shared_columns;
  }
  const EngineStats stats = whole->Stats();
  EXPECT_EQ(stats.columns, 280U);
  EXPECT_GT(stats.crossings, 50U);
  EXPECT_EQ(stats.shared_columns, 70U);
  EXPECT_GT(stats.sharing_names, 30U);
  EXPECT_EQ(stats.rewards_accepted, kSteps);
  EXPECT_EQ(stats.quarantined, 0U);

  const std::filesystem::path copy = whole.directory() / "copy";
  ASSERT_TRUE(
      whole->Backup(copy).ok());  // the log alone: there was no checkpoint but the empty one
  EXPECT_EQ(stats.checkpoint_sequence, 0U);
  ASSERT_TRUE(whole->Checkpoint().ok());
  whole.Close();
  const StoredState state = ReadStoredState(whole.directory());
  EXPECT_TRUE(state == StateAfterOpening(copy, whole.options()));

  EngineOptions often = options;
  often.checkpoint_events = 3;
  often.users_in_memory = 3;
  EngineBox parts(often, kByName);
  for (int step = 0; step < kSteps; ++step) {
    if (step % 37 == 36) parts.Open();
    GrowBy(parts, step);
  }
  ASSERT_TRUE(parts->Checkpoint().ok());
  parts.Close();
  EXPECT_TRUE(state == ReadStoredState(parts.directory()));
}

// Concurrent requests with new names: whatever the order, the log has it.
TEST(NamedFeaturesTest, ManyThreadsWithNewNamesLoseNothing) {
  EngineBox box({.columns = {.columns = 60}}, kByName);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&box, thread] {
      for (int i = 0; i < 30; ++i) {
        RankRequest request{.event_id = fmt::format("e{}-{}", thread, i),
                            .user = fmt::format("user{}", i % 3),
                            .candidates = {{.id = "a"}, {.id = "b"}}};
        request.candidates[0].named = {{fmt::format("x{}", i), 1}};
        request.candidates[1].named = {{fmt::format("y{}", thread), 1}};
        request.context_features = {{fmt::format("c{}", i % 4), 1}};
        EXPECT_TRUE(box.Rank(request).ok());
        EXPECT_TRUE(box.Reward(request.event_id, 1).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(box->Stats().quarantined, 0U);
  EXPECT_TRUE(box->Check().ok());
  const std::filesystem::path copy = box.directory() / "copy";
  ASSERT_TRUE(box->Backup(copy).ok());
  ASSERT_TRUE(box->Checkpoint().ok());
  box.Close();
  EXPECT_TRUE(ReadStoredState(box.directory()) == StateAfterOpening(copy, box.options()));
}

TEST(NamedFeaturesTest, TheFirstDecisionWithANameTeachesIt) {
  EngineBox box({.columns = {.columns = 20}}, kByName);
  RankRequest request{.event_id = "e", .user = "ann", .candidates = {{.id = "a"}}};
  request.candidates[0].named = {{"genre=jazz", 1}, {"price", -2.5}};
  request.context_features = {{"device=phone", 1}};
  ASSERT_TRUE(box.Rank(request).ok());
  ASSERT_TRUE(box.Reward("e", 1).ok());
  const FeatureReport report = box->Features();
  std::map<std::string, ColumnReport> columns;
  for (const ColumnReport& column : report.columns) columns[column.name] = column;
  for (const char* name : {"genre=jazz", "price", "device=phone", "genre=jazz × device=phone",
                           "price × device=phone"}) {
    ASSERT_TRUE(columns.contains(name)) << name;
    EXPECT_EQ(columns[name].count, 1U) << name;
  }
  EXPECT_EQ(columns["price"].min, -2.5);
  EXPECT_EQ(columns["price"].kind, "item");
  EXPECT_EQ(columns["device=phone"].kind, "context");
  EXPECT_EQ(columns["price × device=phone"].kind, "crossing");
  EXPECT_GT(columns["genre=jazz"].importance, 0);
}

TEST(NamedFeaturesTest, ExplanationsNameColumns) {
  EngineBox box({.columns = {.columns = 20}}, kByName);
  ASSERT_TRUE(
      box.Put({{.id = "a", .features = {}, .named = {{"genre=jazz", 1}}, .tags = {}}}).ok());
  RankRequest request{.user = "ann", .explain = true};
  request.context_features = {{"device=phone", 1}};
  for (int i = 0; i < 5; ++i) {
    request.event_id = fmt::format("e{}", i);
    ASSERT_TRUE(box.Rank(request).ok());
    ASSERT_TRUE(box.Reward(request.event_id, 1).ok());
  }
  request.event_id = "last";
  const RankReply reply = box.Rank(request).value();
  ASSERT_TRUE(reply.explanation);
  std::set<std::string> names;
  double sum = reply.explanation->intercept;
  for (const auto& each : reply.explanation->contributions) {
    names.insert(each.feature);
    sum += each.value;
  }
  EXPECT_EQ(names,
            (std::set<std::string>{"device=phone", "genre=jazz", "genre=jazz × device=phone"}));
  EXPECT_NEAR(sum, reply.ranking[0].mean, 1e-9);
}

TEST(NamedFeaturesTest, CrossingsCanBeNamed) {
  EngineBox box({.columns = {.columns = 40}, .crossings = "device:genre"}, kByName);
  RankRequest request{.event_id = "e", .user = "ann", .candidates = {{.id = "a"}}};
  request.candidates[0].named = {{"genre=jazz", 1}, {"price", 2}};
  request.context_features = {{"device=phone", 1}, {"hour", 7}};
  ASSERT_TRUE(box.Rank(request).ok());
  std::set<std::string> crossings;
  for (const ColumnReport& column : box->Features().columns) {
    if (column.kind == "crossing") crossings.insert(column.name);
  }
  EXPECT_EQ(crossings, (std::set<std::string>{"genre=jazz × device=phone"}));
}

TEST(NamedFeaturesTest, SharingIsToldOnce) {
  std::atomic<int> told{0};
  EngineBox box({.columns = {.columns = 4},
                 .log =
                     [&](const LogLine& line) {
                       if (line.cause == "columns") ++told;
                     }},
                kByName);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(box.Put({{.id = fmt::format("i{}", i),
                          .features = {},
                          .named = {{fmt::format("n{}", i), 1}},
                          .tags = {}}})
                    .ok());
  }
  EXPECT_EQ(told, 1);
  const EngineStats stats = box->Stats();
  EXPECT_EQ(stats.columns, 4U);
  EXPECT_EQ(stats.shared_columns, 8U);
  EXPECT_EQ(stats.sharing_names, 6U);
  EXPECT_EQ(box->Features().sharing.front(), "n4");
  // With more room the items of the catalogue get their own.
  box.options().columns.columns = 30;
  box.Open();
  EXPECT_EQ(box->Stats().columns, 10U);
}

TEST(NamedFeaturesTest, PlainArraysGoOnAlsoBesideNames) {
  EngineBox box({.columns = {.columns = 20}}, kByName);
  ASSERT_TRUE(box.Put({{.id = "plain", .features = {1, 0, 2}, .named = {}, .tags = {}},
                       {.id = "named", .features = {}, .named = {{"price", 2}}, .tags = {}}})
                  .ok());
  EXPECT_EQ(box->Stats().columns, 4U);
  EXPECT_EQ(box.Put({{.id = "short", .features = {1, 0}, .named = {}, .tags = {}}}).message(),
            "features: has 2 numbers, expected 3 as the arrays before; give an array of another "
            "length a name");
  EXPECT_TRUE(box.Rank({.event_id = "e", .user = "ann"}).ok());
  EXPECT_TRUE(box.Reward("e", 1).ok());
  EXPECT_EQ(box->GetItem("plain").value().features, (std::vector<double>{1, 0, 2}));
}

TEST(NamedFeaturesTest, BadInputIsNamedAndChangesNothing) {
  EngineBox box({.columns = {.columns = 20}}, kByName);
  ASSERT_TRUE(box.Put({{.id = "a", .features = {}, .named = {{"price", 2}}, .tags = {}}}).ok());
  const auto put = [&](std::vector<NamedFeature> named) {
    return box.Put({{.id = "b", .features = {}, .named = std::move(named), .tags = {}}}).message();
  };
  EXPECT_EQ(put({{"x", std::nan("")}}), "features.x: is nan, expected a number within ±1000000");
  EXPECT_EQ(put({{"x", 1e7}}), "features.x: is 10000000, expected a number within ±1000000");
  EXPECT_EQ(put({{std::string(1 << 20, 'x'), 1}}),
            "features: has a feature whose name has 1048576 bytes, expected 1 to 1024");
  EXPECT_EQ(put(std::vector<NamedFeature>(1'000'000, {"x", 1})),
            "features: has 1000000 features, expected at most 4096");
  RankRequest request{.user = "ann", .candidates = {{.id = "b"}}};
  request.candidates[0].named = {{"y", std::numeric_limits<double>::infinity()}};
  EXPECT_EQ(box.Rank(request).status().message(),
            "actions[0].features.y: is inf, expected a number within ±1000000");
  request.candidates[0].named = {{"y", 1}};
  request.context_features = {{"z", std::nan("")}};
  EXPECT_EQ(box.Rank(request).status().message(),
            "contextFeatures.z: is nan, expected a number within ±1000000");
  EXPECT_EQ(box->Stats().columns, 1U);
  EXPECT_EQ(box->Stats().pending, 0U);
}

TEST(NamedFeaturesTest, ProductsBeyondAllBoundsAreRefused) {
  EngineBox box({.columns = {.columns = 20}, .max_abs_feature = 1e15}, kByName);
  RankRequest request{.user = "ann", .candidates = {{.id = "a"}}};
  request.candidates[0].named = {{"y", 1e12}};
  request.context_features = {{"z", 1e12}};
  const Status status = box.Rank(request).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.ToString();
  EXPECT_EQ(box->Stats().columns, 0U);
  // Just within: learned.
  request.candidates[0].named = {{"y", 3e7}};
  request.context_features = {{"z", 3e7}};
  request.event_id = "e";
  ASSERT_TRUE(box.Rank(request).ok());
  ASSERT_TRUE(box.Reward("e", 1).ok());
  EXPECT_EQ(box->Stats().quarantined, 0U);
}

TEST(NamedFeaturesTest, VisitorsWithoutANameTeachThePool) {
  EngineBox box({.columns = {.columns = 20}}, kByName);
  std::vector<Item> items;
  for (const char* genre : {"jazz", "rock"}) {
    items.push_back(
        {.id = genre, .features = {}, .named = {{std::string("genre=") + genre, 1}}, .tags = {}});
  }
  ASSERT_TRUE(box.Put(items).ok());
  int jazz = 0;
  for (int i = 0; i < 120; ++i) {
    const RankReply reply = box.Rank({.event_id = fmt::format("e{}", i)}).value();
    const bool liked = reply.reward_action_id == "jazz";
    ASSERT_TRUE(box.Reward(reply.event_id, liked ? 1 : 0).ok());
    if (i >= 60) jazz += liked ? 1 : 0;
  }
  EXPECT_GT(jazz, 50);
  EXPECT_EQ(box->Stats().users, 0U);
  box.Open();
  EXPECT_TRUE(box->Check().ok());
  EXPECT_EQ(box.Rank({.event_id = "last"}).value().ranking[0].id, "jazz");
}

TEST(NamedFeaturesTest, AFixedNumberOfFeaturesHasNoContext) {
  EngineBox box;
  ASSERT_TRUE(box.Put(ThreeItems()).ok());
  RankRequest request{.user = "ann"};
  request.context_features = {{"device=phone", 1}};
  EXPECT_EQ(box.Rank(request).status().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(box->Features().columns.empty());
  box.options().dim = 0;  // as the directory has it
  box.Open();
  EXPECT_EQ(box->dim(), 3U);
  EngineBox named({}, kByName);
  named.options().dim = 3;
  EXPECT_EQ(named.TryOpen().code(), StatusCode::kInvalidArgument);
}

// However many names come, what is kept of them is bounded, and so is the log.
TEST(NamedFeaturesTest, NamesWithoutEndTakeBoundedMemory) {
  EngineBox box({.columns = {.columns = 20}}, kByName);
  std::uint64_t sequence = 0;
  for (int i = 0; i < 40; ++i) {
    RankRequest request{.user = "ann", .candidates = {{.id = "a"}, {.id = "b", .given = true}}};
    for (int n = 0; n < 100; ++n) {
      request.candidates[0].named.push_back({fmt::format("name{}-{}", i, n), 1});
    }
    request.context_features = {{fmt::format("visit{}", i), 1}};
    ASSERT_TRUE(box.Rank(request).ok());
    const EngineStats stats = box->Stats();
    EXPECT_LE(stats.dim, 28U);
    EXPECT_LE(stats.sharing_names, 1000U);
    if (i == 20) sequence = stats.committed_sequence;
    if (i > 20) {
      EXPECT_EQ(stats.committed_sequence, sequence) << i;
    }
  }
}

TEST(NamedFeaturesTest, AnyPolicyMayStartOnACatalogueOfWhichNothingWasLearned) {
  EngineBox box({.columns = {.columns = 60}}, kByName);
  ASSERT_TRUE(box.Put(Shop(40)).ok());
  box.options().policy = "linucb";
  box.Open();
  EXPECT_GT(box->Stats().dim, 16U);
  ASSERT_TRUE(box.Rank({.event_id = "e", .user = "ann"}).ok());
  ASSERT_TRUE(box.Reward("e", 1).ok());
  box.options().policy = "lints";
  EXPECT_EQ(box.TryOpen().code(), StatusCode::kInvalidArgument);
  box.options().policy = "linucb";
  box.Open();
}

TEST(NamedFeaturesTest, ADeletedItemIsNothingLearned) {
  EngineBox box({.columns = {.columns = 60}}, kByName);
  ASSERT_TRUE(box.Put(Shop(40)).ok());
  ASSERT_TRUE(box.Delete("item03").ok());
  box.options().policy = "linucb";
  box.Open();
  EXPECT_GT(box->Stats().dim, 16U);
}

// However an item comes to be on offer, it is the same one.
TEST(NamedFeaturesTest, ItemsHaveEffectsOfTheirOwn) {
  EngineBox box({.columns = {.columns = 60}}, kByName);
  const std::vector<Item> items = Shop(5);
  ASSERT_TRUE(box.Put(items).ok());
  const std::vector<RankRequest> offers = {
      {.user = "ann"},
      {.user = "ann", .excluded = {"item04"}},
      {.user = "ann", .candidates = {{.id = "item00"}, {.id = "item02"}}},
      {.user = "ann", .candidates = {{.id = "item01", .named = items[1].named}, {.id = "item03"}}},
      {.user = ""}};
  std::map<std::string, std::uint64_t> shown;
  for (int i = 0; i < 100; ++i) {
    RankRequest request = offers[static_cast<std::size_t>(i) % offers.size()];
    request.event_id = fmt::format("e{}", i);
    const auto reply = box.Rank(request);
    ASSERT_TRUE(reply.ok()) << reply.status().ToString();
    ++shown[reply.value().reward_action_id];
    ASSERT_TRUE(box.Reward(request.event_id, i % 3 == 0 ? 1 : 0).ok());
  }
  for (const bool reopened : {false, true}) {
    if (reopened) box.Open();
    for (const auto& [id, count] : shown) {
      const auto known = box->DescribeItem(id);
      ASSERT_TRUE(known.has_value()) << id;
      // All but those that showed a change: what the group that a user left was off by
      // is not the item's.
      EXPECT_LE(known->shown, count) << id;
      EXPECT_GE(known->shown + 4, count) << id;
    }
    EXPECT_TRUE(box->Check().ok());
  }
  ASSERT_TRUE(box.Delete("item00").ok());
  ASSERT_TRUE(box.Rank({.event_id = "last", .user = "ann"}).ok());
  ASSERT_TRUE(box.Reward("last", 1).ok());  // by now the learner has come past the deletion
  EXPECT_FALSE(box->DescribeItem("item00").has_value());
}

TEST(NamedFeaturesTest, ItemsAreListedInPages) {
  EngineBox box({}, kByName);
  ASSERT_TRUE(box.Put(Shop(40)).ok());
  std::vector<std::string> ids;
  for (std::string after;;) {
    const std::vector<Item> page = box->ListItems(after, 7);
    for (const Item& item : page) ids.push_back(item.id);
    if (page.size() < 7) break;
    after = page.back().id;
  }
  ASSERT_EQ(ids.size(), 40U);
  EXPECT_TRUE(std::ranges::is_sorted(ids));
}

}  // namespace
}  // namespace codband::engine
