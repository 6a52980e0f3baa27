#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/postgres_testing.h"
#include "tests/server_process.h"

namespace codband {

using Json = nlohmann::json;

// Real nodes on a real PostgreSQL. Every test has a database of its own: the loop is always called
// the same.
class ServeClusterTest : public testing::Test {
 protected:
  void SetUp() override {
    MakeRoot();
    static int count = 0;
    database_ = "serve" + std::to_string(++count);
    cluster::Psql("public").Run("CREATE DATABASE " + database_);
    dsn_ = PostgresServer::Shared().Dsn(database_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void MakeRoot() {
    root_ =
        std::filesystem::path("/dev/shm") / ("codband_serve_cluster_" + std::to_string(getpid()));
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }

  std::unique_ptr<ServerProcess> StartNode(const std::string& name) const {
    std::vector<std::string> flags{"--cluster", dsn_, "--name", name};
    flags.insert(flags.end(), flags_.begin(), flags_.end());
    return std::make_unique<ServerProcess>(root_ / name, settings_, "true", flags);
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

  std::uint64_t Ask(const std::string& column) const {
    cluster::Psql psql("codband", database_);
    const std::string sql = "SELECT " + column + " FROM partitions";
    const cluster::Reply reply = psql.connection().Run({"ask", sql.c_str()}, {});
    EXPECT_TRUE(reply.ok()) << reply.problem;
    return reply.ok() ? reply.rows.Number(0, 0) : 0;
  }

  // Up to which frame this node follows the one partition; 0: it does not.
  std::uint64_t FollowedBy(const std::string& node) const {
    cluster::Psql psql("codband", database_);
    const cluster::Reply reply = psql.connection().Run(
        {"followed_by",
         "SELECT split_part(follows, ':', 2)::bigint FROM nodes WHERE name = $1 AND "
         "follows LIKE '%:%'"},
        {node});
    EXPECT_TRUE(reply.ok()) << reply.problem;
    return reply.ok() && !reply.rows.empty() ? reply.rows.Number(0, 0) : 0;
  }

  std::vector<std::string> settings_ = {"policy.spec=linucb", "durability.checkpoint_events=7",
                                        "log.level=warning"};
  std::vector<std::string> flags_ = {};
  std::filesystem::path root_;
  std::string database_;
  std::string dsn_;
};

}  // namespace codband
