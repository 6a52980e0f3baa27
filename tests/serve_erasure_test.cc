// A user who is forgotten in a cluster is gone everywhere: from the log, the checkpoints, the
// pools, and from copies of nodes that had their partition before.
#include <gtest/gtest.h>

#include "tests/serve_partitions_testing.h"

namespace codband {
namespace {

class ServeErasureTest : public ServePartitionsTest {
 protected:
  static constexpr const char* kUser = "ada-lovelace-7731";

  ServeErasureTest() { settings_.push_back("durability.checkpoint_seconds=0.5"); }

  std::uint64_t CountRows(const std::string& table_and_condition) const {
    cluster::Psql psql("codband", database_);
    const std::string sql = "SELECT count(*) FROM " + table_and_condition;
    const cluster::Reply reply = psql.connection().Run({"count", sql.c_str()}, {});
    EXPECT_TRUE(reply.ok()) << reply.problem;
    return reply.ok() ? reply.rows.Number(0, 0) : 0;
  }
  std::uint64_t FramesAndBlobsOfUser() const {
    const std::string name = std::string("'") + kUser + "'::bytea";
    return CountRows("log WHERE position(" + name + " IN frame) > 0") +
           CountRows("blobs WHERE position(" + name + " IN bytes) > 0");
  }
  static void Visit(const std::vector<ServerProcess*>& nodes, const std::string& user, int visits) {
    for (int i = 0; i < visits; ++i) {
      const Json ranked = Json::parse(RankFor(nodes, user).body);
      const std::string event = ranked["eventId"];
      ASSERT_EQ(Ask(nodes, "POST", "/v1/events/" + event + "/reward",
                    ranked["rewardActionId"] == "a" ? R"({"value":1})" : R"({"value":0})")
                    .status,
                200U);
    }
  }
  // Rewards that the models were learned from, as the node sees the pool.
  static int Observations(ServerProcess& node) {
    int sum = 0;
    const Json models = Json::parse(Ask({&node}, "GET", "/v1/models", "").body);
    for (const Json& model : models["models"]) sum += model["observations"].get<int>();
    return sum;
  }
  static std::string StateOf(ServerProcess& node, const std::string& path) {
    const auto reply = Ask({&node}, "GET", path, "");
    EXPECT_EQ(reply.status, 200U) << reply.body;
    const Json json = Json::parse(reply.body, nullptr, false);
    return json.is_object() ? json["state"].get<std::string>() : reply.body;
  }
};

// The node that does not serve the partition any more does not follow it either: it has a copy that
// is left.
TEST_F(ServeErasureTest, NothingIsLeftOfAUserAnywhere) {
  flags_.push_back("--no-standby");
  auto a = StartNode("a");
  auto b = StartNode("b");
  ASSERT_TRUE(a->listens() && b->listens());
  AwaitShares({a.get(), b.get()});
  Visit({a.get(), b.get()}, kUser, 20);
  for (int i = 0; i < 8; ++i) Visit({a.get(), b.get()}, "user" + std::to_string(i), 5);
  WaitFor([&] { return Observations(*a) == 60 && Observations(*b) == 60; });
  EXPECT_EQ(Observations(*a), 60);
  // Both nodes have had the partition: one of them has a copy that it does not use any more.
  const std::string event = Json::parse(RankFor({a.get()}, kUser).body)["eventId"];
  const std::string partition = event.substr(event.find(".p") + 2);
  for (const std::string to : {"a", "b"}) {
    ASSERT_EQ(RunCluster("move --partition " + partition + " --to " + to).exit_code, 0);
  }
  const auto copy = root_ / "a" / ("partition-" + partition);
  EXPECT_TRUE(std::filesystem::exists(copy / "rocksdb"));
  WaitFor([&] { return FramesAndBlobsOfUser() > 0; });
  EXPECT_GT(FramesAndBlobsOfUser(), 0U);

  const auto forgotten = Ask({a.get()}, "DELETE", std::string("/v1/users/") + kUser, "");
  ASSERT_EQ(forgotten.status, 202U) << forgotten.body;
  const std::string path = Json::parse(forgotten.body)["status"];
  EXPECT_EQ(StateOf(*a, path), "erasing");
  EXPECT_EQ(Ask({b.get()}, "GET", std::string("/v1/users/") + kUser, "").status, 404U);
  for (int i = 0; i < 600 && StateOf(*b, path) != "erased"; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  ASSERT_EQ(StateOf(*a, path), "erased") << Ask({a.get()}, "GET", path, "").body;
  EXPECT_EQ(FramesAndBlobsOfUser(), 0U);
  EXPECT_EQ(Observations(*a), 40);
  EXPECT_EQ(Observations(*b), 40);
  WaitFor([&] { return !std::filesystem::exists(copy / "rocksdb"); });
  EXPECT_FALSE(std::filesystem::exists(copy / "rocksdb"));
  // The node can take it up again.
  ASSERT_EQ(RunCluster("move --partition " + partition + " --to a").exit_code, 0);
  EXPECT_EQ(Ask({a.get()}, "GET", std::string("/v1/users/") + kUser, "").status, 404U);
  EXPECT_EQ(RankFor({a.get()}, kUser).status, 200U);
}

TEST_F(ServeErasureTest, AnUnknownErasureIsNotFound) {
  auto a = StartNode("a");
  ASSERT_TRUE(a->listens());
  for (const char* id : {"0.999999", "7.1", "x", "1.", "0.0", "-1.2"}) {
    EXPECT_EQ(Ask({a.get()}, "GET", std::string("/v1/erasures/") + id, "").status, 404U) << id;
  }
}

}  // namespace
}  // namespace codband
