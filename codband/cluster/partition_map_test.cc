#include "codband/cluster/partition_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "codband/cluster/postgres/follows_text.h"

namespace codband::cluster {
namespace {

using store::Partition;

PartitionMap MapOf(const std::vector<std::string>& owners, const std::vector<std::string>& nodes) {
  PartitionMap map;
  for (std::size_t i = 0; i < owners.size(); ++i) {
    map.partitions.push_back({.partition = static_cast<Partition>(i),
                              .epoch = 1,
                              .owner = owners[i],
                              .lease_left_ms = owners[i].empty() ? 0 : 100});
  }
  for (const std::string& name : nodes) {
    map.nodes.push_back({.name = name, .url = "http://" + name, .lease_left_ms = 100});
  }
  return map;
}

std::vector<Partition> OwnedBy(const PartitionMap& map, const std::string& node) {
  std::vector<Partition> owned;
  for (const auto& state : map.partitions) {
    if (state.owner == node) owned.push_back(state.partition);
  }
  return owned;
}

// All nodes follow their plans in turns until none has one left. Returns the number of moves.
int Settle(PartitionMap& map) {
  int moves = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& node : map.nodes) {
      if (node.lease_left_ms <= 0) continue;
      const Plan plan = MakePlan(map, node.name, OwnedBy(map, node.name), {});
      for (const Partition p : plan.take) {
        EXPECT_TRUE(map.partitions[p].owner.empty());
        map.partitions[p].owner = node.name;
        map.partitions[p].lease_left_ms = 100;
        changed = true;
      }
      if (!plan.give.empty()) {
        map.partitions[plan.give[0]].owner = "";
        map.partitions[plan.give[0]].lease_left_ms = 0;
        changed = true;
        ++moves;
      }
      EXPECT_LT(moves, 1000);
      if (moves >= 1000) return moves;
    }
  }
  return moves;
}

TEST(PartitionMapTest, UsersAreSpreadByTheHighBits) {
  EXPECT_EQ(PartitionOf(0, 16), 0U);
  EXPECT_EQ(PartitionOf(~std::uint64_t{0}, 16), 15U);
  EXPECT_EQ(PartitionOf(std::uint64_t{5} << 60, 16), 5U);
  EXPECT_EQ(PartitionOf(~std::uint64_t{0}, 1), 0U);
  EXPECT_EQ(PartitionOf(~std::uint64_t{0}, 7), 6U);
}

TEST(PartitionMapTest, FreePartitionsAreSharedEvenly) {
  for (const std::size_t nodes : {1, 2, 3, 5, 16, 20}) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < nodes; ++i) names.push_back("n" + std::to_string(i));
    PartitionMap map = MapOf(std::vector<std::string>(16), names);
    EXPECT_EQ(Settle(map), 0) << nodes;
    for (const std::string& name : names) {
      EXPECT_GE(OwnedBy(map, name).size(), 16 / nodes) << nodes;
      EXPECT_LE(OwnedBy(map, name).size(), (16 + nodes - 1) / nodes) << nodes;
    }
  }
}

TEST(PartitionMapTest, ANewNodeGetsItsShareWithTheFewestMoves) {
  PartitionMap map =
      MapOf({"a", "a", "a", "a", "a", "a", "a", "a", "b", "b", "b", "b", "b", "b", "b", "b"},
            {"a", "b", "c"});
  EXPECT_EQ(Settle(map), 5);
  EXPECT_EQ(OwnedBy(map, "c").size(), 5U);
  EXPECT_EQ(MakePlan(map, "a", OwnedBy(map, "a"), {}).give.size(), 0U);
}

TEST(PartitionMapTest, TheShareOfADeadNodeIsTaken) {
  PartitionMap map = MapOf({"a", "a", "b", "b", "c", "c"}, {"a", "b", "c"});
  map.nodes[2].lease_left_ms = -5;
  map.partitions[4].lease_left_ms = map.partitions[5].lease_left_ms = 0;
  EXPECT_EQ(MakePlan(map, "a", {0, 1}, {}).take.size(), 1U);
  EXPECT_EQ(MakePlan(map, "a", {0, 1}, {4, 5}).take.size(), 0U);
  map.partitions[4].owner = map.partitions[5].owner = "";
  EXPECT_EQ(Settle(map), 0);
  EXPECT_EQ(OwnedBy(map, "a").size(), 3U);
}

