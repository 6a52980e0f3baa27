#include "codband/server/admin/demo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <thread>

#include "codband/store/rocksdb_store.h"

namespace codband::server {
namespace {

TEST(DemoWorldTest, IsTheSameForTheSameSeed) {
  DemoWorld one(32, {.seed = 3});
  DemoWorld same(32, {.seed = 3});
  DemoWorld other(32, {.seed = 4});
  EXPECT_EQ(one.items(), same.items());
  EXPECT_NE(one.items(), other.items());
  for (int v = 0; v < 100; ++v) {
    const DemoWorld::Visit visit = one.Next();
    const DemoWorld::Visit again = same.Next();
    EXPECT_EQ(visit.user, again.user);
    EXPECT_EQ(visit.offer, again.offer);
    EXPECT_EQ(one.Reward(visit, one.items()[visit.offer[0]].id),
              same.Reward(again, same.items()[visit.offer[0]].id));
  }
}

TEST(DemoWorldTest, ArtistsHaveNamesTagsAndFeatures) {
  const DemoWorld world(32, {});
  std::set<std::string> ids;
  for (const engine::Item& item : world.items()) {
    EXPECT_TRUE(ids.insert(item.id).second) << item.id;
    EXPECT_GE(item.tags.size(), 3U);
    std::vector<double> hashed(32);
    features::HashFeatures(item.named, hashed);
    EXPECT_EQ(item.features, hashed);
    EXPECT_TRUE(std::ranges::any_of(hashed, [](double x) { return x != 0; }));
  }
  EXPECT_EQ(ids.size(), 300U);
}

TEST(DemoWorldTest, EveryTasteHasItsFavourites) {
  const DemoWorld world(32, {});
  for (std::size_t taste = 0; taste < 8; ++taste) {
    double best = 0;
    double sum = 0;
    for (std::size_t i = 0; i < world.items().size(); ++i) {
      const double chance = world.PlayChance(taste, i);
      EXPECT_GT(chance, 0);
      EXPECT_LT(chance, 1);
      best = std::max(best, chance);
      sum += chance;
    }
    EXPECT_GT(best, 0.6) << taste;
    EXPECT_LT(sum / static_cast<double>(world.items().size()), 0.35) << taste;
  }
}

TEST(DemoWorldTest, ListenersChangeTheirMindsNowAndThen) {
  DemoWorld world(32, {.users = 10, .chance_of_change = 0.1});
  std::vector<std::size_t> tastes(10, 99);
  int changes = 0;
  for (int v = 0; v < 1000; ++v) {
    const DemoWorld::Visit visit = world.Next();
    changes += tastes[visit.user] != 99 && tastes[visit.user] != visit.taste ? 1 : 0;
    tastes[visit.user] = visit.taste;
  }
  EXPECT_GT(changes, 60);
  EXPECT_LT(changes, 140);
}

TEST(DemoTest, PlaysItsBurstOnceAndGoesOnAfterARestart) {
  const auto directory = std::filesystem::path(testing::TempDir()) / "codband_demo_test";
  std::filesystem::remove_all(directory);
  const DemoOptions options{.users = 20, .burst = 300, .visits_per_second = 0};
  for (int start = 0; start < 2; ++start) {
    auto engine = engine::Engine::Open(store::OpenRocksDbStore(directory).value(), {}).value();
    auto demo = Demo::Start(*engine, options).value();
    while (!demo->warm()) std::this_thread::yield();
    const engine::EngineStats stats = engine->Stats();
    EXPECT_EQ(stats.items, 300U);
    EXPECT_EQ(stats.rewards_accepted, start == 0 ? 300U : 0U);
    EXPECT_EQ(stats.committed_sequence, 301U);  // and one entry for the columns of the items
  }
  {
    // Live visits do not take the ids of those before.
    auto engine = engine::Engine::Open(store::OpenRocksDbStore(directory).value(), {}).value();
    auto demo = Demo::Start(*engine, {.users = 20, .visits_per_second = 1000}).value();
    while (engine->Stats().rewards_accepted < 50) std::this_thread::yield();
    EXPECT_EQ(engine->Stats().rewards_duplicate, 0U);
  }
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace codband::server
