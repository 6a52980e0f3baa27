#include "codband/cluster/node.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "codband/cluster/instant_log.h"
#include "codband/store/simulated_log.h"

namespace codband::cluster {
namespace {

constexpr std::int64_t kLeaseMs = 3000;

// Serves nothing, but says so.
class IdleHost final : public PartitionHost {
 public:
  void Open(const store::PartitionState& state, std::function<void(Status)> done) override {
    ++opened;
    follows.erase(state.partition);
    done(outcome);
  }
  void Close(store::Partition, bool, std::function<void()> done) override { done(); }
  void Follow(store::Partition partition, std::uint64_t last) override {
    follows[partition] = last;
  }
  void EndFollow(store::Partition partition) override { follows.erase(partition); }
  std::uint64_t FollowedTo(store::Partition partition) const override {
    return follows.at(partition);
  }

  Status outcome;
  int opened = 0;
  std::map<store::Partition, std::uint64_t> follows;
};

class NodeTest : public testing::Test {
 protected:
  struct Process {
    Process(NodeTest& test, const std::string& name, const std::string& instance)
        : Process(test, test.record_, name, instance) {}
    Process(NodeTest& test, store::SimulatedRecord& record, const std::string& name,
            const std::string& instance)
        : log(record, test.time_, {.seed = 1, .event = ++test.processes_}),
          node(log, test.time_, host,
               {.name = name,
                .url = "http://" + instance,
                .instance = instance,
                .lease_ms = kLeaseMs,
                .log = [this](const LogLine& line) { lines += line.message + "\n"; }}) {
      node.Start();
    }
    std::size_t served() const {
      std::size_t count = 0;
      for (store::Partition i = 0; i < 4; ++i) count += node.serves(i) ? 1 : 0;
      return count;
    }
    std::string lines;
    store::SimulatedLog log;
    IdleHost host;
    Node node;
  };