TEST(PartitionMapTest, APartitionGoesWhereItIsWantedAndStays) {
  PartitionMap map = MapOf({"a", "a", "a", "b", "b", "b"}, {"a", "b"});
  map.partitions[0].wanted = map.partitions[1].wanted = map.partitions[2].wanted = "b";
  Settle(map);
  for (Partition p = 0; p < 3; ++p) EXPECT_EQ(map.partitions[p].owner, "b") << p;
  // The others make up for it.
  EXPECT_EQ(OwnedBy(map, "a"), (std::vector<Partition>{3, 4, 5}));
  EXPECT_EQ(Settle(map), 0);
  // More than its share, if that is wanted.
  map.partitions[3].wanted = map.partitions[4].wanted = "b";
  Settle(map);
  EXPECT_EQ(OwnedBy(map, "b").size(), 5U);
  EXPECT_EQ(Settle(map), 0);
  // A wish that cannot be fulfilled keeps nobody from serving it.
  map.nodes[1].lease_left_ms = 0;
  for (auto& state : map.partitions) {
    if (state.owner == "b") state.lease_left_ms = 0, state.owner = "";
  }
  Settle(map);
  EXPECT_EQ(OwnedBy(map, "a").size(), 6U);
}

TEST(PartitionMapTest, ANodeThatIsDrainingGivesEverythingAwayUnlessAllAre) {
  PartitionMap map = MapOf({"a", "a", "b", "b", "c", "c"}, {"a", "b", "c"});
  map.nodes[0].draining = true;
  map.partitions[0].wanted = "a";
  EXPECT_EQ(Settle(map), 2);
  EXPECT_EQ(OwnedBy(map, "a").size(), 0U);
  EXPECT_EQ(OwnedBy(map, "b").size(), 3U);
  map.nodes[1].draining = map.nodes[2].draining = true;
  map.partitions[3].owner = "";
  map.partitions[3].lease_left_ms = 0;
  Settle(map);
  EXPECT_FALSE(map.partitions[3].owner.empty());
}

TEST(PartitionMapTest, TheVersionGrowsWithEveryOwner) {
  PartitionMap map = MapOf({"a", "", "b"}, {"a"});
  const std::uint64_t before = map.version();
  ++map.partitions[1].epoch;
  EXPECT_GT(map.version(), before);
  EXPECT_EQ(map.UrlOf(0), "http://a");
  EXPECT_EQ(map.UrlOf(1), "");
  EXPECT_EQ(map.UrlOf(2), "");  // an owner who is not known
}

// Who follows what after all nodes have done as planned; empty: nobody.
std::vector<std::string> SettleStandbys(PartitionMap& map) {
  for (int turn = 0; turn < 5; ++turn) {
    for (store::NodeState& node : map.nodes) {
      if (node.lease_left_ms <= 0) continue;
      node.standby = true;
      const std::vector<Partition> planned = PlanStandbys(map, node.name);
      node.follows.clear();
      for (const Partition partition : planned) node.follows.push_back({.partition = partition});
    }
  }
  std::vector<std::string> standbys(map.partitions.size());
  for (const store::NodeState& node : map.nodes) {
    for (const store::Followed& each : node.follows) {
      EXPECT_EQ(standbys[each.partition], "") << each.partition;
      EXPECT_NE(map.partitions[each.partition].owner, node.name);
      standbys[each.partition] = node.name;
    }
  }
  return standbys;
}

