// Real nodes on a real PostgreSQL: one is killed or stopped, the others go on, and nothing that was
// acknowledged is lost.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "codband/base/file.h"
#include "tests/cluster_traffic.h"
#include "tests/serve_cluster_testing.h"

namespace codband {
namespace {

TEST_F(ServeClusterTest, AKilledNodeIsReplacedAndNothingAcknowledgedIsLost) {
  auto a = StartNode("a");
  auto b = StartNode("b");
  ASSERT_TRUE(a->listens() && b->listens());
  std::vector<std::string> acknowledged;
  int number = 0;
  const auto work = [&](const std::vector<ServerProcess*>& nodes, int count) {
    for (int i = 0; i < count; ++i) {
      const std::string event = "event" + std::to_string(++number);
      const auto ranked = Rank(nodes, event);
      ASSERT_TRUE(ranked.status == 200 || ranked.status == 201) << ranked.body;
      const std::string outcome = Reward(nodes, event);
      // One that was killed may have taken it without an answer.
      ASSERT_TRUE(outcome == "accepted" || outcome == "duplicate") << outcome;
      acknowledged.push_back(event);
    }
  };
  // Whichever node is asked, the owner answers.
  work({a.get(), b.get()}, 20);
  for (int i = 0; i < 2; ++i) {
    // Both, one after the other: one of them is the owner.
    std::unique_ptr<ServerProcess>& killed = i == 0 ? a : b;
    ServerProcess& other = i == 0 ? *b : *a;
    killed->Stop(SIGKILL);
    work({&other}, 20);
    killed = StartNode(i == 0 ? "a" : "b");
    ASSERT_TRUE(killed->listens());
    work({a.get(), b.get()}, 10);
  }
  for (const std::string& event : acknowledged) {
    EXPECT_EQ(Reward({a.get(), b.get()}, event), "duplicate") << event;
  }
}

// The other node has the owner's frames and has learned along: it says so, and goes on from there.
TEST_F(ServeClusterTest, AStandbyFollowsTheOwnerAndTakesOver) {
  settings_.back() = "log.level=info";
  auto a = StartNode("a");
  ASSERT_TRUE(a->listens());
  ASSERT_EQ(Rank({a.get()}, "event0").status / 100, 2U);
  const std::filesystem::path lines = root_ / "b.log";
  auto b =
      std::make_unique<ServerProcess>(root_ / "b", settings_, "exec 2>" + lines.string(),
                                      std::vector<std::string>{"--cluster", dsn_, "--name", "b"});
  ASSERT_TRUE(b->listens());
  for (int i = 1; i < 30; ++i) {
    const std::string event = "event" + std::to_string(i);
    ASSERT_EQ(Rank({a.get()}, event).status / 100, 2U);
    ASSERT_EQ(Reward({a.get()}, event), "accepted");
  }
  // All frames but the last, which is not final yet.
  const std::uint64_t frames = Ask("last_sequence") - 1;
  cluster::WaitUntil([&] { return FollowedBy("b") >= frames; });
  EXPECT_GE(FollowedBy("b"), frames);
  EXPECT_EQ(FollowedBy("a"), 0U);
  const std::string metrics = Ask({b.get()}, "GET", "/metrics", "").body;
  EXPECT_NE(metrics.find("\ncodband_cluster_partitions_followed 1\n"), std::string::npos);
  EXPECT_NE(metrics.find("\ncodband_cluster_partitions_here 0\n"), std::string::npos);
  a->Stop(SIGKILL);
  EXPECT_EQ(Reward({b.get()}, "event0"), "accepted");
  EXPECT_NE(ReadFile(lines).value().find("partition 0: it was followed up to frame"),
            std::string::npos);
  EXPECT_EQ(Reward({b.get()}, "event29"), "duplicate");
  const auto user = Ask({b.get()}, "GET", "/v1/users/u3", "");
  EXPECT_EQ(Json::parse(user.body)["observations"], 3) << user.body;
  // The next standby begins with what the log and its checkpoint have.
  auto c = StartNode("c");
  ASSERT_TRUE(c->listens());
  cluster::WaitUntil([&] { return FollowedBy("c") >= frames; });
  EXPECT_GE(FollowedBy("c"), frames);
  EXPECT_EQ(b->Stop(SIGTERM), 0);
  EXPECT_EQ(Reward({c.get()}, "event0"), "duplicate");
}

// The owner sleeps while another node takes over. When it wakes up it finds a request in its
// socket.
TEST_F(ServeClusterTest, AnOwnerThatWasAsleepAcknowledgesNothing) {
  auto a = StartNode("a");
  ASSERT_TRUE(a->listens());
  ASSERT_EQ(Rank({a.get()}, "event1").status / 100, 2U);
  ASSERT_EQ(Rank({a.get()}, "event2").status / 100, 2U);
  auto b = StartNode("b");
  ASSERT_TRUE(b->listens());
  auto client = a->Connect();
  ASSERT_NE(client, nullptr);
  a->Freeze();
  std::string answer;
  std::thread sender([&] {
    const auto reply = client->Send(
        {.method = "POST", .target = "/v1/events/event1/reward", .body = R"({"value":1})"},
        kPatience);
    answer = reply.ok() ? reply.value().body : "none";
  });
  EXPECT_EQ(Reward({b.get()}, "event1"), "accepted");
  a->Signal(SIGCONT);
  sender.join();
  EXPECT_EQ(answer.find("accepted"), std::string::npos) << answer;
  EXPECT_EQ(Reward({a.get()}, "event2"), "accepted");  // passed on
  EXPECT_EQ(Reward({b.get()}, "event2"), "duplicate");
}

// What the log no longer has is in the checkpoint, for nodes that have lost or never had a copy.
TEST_F(ServeClusterTest, ANodeWithoutACopyBeginsWithTheCheckpoint) {
  auto a = StartNode("a");
  ASSERT_TRUE(a->listens());
  for (int i = 0; i < 30; ++i) {
    const std::string event = "event" + std::to_string(i);
    ASSERT_EQ(Rank({a.get()}, event).status / 100, 2U);
    ASSERT_EQ(Reward({a.get()}, event), "accepted");
  }
  cluster::WaitUntil([&] { return Ask("first_sequence") > 50; });
  EXPECT_GT(Ask("first_sequence"), 50U);
  EXPECT_EQ(a->Stop(SIGTERM), 0);
  std::filesystem::remove_all(root_ / "a");
  a = StartNode("a");
  ASSERT_TRUE(a->listens());
  for (int i = 0; i < 30; ++i) {
    EXPECT_EQ(Reward({a.get()}, "event" + std::to_string(i)), "duplicate") << i;
  }
  const auto user = Ask({a.get()}, "GET", "/v1/users/u3", "");
  EXPECT_EQ(user.status, 200U) << user.body;
  EXPECT_EQ(Json::parse(user.body)["observations"], 3) << user.body;
}

TEST_F(ServeClusterTest, ANodeThatIsStoppedHandsItsPartitionsOver) {
  auto a = StartNode("a");
  ASSERT_TRUE(a->listens());
  ASSERT_EQ(Rank({a.get()}, "event1").status / 100, 2U);
  auto b = StartNode("b");
  ASSERT_TRUE(b->listens());
  EXPECT_EQ(a->Stop(SIGTERM), 0);
  // Without waiting for a lease to end.
  EXPECT_EQ(Reward({b.get()}, "event1"), "accepted");
}

// Requests are on their way to a node that gives its partition up, to the very node that they came
// from.
TEST_F(ServeClusterTest, HandingOverGarblesNoAnswer) {
  std::array<std::unique_ptr<ServerProcess>, 2> nodes = {StartNode("a"), StartNode("b")};
  ASSERT_TRUE(nodes[0]->listens() && nodes[1]->listens());
  std::atomic<std::uint16_t> asked = nodes[1]->port();
  ClusterTraffic traffic(4, [&] { return std::vector<std::uint16_t>{asked}; });
  for (std::size_t i = 0; i < 6; ++i) {
    const std::size_t leaving = i % 2;
    traffic.Await(20);
    EXPECT_EQ(nodes[leaving]->Stop(SIGTERM), 0);
    traffic.AwaitAllClients();
    nodes[leaving] = StartNode(leaving == 0 ? "a" : "b");
    ASSERT_TRUE(nodes[leaving]->listens());
    asked = nodes[leaving]->port();
  }
  traffic.Stop();
  traffic.ExpectNothingLostOrDoubled();
}

}  // namespace
}  // namespace codband
