// From one machine to a cluster and back, and backups of a cluster.
#include <gtest/gtest.h>
#include <signal.h>

#include <array>
#include <map>

#include "codband/base/file.h"
#include "codband/cluster/postgres/postgres_log.h"
#include "tests/serve_partitions_testing.h"

namespace codband {
namespace {

class ServeCopiesTest : public ServePartitionsTest {
 protected:
  // Another database: the next nodes and commands are of it.
  void UseNewDatabase() {
    database_ += "_new";
    cluster::Psql("public").Run("CREATE DATABASE " + database_);
    dsn_ = PostgresServer::Shared().Dsn(database_);
  }
  static void Learn(const std::vector<ServerProcess*>& nodes, int from, int to) {
    for (int i = from; i < to; ++i) {
      const std::string event = "event" + std::to_string(i);
      const auto ranked = RankFor(nodes, "user" + std::to_string(i % 12), event);
      ASSERT_EQ(ranked.status, 200U) << ranked.body;
      ASSERT_EQ(Reward(nodes, event), "accepted");
    }
  }
  // Rewards of each user as the nodes know them.
  static std::map<std::string, int> Observations(const std::vector<ServerProcess*>& nodes) {
    std::map<std::string, int> all;
    for (int i = 0; i < 12; ++i) {
      const std::string user = "user" + std::to_string(i);
      const auto reply = Ask(nodes, "GET", "/v1/users/" + user, "");
      const Json report = Json::parse(reply.body, nullptr, false);
      all[user] = report.contains("observations") ? report["observations"].get<int>() : -1;
    }
    return all;
  }
  // What the models of all were learned from, as one partition of the node sees it.
  static int Learned(const std::vector<ServerProcess*>& nodes) {
    int sum = 0;
    const Json models = Json::parse(Ask(nodes, "GET", "/v1/models", "").body);
    for (const Json& model : models["models"]) sum += model["observations"].get<int>();
    return sum;
  }
  // A command that goes on by itself.
  pid_t StartCluster(const std::string& arguments) const {
    const std::string command = std::string(CODBAND_PROGRAM) + " cluster " + arguments +
                                " --cluster '" + dsn_ + "' >/dev/null 2>&1 & echo $!";
    std::FILE* const pipe = ::popen(command.c_str(), "r");
    char buffer[32] = {};
    EXPECT_NE(std::fgets(buffer, sizeof(buffer), pipe), nullptr);
    ::pclose(pipe);
    return static_cast<pid_t>(std::stol(buffer));
  }
  std::uint64_t Count(const std::string& table_and_condition) const {
    cluster::Psql psql("codband", database_);
    const std::string sql = "SELECT count(*) FROM " + table_and_condition;
    const cluster::Reply reply = psql.connection().Run({"count", sql.c_str()}, {});
    EXPECT_TRUE(reply.ok()) << reply.problem;
    return reply.ok() ? reply.rows.Number(0, 0) : 0;
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
  // A server has learned and was stopped; `expected` is what it expected last.
  std::filesystem::path MakeSingle(Expectations* expected = nullptr) {
    const auto data = root_ / "single";
    ServerProcess single(data, settings_);
    EXPECT_TRUE(single.listens());
    Learn({&single}, 0, 120);
    EXPECT_EQ(Ask({&single}, "PUT", "/v1/items/x", R"({"features":[1,1]})").status, 204U);
    EXPECT_EQ(RankFor({&single}, "user1", "pending").status, 200U);
    if (expected != nullptr) *expected = Expected({&single});
    EXPECT_EQ(single.Stop(SIGTERM), 0);
    return data;
  }

  static void ExpectNear(const Expectations& one, const Expectations& other) {
    ASSERT_EQ(one.size(), other.size());
    for (const auto& [user, means] : other) {
      for (std::size_t i = 0; i < means.size(); ++i) {
        EXPECT_NEAR(one.at(user)[i], means[i], 0.1) << user;
      }
    }
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

TEST_F(ServeCopiesTest, FromOneServerToSeveralPartitionsAndBackNothingIsLost) {
  settings_ = {"features.dimension=2", "log.level=warning", "durability.checkpoint_seconds=0.5"};
  flags_ = {};
  Expectations before;
  const auto data = MakeSingle(&before);
  const auto imported = RunCluster("import --partitions 4 --data " + data.string());
  ASSERT_EQ(imported.exit_code, 0) << imported.text;
  EXPECT_NE(imported.text.find("4 partitions"), std::string::npos) << imported.text;
  EXPECT_FALSE(std::filesystem::exists(root_ / "single.importing"));
  const auto again = RunCluster("import --partitions 4 --data " + data.string());
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_NE(again.text.find("the loop is not new"), std::string::npos) << again.text;
  auto a = StartNode("a");
  auto b = StartNode("b");
  ASSERT_TRUE(a->listens() && b->listens());
  AwaitShares({a.get(), b.get()});
  const std::vector<ServerProcess*> nodes{a.get(), b.get()};
  for (const auto& [user, count] : Observations(nodes)) EXPECT_EQ(count, 10) << user;
  // The first pools after it may lack who has not published yet.
  WaitFor([&] { return Learned({a.get()}) == 120 && Learned({b.get()}) == 120; });
  EXPECT_EQ(Learned({a.get()}), 120);
  EXPECT_EQ(Learned({b.get()}), 120);
  // The merger learns the prior once more with its first pool: what is expected is nearly the same.
  ExpectNear(Expected(nodes), before);
  EXPECT_EQ(Reward(nodes, "pending"), "accepted");
  EXPECT_EQ(Reward(nodes, "event7"), "duplicate");
  EXPECT_EQ(Ask(nodes, "GET", "/v1/items/x", "").status, 200U);
  Learn(nodes, 120, 156);
  WaitFor([&] { return Learned({a.get()}) == 157 && Learned({b.get()}) == 157; });
  EXPECT_EQ(Learned({a.get()}), 157);
  // Who is forgotten is taken out everywhere.
  const auto forgotten = Ask(nodes, "DELETE", "/v1/users/user3", "");
  ASSERT_EQ(forgotten.status, 202U) << forgotten.body;
  const std::string path = Json::parse(forgotten.body)["status"];
  std::string state;
  WaitFor([&] {
    state = Json::parse(Ask(nodes, "GET", path, "").body)["state"];
    return state == "erased";
  });
  EXPECT_EQ(state, "erased");
  EXPECT_EQ(Learned({a.get()}), 144);
  EXPECT_EQ(Learned({b.get()}), 144);
  const auto known = Observations(nodes);

  // While they serve.
  const auto back = root_ / "back";
  const auto exported = RunCluster("export --out " + back.string());
  ASSERT_EQ(exported.exit_code, 0) << exported.text;
  EXPECT_EQ(RunProgram("doctor --data " + back.string()).exit_code, 0);
  const auto learned = Expected(nodes);
  ServerProcess single(back, settings_);
  ASSERT_TRUE(single.listens());
  EXPECT_EQ(Observations({&single}), known);
  EXPECT_EQ(Learned({&single}), 144);
  EXPECT_EQ(Reward({&single}, "event150"), "duplicate");
  EXPECT_EQ(Ask({&single}, "GET", "/v1/items/x", "").status, 200U);
  ExpectNear(Expected({&single}), learned);
  Learn({&single}, 200, 230);
  EXPECT_EQ(Learned({&single}), 174);
}

// The process dies while it writes: no node takes what is there, and the command can be repeated.
TEST_F(ServeCopiesTest, AnImportThatWasKilledIsRepeated) {
  const auto data = MakeSingle();
  ASSERT_TRUE(cluster::OpenPostgresLog({.dsns = {dsn_}, .partitions = 4}).ok());
  {
    // Nothing can be written into this table: the import waits for it.
    cluster::Psql lock("codband", database_);
    lock.Run("BEGIN; LOCK TABLE blobs IN ACCESS EXCLUSIVE MODE");
    const pid_t import = StartCluster("import --partitions 4 --data " + data.string());
    WaitFor([&] { return Count("shared_log") > 1 && Count("partitions WHERE epoch > 0") == 4; });
    ASSERT_EQ(::kill(import, SIGKILL), 0);
    lock.Run("ROLLBACK");
  }
  EXPECT_EQ(Count("partitions WHERE owner = '(restore)'"), 4U);
  const auto busy = RunCluster("import --partitions 4 --data " + data.string());
  EXPECT_EQ(busy.exit_code, 1);
  EXPECT_NE(busy.text.find("try again in 30 s"), std::string::npos) << busy.text;
  cluster::Psql("codband", database_).Run("UPDATE partitions SET lease_until = clock_timestamp()");
  auto a = StartNode("a");
  ASSERT_TRUE(a->listens());
  std::this_thread::sleep_for(std::chrono::seconds(4));  // longer than nodes wait for a lease
  EXPECT_EQ(Count("partitions WHERE owner = 'a'"), 0U);
  // Something else does not go there.
  const auto other = root_ / "other";
  {
    ServerProcess single(other, settings_);
    ASSERT_TRUE(single.listens());
    Learn({&single}, 0, 12);
    single.Stop(SIGTERM);
  }
  const auto refused = RunCluster("import --partitions 4 --data " + other.string());
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.text.find("is something else"), std::string::npos) << refused.text;
  cluster::Psql("codband", database_).Run("UPDATE partitions SET lease_until = clock_timestamp()");
  const auto repeated = RunCluster("import --partitions 4 --data " + data.string());
  ASSERT_EQ(repeated.exit_code, 0) << repeated.text;
  AwaitShares({a.get()});
  for (const auto& [user, count] : Observations({a.get()})) EXPECT_EQ(count, 10) << user;
  WaitFor([&] { return Learned({a.get()}) == 120; });
  EXPECT_EQ(Learned({a.get()}), 120);
  EXPECT_EQ(Reward({a.get()}, "pending"), "accepted");
}

TEST_F(ServeCopiesTest, ABackupIsRestoredIntoAnotherNumberOfPartitions) {
  settings_.push_back("durability.checkpoint_seconds=0.5");
  auto a = StartNode("a");
  ASSERT_TRUE(a->listens());
  Learn({a.get()}, 0, 60);
  WaitFor([&] { return Ask("min(first_sequence)") > 1; });  // every partition has a checkpoint
  std::vector<std::string> waiting;
  for (int i = 0; i < 12; ++i) {
    const auto ranked = RankFor({a.get()}, "user" + std::to_string(i));
    waiting.push_back(Json::parse(ranked.body)["eventId"]);
  }
  const auto copy = (root_ / "copy").string();
  ASSERT_EQ(RunCluster("backup --out " + copy).exit_code, 0);
  a->Stop(SIGTERM);
  UseNewDatabase();
  flags_ = {};
  const auto wrong = RunCluster("restore --partitions none --from " + copy);
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.text.find("--partitions is 'none'"), std::string::npos) << wrong.text;
  const auto restored = RunCluster("restore --partitions 8 --from " + copy);
  ASSERT_EQ(restored.exit_code, 0) << restored.text;
  EXPECT_EQ(Count("partitions"), 8U);
  auto b = StartNode("b");
  auto c = StartNode("c");
  ASSERT_TRUE(b->listens() && c->listens());
  const std::vector<ServerProcess*> nodes{b.get(), c.get()};
  for (const auto& [user, count] : Observations(nodes)) EXPECT_EQ(count, 5) << user;
  // Their ids say which partition of four has made them.
  for (const std::string& event : waiting) EXPECT_EQ(Reward(nodes, event), "accepted") << event;
  EXPECT_EQ(Reward(nodes, "event59"), "duplicate");
  WaitFor([&] { return Learned({b.get()}) == 72 && Learned({c.get()}) == 72; });
  EXPECT_EQ(Learned({b.get()}), 72);
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