TEST(PartitionMapTest, EveryPartitionHasOneStandbyElsewhereAndADeadNodesAreSpread) {
  for (const std::size_t count : {2, 3, 5, 8}) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < count; ++i) names.push_back("n" + std::to_string(i));
    PartitionMap map = MapOf(std::vector<std::string>(16), names);
    Settle(map);
    // Nodes choose at the same time, not knowing of one another.
    for (store::NodeState& node : map.nodes) node.standby = true;
    const auto standbys = SettleStandbys(map);
    for (const std::string& owner : names) {
      std::map<std::string, std::size_t> of_owner;
      for (const Partition partition : OwnedBy(map, owner)) ++of_owner[standbys[partition]];
      EXPECT_EQ(of_owner.count(""), 0U) << count;
      const std::size_t most = (OwnedBy(map, owner).size() + count - 2) / (count - 1);
      for (const auto& [standby, partitions] : of_owner) EXPECT_LE(partitions, most) << count;
    }
    // It stays as it is, whatever is planned again.
    EXPECT_EQ(SettleStandbys(map), standbys);
  }
}

TEST(PartitionMapTest, AStandbyIsWhoIsWantedAndNeitherWhoDrainsNorWhoWillNot) {
  PartitionMap map = MapOf({"a", "a"}, {"a", "b", "c"});
  map.partitions[0].wanted = "c";
  EXPECT_EQ(SettleStandbys(map), (std::vector<std::string>{"c", "b"}));
  map.nodes[1].draining = true;
  EXPECT_EQ(SettleStandbys(map), (std::vector<std::string>{"c", "c"}));
  map.nodes[1].draining = false;
  for (store::NodeState& node : map.nodes) node.standby = node.name == "b";
  EXPECT_EQ(PlanStandbys(map, "c"), std::vector<Partition>());
  EXPECT_EQ(PlanStandbys(map, "b"), (std::vector<Partition>{0, 1}));
  EXPECT_EQ(PlanStandbys(MapOf({"a"}, {"a"}), "a"), std::vector<Partition>());
}

TEST(PartitionMapTest, OfWhatIsFreeANodeTakesFirstWhatItFollows) {
  PartitionMap map = MapOf({"", "", "", ""}, {"a", "b"});
  map.nodes[0].follows = {{.partition = 3}, {.partition = 1}};
  map.nodes[1].follows = {{.partition = 0}, {.partition = 2}};
  std::vector<Partition> take = MakePlan(map, "a", {}, {}).take;
  std::ranges::sort(take);
  EXPECT_EQ(take, (std::vector<Partition>{1, 3}));
  // What nobody follows comes before what another one does.
  map.nodes[0].follows = {{.partition = 3}};
  take = MakePlan(map, "a", {}, {}).take;
  EXPECT_EQ(take, (std::vector<Partition>{3, 1}));
}

TEST(PartitionMapTest, ALagCountsFinalFramesAlone) {
  PartitionMap map = MapOf({"a"}, {"a", "b"});
  map.partitions[0].last_sequence = 10;
  EXPECT_EQ(map.LagOf({.partition = 0, .sequence = 4}), 5U);
  EXPECT_EQ(map.LagOf({.partition = 0, .sequence = 9}), 0U);
  EXPECT_EQ(map.LagOf({.partition = 0, .sequence = 12}), 0U);
  EXPECT_EQ(map.LagOf({.partition = 7, .sequence = 1}), 0U);
}

TEST(FollowsTextTest, WhatANodeFollowsComesBack) {
  for (const std::vector<store::Followed>& follows :
       {std::vector<store::Followed>(),
        {{.partition = 3, .sequence = 120}},
        {{.partition = 0, .sequence = 0}, {.partition = 255, .sequence = 1}}}) {
    store::NodeState read;
    ReadFollows(FollowsText({.standby = true, .follows = follows}), read);
    EXPECT_TRUE(read.standby);
    EXPECT_EQ(read.follows, follows);
  }
  store::NodeState read{.standby = true};
  ReadFollows(FollowsText({}), read);
  EXPECT_FALSE(read.standby);
  ReadFollows(";x:1;2;3:y;:;4:5", read);
  EXPECT_EQ(read.follows, (std::vector<store::Followed>{{.partition = 4, .sequence = 5}}));
}

}  // namespace
}  // namespace codband::cluster
