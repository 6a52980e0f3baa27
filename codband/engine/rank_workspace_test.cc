#include "codband/engine/rank_workspace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <vector>

namespace codband::engine {
namespace {

void Use(RankWorkspace& workspace, std::size_t arms) {
  workspace.offer.ids.assign(arms, "id");
  workspace.ranking.arms.resize(arms);
  workspace.most_arms = std::max(workspace.most_arms, arms);
}

TEST(RankWorkspaceTest, TheNextRankingUsesTheSameMemory) {
  RankWorkspaces pool;
  const Ranking::Arm* memory = nullptr;
  for (int i = 0; i < 3; ++i) {
    RankWorkspaces::Lease lease(pool);
    lease.set_kept_arms(100);
    EXPECT_TRUE((*lease).offer.ids.empty()) << "nothing of the last request is left";
    Use(*lease, 100);
    if (i > 0) {
      EXPECT_EQ((*lease).ranking.arms.data(), memory);
    }
    memory = (*lease).ranking.arms.data();
  }
  EXPECT_EQ(pool.size().workspaces, 1U);
  EXPECT_EQ(pool.size().arms, 100U);
}

TEST(RankWorkspaceTest, TheMemoryOfALargerRankingIsNotKept) {
  RankWorkspaces pool;
  {
    RankWorkspaces::Lease lease(pool);
    lease.set_kept_arms(100);
    Use(*lease, 101);
  }
  EXPECT_EQ(pool.size().workspaces, 0U);
  // Nor later, once the catalogue has become smaller.
  for (const std::size_t kept : {200, 100}) {
    RankWorkspaces::Lease lease(pool);
    lease.set_kept_arms(kept);
    Use(*lease, kept == 200 ? 150 : 1);
  }
  EXPECT_EQ(pool.size().workspaces, 0U);
}

TEST(RankWorkspaceTest, ThereAreAsManyAsRankingsAtTheSameTime) {
  RankWorkspaces pool;
  {
    RankWorkspaces::Lease first(pool), second(pool);
    EXPECT_NE(&*first, &*second);
    first.set_kept_arms(10);
    second.set_kept_arms(10);
  }
  EXPECT_EQ(pool.size().workspaces, 2U);
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        RankWorkspaces::Lease lease(pool);
        lease.set_kept_arms(10);
        Use(*lease, 5);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool.size().workspaces, 2U);
}

}  // namespace
}  // namespace codband::engine