  VirtualTime time_;
  store::SimulatedRecord record_{4, time_};
  std::uint64_t processes_ = 0;
};

TEST_F(NodeTest, NodesShareThePartitionsAndTakeOverFromTheDead) {
  Process a(*this, "a", "1");
  time_.RunFor(2000);
  EXPECT_EQ(a.served(), 4U);
  auto b = std::make_unique<Process>(*this, "b", "2");
  time_.RunFor(10'000);
  EXPECT_EQ(a.served(), 2U);
  EXPECT_EQ(b->served(), 2U);
  EXPECT_EQ(a.node.map().UrlOf(0).substr(0, 7), "http://");
  b.reset();
  time_.RunFor(kLeaseMs + 2000);
  EXPECT_EQ(a.served(), 4U);
}

TEST_F(NodeTest, TwoNodesOfOneNameDoNotFight) {
  auto first = std::make_unique<Process>(*this, "a", "1");
  time_.RunFor(2000);
  Process second(*this, "a", "2");
  time_.RunFor(60'000);
  EXPECT_EQ(first->served(), 4U);
  EXPECT_EQ(second.served(), 0U);
  EXPECT_NE(second.lines.find("another node called 'a' is alive"), std::string::npos);
  EXPECT_EQ(record_.ListPartitions()[0].epoch, 1U);
  first.reset();
  time_.RunFor(2 * kLeaseMs);
  EXPECT_EQ(second.served(), 4U);
}

TEST_F(NodeTest, ADrainedNodeLeavesAtOnce) {
  Process a(*this, "a", "1");
  Process b(*this, "b", "2");
  time_.RunFor(10'000);
  bool drained = false;
  a.node.Drain([&] { drained = true; });
  time_.RunFor(kLeaseMs / 2);
  EXPECT_TRUE(drained);
  EXPECT_EQ(b.served(), 4U);
  EXPECT_EQ(record_.ListNodes().size(), 1U);
}

// Without waiting, however often.
TEST_F(NodeTest, APartitionThatIsMovedToAndFroIsServedAtOnce) {
  Process a(*this, "a", "1");
  Process b(*this, "b", "2");
  time_.RunFor(10'000);
  for (int i = 0; i < 6; ++i) {
    Process& target = i % 2 == 0 ? b : a;
    ASSERT_TRUE(record_.Want(0, i % 2 == 0 ? "b" : "a").ok());
    time_.RunFor(1000);
    EXPECT_TRUE(target.node.serves(0)) << i;
  }
}

// With nothing but looks: a frame is followed when the next one is there.
TEST_F(NodeTest, WhatOthersServeIsFollowedUpToTheLastFinalFrame) {
  Process a(*this, "a", "1");
  time_.RunFor(2000);
  Process b(*this, "b", "2");
  time_.RunFor(10'000);
  EXPECT_TRUE(a.host.follows.empty());
  const auto append = [&](std::uint64_t frames) {
    for (store::Partition i = 0; i < 4; ++i) {
      const store::PartitionState state = record_.ListPartitions()[i];
      for (std::uint64_t n = 1; n <= frames; ++n) {
        ASSERT_TRUE(record_.Append(state.claim(), 0, state.last_sequence + n, "x").ok());
      }
    }
    time_.RunFor(2000);
  };
  append(1);
  EXPECT_TRUE(a.host.follows.empty());
  append(4);
  ASSERT_EQ(a.host.follows.size(), 2U);
  ASSERT_EQ(b.host.follows.size(), 2U);
  for (const auto& [partition, last] : a.host.follows) {
    EXPECT_TRUE(b.node.serves(partition));
    EXPECT_EQ(last, 4U);
  }
  // One that leaves follows nothing any more.
  b.node.Drain([] {});
  time_.RunFor(2000);
  EXPECT_TRUE(b.host.follows.empty());
  EXPECT_TRUE(a.host.follows.empty());
  EXPECT_EQ(a.served(), 4U);
}

// And not one of those that would have to catch up first, however fast they are.
TEST_F(NodeTest, WhoFollowsTakesOver) {
  store::SimulatedRecord record(1, time_);
  std::vector<std::unique_ptr<Process>> nodes;
  const auto start = [&](std::size_t i) {
    return std::make_unique<Process>(*this, record, std::to_string(i), std::to_string(processes_));
  };
  for (std::size_t i = 0; i < 4; ++i) nodes.push_back(start(i));
  time_.RunFor(5000);
  const auto find = [&](const auto& is) {
    return static_cast<std::size_t>(std::ranges::find_if(nodes, is) - nodes.begin());
  };
  for (int round = 0; round < 8; ++round) {
    const store::PartitionState state = record.ListPartitions()[0];
    for (std::uint64_t n = 1; n <= 3; ++n) {
      ASSERT_TRUE(record.Append(state.claim(), 0, state.last_sequence + n, "x").ok());
    }
    time_.RunFor(2000);
    const std::size_t owner = find([](const auto& node) { return node->node.serves(0); });
    const std::size_t standby = find([](const auto& node) { return !node->host.follows.empty(); });
    ASSERT_LT(std::max(owner, standby), nodes.size());
    nodes[owner].reset();
    time_.RunFor(kLeaseMs + 100);
    EXPECT_TRUE(nodes[standby]->node.serves(0)) << round;
    nodes[owner] = start(owner);
    time_.RunFor(5000);
  }
}

// The head start ends, whatever becomes of the one that has it.
TEST_F(NodeTest, AStandbyThatDoesNotTakeOverIsNotWaitedForForLong) {
  store::SimulatedRecord record(1, time_);
  auto owner = std::make_unique<Process>(*this, record, "a", "1");
  time_.RunFor(2000);
  auto standby = std::make_unique<Process>(*this, record, "b", "2");
  for (std::uint64_t n = 1; n <= 3; ++n) {
    ASSERT_TRUE(record.Append(record.ListPartitions()[0].claim(), 0, n, "x").ok());
  }
  time_.RunFor(2000);
  Process other(*this, record, "c", "3");
  time_.RunFor(2000);
  ASSERT_FALSE(standby->host.follows.empty());
  // It says that it lives, and takes nothing.
  const auto all = record.ListNodes();
  const auto zombie = std::ranges::find(all, "b", &store::NodeState::name);
  ASSERT_NE(zombie, all.end());
  owner.reset();
  standby.reset();
  for (int i = 0; i < 45; ++i) {
    ASSERT_TRUE(record.KeepNode(*zombie, kLeaseMs).ok());
    time_.RunFor(100);
  }
  EXPECT_TRUE(other.node.serves(0));
}

TEST_F(NodeTest, ALeaseThatEndsIsNoticedThen) {
  Process a(*this, "a", "1");
  time_.RunFor(5000);
  auto b = std::make_unique<Process>(*this, "b", "2");
  time_.RunFor(10'000);
  b.reset();  // a quarter of a second after its last sign of life, and as long before the next look
  time_.RunFor(kLeaseMs - 200);
  EXPECT_EQ(a.served(), 4U);
}

TEST_F(NodeTest, WhatCannotBeServedIsGivenToOthers) {
  Process a(*this, "a", "1");
  a.host.outcome = Status::IoError("the disk is full");
  time_.RunFor(10'000);
  EXPECT_EQ(a.served(), 0U);
  EXPECT_NE(a.lines.find("cannot serve partition 0: the disk is full"), std::string::npos);
  EXPECT_LT(a.host.opened, 20);  // it does not try all the time
  a.host.outcome = {};
  time_.RunFor(2 * kLeaseMs);
  EXPECT_EQ(a.served(), 4U);
}

TEST_F(NodeTest, ARecordThatIsAwayIsAProblemUntilItIsBack) {
  Process a(*this, "a", "1");
  time_.RunFor(2000);
  EXPECT_EQ(a.node.problem(), "");
  a.log.faults.cut = true;
  time_.RunFor(60'000);
  EXPECT_NE(a.node.problem(), "");
  EXPECT_EQ(a.served(), 4U);  // nobody has taken them
  a.log.faults.cut = false;
  time_.RunFor(5000);
  EXPECT_EQ(a.node.problem(), "");
  EXPECT_EQ(a.served(), 4U);
}

// Or a takeover would wait until all of them are worked off. When they come late the leases are
// over already: they are said again then, and not with the next look.
TEST(NodeOutageTest, SignsOfLifeDoNotPileUp) {
  InstantLog log(1);
  VirtualTime time;
  IdleHost host;
  Node node(log, time, host,
            {.name = "a", .url = "http://a", .instance = "1", .lease_ms = kLeaseMs});
  node.Start();
  time.RunFor(2000);
  ASSERT_TRUE(node.serves(0));
  log.HoldSigns();
  time.RunFor(60'000);
  EXPECT_EQ(log.held_signs(), 2U);  // the node's and its claim's
  const std::size_t before = log.signs();
  log.LetSignsGo();
  time.RunFor(2);
  EXPECT_EQ(log.signs(), before + 2);
  EXPECT_TRUE(node.serves(0));
}

}  // namespace
}  // namespace codband::cluster
