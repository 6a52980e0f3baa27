// Real nodes in trouble with the database or with each other: a clear message, nothing lost, and it
// goes on when the cause is gone.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/cluster_traffic.h"
#include "tests/cuttable_link.h"
#include "tests/serve_cluster_testing.h"
#include "tests/small_disk.h"

namespace codband {
namespace {

class ServeClusterTroubleTest : public ServeClusterTest {
 protected:
  ServeClusterTroubleTest() { settings_ = {"durability.checkpoint_events=50"}; }

  // A node whose lines can be read.
  std::unique_ptr<ServerProcess> StartNodeWithLog(const std::string& name) const {
    return StartNodeWithLog(name, name);
  }
  std::unique_ptr<ServerProcess> StartNodeWithLog(const std::string& name,
                                                  const std::string& folder) const {
    return std::make_unique<ServerProcess>(
        root_ / folder, settings_, "exec 2>>" + (root_ / (folder + ".log")).string(),
        std::vector<std::string>{"--cluster", dsn_, "--name", name});
  }
  // Whether the node wrote a line with this text; waits for it.
  bool Says(const std::string& folder, const std::string& text) const {
    for (int i = 0; i < 3000; ++i) {
      std::ifstream file(root_ / (folder + ".log"));
      const std::string lines((std::istreambuf_iterator<char>(file)), {});
      if (lines.find(text) != lines.npos) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
  // What `codband serve` prints before it ends.
  std::string OutputOf(const std::string& dsn, int exit_code) const {
    const std::string command = std::string(CODBAND_PROGRAM) + " serve --data " +
                                (root_ / "refused").string() + " --listen 127.0.0.1:0 --cluster '" +
                                dsn + "' --name x 2>&1";
    std::FILE* const pipe = ::popen(command.c_str(), "r");
    std::string text;
    char buffer[512];
    while (std::fgets(buffer, sizeof(buffer), pipe) != nullptr) text += buffer;
    const int status = ::pclose(pipe);
    EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, exit_code) << text;
    return text;
  }
  // One request, whatever the answer is.
  static server::HttpReply AskOnce(const ServerProcess& node, const std::string& event) {
    const auto client = node.Connect();
    EXPECT_NE(client, nullptr);
    if (client == nullptr) return {};
    const auto reply = client->Send(
        {.method = "POST", .target = "/v1/events/" + event + "/reward", .body = R"({"value":1})"},
        kPatience);
    return reply.ok() ? reply.value() : server::HttpReply{};
  }
  // Whether the node says that it is not ready, for want of space.
  static bool HasNoSpace(const ServerProcess& node) {
    const auto client = node.Connect();
    if (client == nullptr) return false;
    const auto reply = client->Send({.target = "/v1/health/ready"}, kPatience);
    return reply.ok() && reply.value().status == 503 &&
           reply.value().body.find("No space left on device") != std::string::npos;
  }
  void Own(PostgresServer& server) {
    cluster::Psql({.dsn = server.Dsn(), .schema = "public"}).Run("CREATE DATABASE loop");
    dsn_ = server.Dsn("loop");
  }
};

// Nothing gets from the owner to the database and back, but clients still reach it.
TEST_F(ServeClusterTroubleTest, AnOwnerThatIsCutOffAcknowledgesNothing) {
  const std::string direct = dsn_;
  CuttableLink link(root_ / "link", PostgresServer::Shared().directory());
  dsn_ = "host=" + (root_ / "link").string() + " user=codband dbname=" + database_;
  auto a = StartNodeWithLog("a");
  ASSERT_TRUE(a->listens());
  ASSERT_EQ(Rank({a.get()}, "event1").status / 100, 2U);
  ASSERT_EQ(Rank({a.get()}, "event2").status / 100, 2U);
  dsn_ = direct;
  auto b = StartNodeWithLog("b");
  ASSERT_TRUE(b->listens());
  link.Cut();
  std::string answer;
  std::thread sender([&] { answer = AskOnce(*a, "event1").body; });
  EXPECT_EQ(Reward({b.get()}, "event1"), "accepted");
  link.Mend();
  sender.join();
  EXPECT_EQ(answer.find("accepted"), std::string::npos) << answer;
  EXPECT_TRUE(Says("a", "was taken over by another node"));
  EXPECT_EQ(Reward({a.get()}, "event2"), "accepted");  // passed on
  EXPECT_EQ(Reward({b.get()}, "event2"), "duplicate");
  EXPECT_EQ(Json::parse(Ask({b.get()}, "GET", "/v1/users/u1", "").body)["observations"], 1);
}

TEST_F(ServeClusterTroubleTest, WithoutTheDatabaseItRefusesAndGoesOnWhenItIsBack) {
  PostgresServer server;
  Own(server);
  auto a = StartNodeWithLog("a");
  ASSERT_TRUE(a->listens());
  ASSERT_EQ(Rank({a.get()}, "event1").status / 100, 2U);
  ASSERT_EQ(Rank({a.get()}, "event2").status / 100, 2U);
  ASSERT_EQ(Reward({a.get()}, "event1"), "accepted");
  server.Kill();
  // It may have been written when the connection broke: then it waits until it knows.
  std::string answer;
  std::thread sender([&] { answer = AskOnce(*a, "event2").body; });
  EXPECT_TRUE(Says("a", "cannot connect to PostgreSQL"));
  EXPECT_TRUE(Says("a", "nothing that was acknowledged is lost; it is tried again"));
  const std::string refused = OutputOf(dsn_, 6);
  EXPECT_NE(refused.find("cannot connect to PostgreSQL"), std::string::npos) << refused;
  server.Start();
  sender.join();
  EXPECT_TRUE(Says("a", "PostgreSQL answers again"));
  EXPECT_EQ(Reward({a.get()}, "event1"), "duplicate");
  const std::string second = Reward({a.get()}, "event2");
  EXPECT_EQ(second, answer.find("accepted") == answer.npos ? "accepted" : "duplicate");
  EXPECT_EQ(Json::parse(Ask({a.get()}, "GET", "/v1/users/u2", "").body)["observations"], 1);
}

TEST_F(ServeClusterTroubleTest, AWrongConnectionStringIsRefusedWithAReason) {
  const std::string host = "host=" + PostgresServer::Shared().directory().string();
  EXPECT_NE(OutputOf("host=/nowhere dbname=x", 6).find("cannot connect to PostgreSQL"),
            std::string::npos);
  EXPECT_NE(OutputOf("hots=db1", 2).find("the connection string cannot be read"),
            std::string::npos);
  EXPECT_NE(OutputOf(host + " user=codband dbname=nothing", 6).find("\"nothing\" does not exist"),
            std::string::npos);
  EXPECT_NE(
      OutputOf(host + " user=nobody dbname=" + database_, 6).find("\"nobody\" does not exist"),
      std::string::npos);
}

// The tables of a program before this one are brought up to date, with what they have.
TEST_F(ServeClusterTroubleTest, OldTablesAreBroughtUpToDate) {
  auto a = StartNodeWithLog("a");
  ASSERT_TRUE(a->listens());
  ASSERT_EQ(Rank({a.get()}, "event1").status / 100, 2U);
  ASSERT_EQ(Reward({a.get()}, "event1"), "accepted");
  ASSERT_EQ(a->Stop(SIGTERM), 0);
  cluster::Psql psql("codband", database_);
  psql.Run(
      "DROP TABLE shared_log; ALTER TABLE partitions DROP COLUMN wanted; ALTER TABLE nodes DROP "
      "COLUMN version, DROP COLUMN draining, DROP COLUMN follows; UPDATE about SET version = 1");
  std::filesystem::remove_all(root_ / "a");
  a = StartNodeWithLog("a");
  ASSERT_TRUE(a->listens());
  EXPECT_EQ(Reward({a.get()}, "event1"), "duplicate");
  // Those of a program after this one are not touched.
  psql.Run("UPDATE about SET version = 99");
  EXPECT_NE(OutputOf(dsn_, 2).find("have version 99"), std::string::npos);
  EXPECT_EQ(Reward({a.get()}, "event1"), "duplicate");
}

TEST_F(ServeClusterTroubleTest, TheSecondNodeOfANameWaitsUntilTheFirstIsGone) {
  auto first = StartNodeWithLog("a", "first");
  ASSERT_TRUE(first->listens());
  ASSERT_EQ(Rank({first.get()}, "event1").status / 100, 2U);
  auto second = StartNodeWithLog("a", "second");
  ASSERT_TRUE(second->listens());
  EXPECT_TRUE(Says("second", "another node called 'a' is alive"));
  EXPECT_EQ(Reward({first.get()}, "event1"), "accepted");
  EXPECT_EQ(first->Stop(SIGKILL), -SIGKILL);
  EXPECT_EQ(Reward({second.get()}, "event1"), "duplicate");
}

// A frame that this program cannot read: a newer one wrote it.
TEST_F(ServeClusterTroubleTest, WhatANewerNodeWroteIsLeftToIt) {
  auto a = StartNodeWithLog("a");
  ASSERT_TRUE(a->listens());
  ASSERT_EQ(Rank({a.get()}, "event1").status / 100, 2U);
  ASSERT_EQ(Reward({a.get()}, "event1"), "accepted");
  ASSERT_EQ(a->Stop(SIGTERM), 0);
  cluster::Psql psql("codband", database_);
  psql.Run(
      "UPDATE partitions SET last_sequence = last_sequence + 1; INSERT INTO log (p, sequence, "
      "epoch, frame) SELECT p, last_sequence, epoch, '\\x0901' FROM partitions");
  a = StartNodeWithLog("a");
  ASSERT_TRUE(a->listens());
  EXPECT_TRUE(Says("a",
                   "cannot serve partition 0: a frame of the log cannot be read: version is "
                   "of a newer program"));
  EXPECT_EQ(AskOnce(*a, "event1").status, 503U);
  // The cause is gone.
  psql.Run(
      "DELETE FROM log WHERE frame = '\\x0901'; UPDATE partitions SET last_sequence = "
      "last_sequence - 1");
  EXPECT_EQ(Reward({a.get()}, "event1"), "duplicate");
}

// Every commit of the database takes 200 ms more.
TEST_F(ServeClusterTroubleTest, ASlowDiskOfTheDatabaseLosesNothing) {
  PostgresServer server(
      {.settings = {"fsync=on", "wal_sync_method=fdatasync"}, .preload = CODBAND_SLOW_SYNC});
  Own(server);
  auto a = StartNodeWithLog("a");
  ASSERT_TRUE(a->listens());
  ClusterTraffic traffic(8, [&] { return std::vector<std::uint16_t>{a->port()}; });
  traffic.Await(80);
  traffic.Stop();
  traffic.ExpectNothingLostOrDoubled();
}

TEST_F(ServeClusterTroubleTest, AFullDiskOfTheDatabaseLosesNothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "PostgreSQL runs as another user than the mounted disk's";
  SmallDisk::Run("96m", [&](const std::filesystem::path& disk) {
    std::filesystem::permissions(disk, std::filesystem::perms::all);
    // Small segments, so that the next one is soon needed.
    PostgresServer server({.parent = disk,
                           .settings = {"fsync=off", "min_wal_size=2MB", "max_wal_size=8MB"},
                           .initdb = {"--wal-segsize=1"}});
    Own(server);
    auto a = StartNodeWithLog("a");
    ASSERT_TRUE(a->listens());
    ClusterTraffic traffic(4, [&] { return std::vector<std::uint16_t>{a->port()}; });
    for (int i = 0; i < 2; ++i) {
      traffic.Await(20);
      SmallDisk::Fill(disk);
      // PostgreSQL refuses, or gives up altogether when it cannot write its own log.
      bool noticed = false;
      cluster::WaitUntil([&] { return noticed = !server.Lives() || HasNoSpace(*a); });
      EXPECT_TRUE(noticed);
      SmallDisk::MakeRoom(disk);
      if (!server.Lives()) server.Start();
      traffic.AwaitAllClients();
    }
    traffic.Stop();
    traffic.ExpectNothingLostOrDoubled();
  });
}

}  // namespace
}  // namespace codband
