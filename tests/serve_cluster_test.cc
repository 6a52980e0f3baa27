// Real nodes on a real PostgreSQL: one is killed or stopped, the others go on, and nothing that was
// acknowledged is lost.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/postgres_testing.h"
#include "tests/server_process.h"

namespace codband {
namespace {

using Json = nlohmann::json;

class ServeClusterTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ =
        std::filesystem::path("/dev/shm") / ("codband_serve_cluster_" + std::to_string(getpid()));
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
    // Every test has a database of its own: the loop is always called the same.
    static int count = 0;
    database_ = "serve" + std::to_string(++count);
    cluster::Psql("public").Run("CREATE DATABASE " + database_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::unique_ptr<ServerProcess> StartNode(const std::string& name) const {
    return std::make_unique<ServerProcess>(
        root_ / name, std::vector<std::string>{"policy.spec=linucb"}, "true",
        std::vector<std::string>{"--cluster", PostgresServer::Shared().Dsn(database_), "--name",
                                 name});
  }

  // Asks one of the nodes until it gets an answer that is no error of the moment.
  static server::HttpReply Ask(const std::vector<ServerProcess*>& nodes, const std::string& method,
                               const std::string& target, const std::string& body) {
    for (int i = 0; i < 2000; ++i) {
      if (const auto client = nodes[static_cast<std::size_t>(i) % nodes.size()]->Connect()) {
        const auto reply =
            client->Send({.method = method, .target = target, .body = body}, kPatience);
        if (reply.ok() && reply.value().status != 503) return reply.value();
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    ADD_FAILURE() << target << ": no answer";
    return {};
  }
  static server::HttpReply Rank(const std::vector<ServerProcess*>& nodes,
                                const std::string& event) {
    return Ask(nodes, "POST", "/v1/rank",
               R"({"eventId":")" + event + R"(","userId":"u)" + event.substr(event.size() - 1) +
                   R"(","actions":[{"id":"a","features":[1,0]},{"id":"b","features":[0,1]}]})");
  }
  static std::string Reward(const std::vector<ServerProcess*>& nodes, const std::string& event) {
    const auto reply = Ask(nodes, "POST", "/v1/events/" + event + "/reward", R"({"value":1})");
    const Json json = Json::parse(reply.body, nullptr, false);
    return json.is_object() && json.contains("status") ? json["status"].get<std::string>()
                                                       : reply.body;
  }

  std::filesystem::path root_;
  std::string database_;
};

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

}  // namespace
}  // namespace codband
