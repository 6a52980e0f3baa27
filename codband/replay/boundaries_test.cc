#include "codband/replay/boundaries.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

namespace codband::replay {
namespace {

struct Visit {
  UserId user;
  std::uint64_t origin;
};

struct Case {
  RecordedStream stream;
  std::vector<std::uint64_t> origins;
};

Case Make(const std::vector<Visit>& visits) {
  Case made;
  for (const Visit& visit : visits) {
    made.stream.events.push_back({.user = visit.user});
    made.origins.push_back(visit.origin);
  }
  return made;
}

BoundaryCounts Count(const Case& made, const std::vector<std::size_t>& changes,
                     std::size_t window) {
  return CountBoundaries(made.stream, made.origins, changes, window);
}

TEST(BoundariesTest, CountsEachUsersOwnEvents) {
  // User 5: a a b b a, at events 0, 2, 3, 5, 7. User 9: c d d d, at 1, 4, 6, 8.
  const Case made = Make({{5, 1}, {9, 3}, {5, 1}, {5, 2}, {9, 4}, {5, 2}, {9, 4}, {5, 1}, {9, 4}});
  const BoundaryCounts none = Count(made, {}, 2);
  EXPECT_EQ(none.boundaries, 3U);
  EXPECT_EQ(none.changes, 0U);
  EXPECT_EQ(none.found, 0U);
  EXPECT_EQ(none.found_by_chance, 0);
  EXPECT_EQ(none.hits_by_chance, 0);
  // At the boundary itself, one event after it, and two after it.
  for (const auto& [change, hit] : std::vector<std::pair<std::size_t, std::size_t>>{
           {2, 0}, {3, 1}, {5, 1}, {4, 1}, {6, 1}, {8, 0}, {0, 0}}) {
    const BoundaryCounts counts = Count(made, {change}, 2);
    EXPECT_EQ(counts.changes, 1U);
    EXPECT_EQ(counts.hits, hit) << change;
    EXPECT_EQ(counts.found, hit) << change;
  }
  // Two changes at one boundary are two hits, but find one.
  const BoundaryCounts twice = Count(made, {3, 5}, 2);
  EXPECT_EQ(twice.hits, 2U);
  EXPECT_EQ(twice.found, 1U);
  // With a longer window one change is at both of user 5's boundaries.
  const BoundaryCounts both = Count(made, {7}, 3);
  EXPECT_EQ(both.hits, 1U);
  EXPECT_EQ(both.found, 2U);
}

// Enumerates all ways to draw as many events of the user.
TEST(BoundariesTest, ChanceIsTheMeanOverAllUninformedDetectors) {
  const std::vector<std::uint64_t> origins = {1, 1, 2, 3, 3, 3, 3, 3, 1, 1};
  std::vector<Visit> visits;
  for (const std::uint64_t origin : origins) visits.push_back({7, origin});
  const Case made = Make(visits);
  for (const std::size_t window : {1, 2, 3, 20}) {
    for (int drawn = 0; drawn <= 10; ++drawn) {
      double ways = 0;
      double hits = 0;
      double squares = 0;
      double found = 0;
      BoundaryCounts counts;
      for (unsigned set = 0; set < 1024; ++set) {
        if (std::popcount(set) != drawn) continue;
        std::vector<std::size_t> changes;
        for (std::size_t i = 0; i < 10; ++i) {
          if ((set >> i & 1) != 0) changes.push_back(i);
        }
        counts = Count(made, changes, window);
        ++ways;
        hits += static_cast<double>(counts.hits);
        squares += static_cast<double>(counts.hits * counts.hits);
        found += static_cast<double>(counts.found);
      }
      EXPECT_EQ(counts.boundaries, 3U);
      EXPECT_NEAR(counts.hits_by_chance, hits / ways, 1e-12);
      EXPECT_NEAR(counts.found_by_chance, found / ways, 1e-12);
      EXPECT_NEAR(counts.hits_variance, squares / ways - std::pow(hits / ways, 2), 1e-10);
    }
  }
}

TEST(BoundariesTest, UsersAndRunsAddUp) {
  const Case one = Make({{1, 1}, {1, 2}, {1, 2}, {1, 2}});
  const Case two = Make({{1, 1}, {2, 1}, {1, 2}, {2, 2}, {1, 2}, {2, 2}, {1, 2}, {2, 2}});
  BoundaryCounts sum = Count(one, {1}, 2);
  sum.Add(Count(one, {3}, 2));
  const BoundaryCounts together = Count(two, {2, 7}, 2);
  EXPECT_EQ(together.boundaries, sum.boundaries);
  EXPECT_EQ(together.hits, 1U);
  EXPECT_EQ(sum.hits, 1U);
  EXPECT_EQ(together.found, sum.found);
  EXPECT_DOUBLE_EQ(together.hits_by_chance, sum.hits_by_chance);
  EXPECT_DOUBLE_EQ(together.found_by_chance, sum.found_by_chance);
  EXPECT_DOUBLE_EQ(together.hits_variance, sum.hits_variance);
  EXPECT_DOUBLE_EQ(sum.hits_by_chance, 2 * 0.5);
}

}  // namespace
}  // namespace codband::replay
