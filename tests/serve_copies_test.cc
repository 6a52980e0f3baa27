// From one machine to a cluster and back, and backups of a cluster.
#include <gtest/gtest.h>

#include <array>
#include <map>

#include "codband/base/file.h"
#include "tests/serve_partitions_testing.h"

namespace codband {
namespace {

class ServeCopiesTest : public ServePartitionsTest {
 protected:
  // Another database: the next nodes and commands are of it.
  void UseNewDatabase() {
    database_ += "_new";
    cluster::Psql("public").Run("CREATE DATABASE " + database_);
  }
  static void Learn(const std::vector<ServerProcess*>& nodes, int from, int to) {
    for (int i = from; i < to; ++i) {
      const std::string event = "event" + std::to_string(i);
      const auto ranked = RankFor(nodes, "user" + std::to_string(i % 12), event);
      ASSERT_EQ(ranked.status, 200U) << ranked.body;
      ASSERT_EQ(Reward(nodes, event), "accepted");
    }
  }
  // What is expected of the actions for everybody: mean and width of "a", then of "b".
  using Expectations = std::map<std::string, std::array<double, 4>>;
  static Expectations Expected(const std::vector<ServerProcess*>& nodes) {
    Expectations all;
    for (int i = 0; i < 14; ++i) {  // two of them are new
      const std::string user = "user" + std::to_string(i);
      const auto ranked = RankFor(nodes, user);
      EXPECT_EQ(ranked.status, 200U) << ranked.body;
      if (ranked.status != 200) return {};
      const Json reply = Json::parse(ranked.body);
      for (const Json& item : reply["ranking"]) {
        const std::size_t first = item["id"] == "a" ? 0 : 2;
        all[user][first] = item["mean"];
        all[user][first + 1] = item["width"];
      }
    }
    return all;
  }
};

TEST_F(ServeCopiesTest, FromOneServerToAClusterAndBackNothingIsLost) {
  settings_ = {"features.dimension=2", "log.level=warning"};
  flags_ = {};
  const auto data = root_ / "single";
  auto single = std::make_unique<ServerProcess>(data, settings_);
  ASSERT_TRUE(single->listens());
  Learn({single.get()}, 0, 60);
  ASSERT_EQ(Ask({single.get()}, "PUT", "/v1/items/x", R"({"features":[1,1]})").status, 204U);
  ASSERT_EQ(RankFor({single.get()}, "user1", "pending").status, 200U);
  const auto in_use = RunCluster("import --data " + data.string());
  EXPECT_EQ(in_use.exit_code, 1);
  EXPECT_NE(in_use.text.find("is in use"), std::string::npos) << in_use.text;
  const auto before = Expected({single.get()});
  ASSERT_EQ(single->Stop(SIGTERM), 0);

  const auto imported = RunCluster("import --data " + data.string());
  ASSERT_EQ(imported.exit_code, 0) << imported.text;
  const auto again = RunCluster("import --data " + data.string());
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_NE(again.text.find("the loop is not new"), std::string::npos) << again.text;
  auto a = StartNode("a");
  ASSERT_TRUE(a->listens());
  // It goes on to the bit, and a decision gets its reward there.
  EXPECT_EQ(Expected({a.get()}), before);
  EXPECT_EQ(Reward({a.get()}, "pending"), "accepted");
  EXPECT_EQ(Reward({a.get()}, "event7"), "duplicate");
  EXPECT_EQ(Ask({a.get()}, "GET", "/v1/items/x", "").status, 200U);
  Learn({a.get()}, 60, 80);
  const auto learned = Expected({a.get()});
  const auto models = Ask({a.get()}, "GET", "/v1/models", "").body;

  // While it serves.
  const auto back = root_ / "back";
  const auto exported = RunCluster("export --out " + back.string());
  ASSERT_EQ(exported.exit_code, 0) << exported.text;
  EXPECT_EQ(RunCluster("export --out " + back.string()).exit_code, 2);
  EXPECT_EQ(RunProgram("doctor --data " + back.string()).exit_code, 0);
  single = std::make_unique<ServerProcess>(back, settings_);
  ASSERT_TRUE(single->listens());
  EXPECT_EQ(Expected({single.get()}), learned);
  EXPECT_EQ(Ask({single.get()}, "GET", "/v1/models", "").body, models);
  EXPECT_EQ(Reward({single.get()}, "event70"), "duplicate");
}

TEST_F(ServeCopiesTest, ABackupOfAClusterIsRestoredIntoAnotherDatabase) {
  auto a = StartNode("a");
  auto b = StartNode("b");
  ASSERT_TRUE(a->listens() && b->listens());
  AwaitShares({a.get(), b.get()});
  Learn({a.get(), b.get()}, 0, 60);
  ASSERT_EQ(Ask({b.get()}, "PUT", "/v1/items/x", R"({"features":[1,1]})").status, 204U);
  const auto copy = (root_ / "copy").string();
  const auto backed_up = RunCluster("backup --out " + copy);
  ASSERT_EQ(backed_up.exit_code, 0) << backed_up.text;
  EXPECT_EQ(RunProgram("doctor --data " + copy + "/partition-2").exit_code, 0);
  EXPECT_EQ(RunCluster("backup --out " + copy).exit_code, 2);
  EXPECT_EQ(RunCluster("restore --from " + copy).exit_code, 2);  // this loop is not new
  a->Stop(SIGTERM);
  b->Stop(SIGTERM);

  UseNewDatabase();
  const auto restored = RunCluster("restore --from " + copy);
  ASSERT_EQ(restored.exit_code, 0) << restored.text;
  // With copies of the loop before, in which frames have the same numbers.
  EXPECT_TRUE(std::filesystem::exists(root_ / "a" / "loop"));
  std::filesystem::rename(root_ / "a", root_ / "c");
  auto c = StartNode("c");
  ASSERT_TRUE(c->listens());
  for (int user = 0; user < 12; ++user) {
    const auto report = Ask({c.get()}, "GET", "/v1/users/user" + std::to_string(user), "");
    EXPECT_EQ(Json::parse(report.body)["observations"], 5) << report.body;
  }
  for (int i = 0; i < 60; ++i) {
    EXPECT_EQ(Reward({c.get()}, "event" + std::to_string(i)), "duplicate") << i;
  }
  EXPECT_EQ(Ask({c.get()}, "GET", "/v1/items/x", "").status, 200U);
  // Partitions go on learning together.
  Learn({c.get()}, 60, 100);
  WaitFor([&] { return Metric(*c, "codband_pool_merges_total") > 0; });
  EXPECT_GT(Metric(*c, "codband_pool_merges_total"), 0);
  int observations = 0;
  WaitFor([&] {
    observations = 0;
    const Json models = Json::parse(Ask({c.get()}, "GET", "/v1/models", "").body);
    for (const Json& model : models["models"]) observations += model["observations"].get<int>();
    return observations == 100;
  });
  EXPECT_EQ(observations, 100);
}

// Partitions that share nothing go on to the bit.
TEST_F(ServeCopiesTest, EveryPartitionOfABackupGoesOnToTheBit) {
  settings_.push_back("policy.spec=linucb");
  auto a = StartNode("a");
  ASSERT_TRUE(a->listens());
  Learn({a.get()}, 0, 60);
  const auto copy = (root_ / "copy").string();
  ASSERT_EQ(RunCluster("backup --out " + copy).exit_code, 0);
  const auto learned = Expected({a.get()});
  UseNewDatabase();
  const auto restored = RunCluster("restore --from " + copy);
  ASSERT_EQ(restored.exit_code, 0) << restored.text;
  auto b = StartNode("b");
  ASSERT_TRUE(b->listens());
  EXPECT_EQ(Expected({b.get()}), learned);
}

TEST_F(ServeCopiesTest, WhatIsNoBackupIsRefused) {
  const auto expect = [&](const std::string& arguments, const std::string& text) {
    const auto outcome = RunCluster(arguments);
    EXPECT_NE(outcome.exit_code, 0) << arguments;
    EXPECT_NE(outcome.text.find(text), std::string::npos) << arguments << "\n" << outcome.text;
  };
  expect("restore --from " + root_.string(), "is no backup of a cluster");
  expect("import --data " + (root_ / "nothing").string(), "nothing");
  expect("export --out " + (root_ / "out").string(), "there is no loop");
  ASSERT_TRUE(WriteFileDurably(root_ / "loop", "something else entirely").ok());
  expect("restore --from " + root_.string(), "the file 'loop' of the backup");
}

}  // namespace
}  // namespace codband
