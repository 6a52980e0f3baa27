#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/serve_cluster_testing.h"

namespace codband {

inline std::string Actions() {
  return R"("actions":[{"id":"a","features":[1,0]},{"id":"b","features":[0,1]}])";
}

// Real nodes that share several partitions.
class ServePartitionsTest : public ServeClusterTest {
 protected:
  static constexpr int kPartitions = 4;

  ServePartitionsTest() {
    settings_ = {"features.dimension=2", "durability.checkpoint_events=50", "log.level=warning"};
    flags_ = {"--partitions", std::to_string(kPartitions)};
  }

  static server::HttpReply RankFor(const std::vector<ServerProcess*>& nodes,
                                   const std::string& user, const std::string& event = {}) {
    return Ask(nodes, "POST", "/v1/rank",
               "{" + (event.empty() ? "" : R"("eventId":")" + event + R"(",)") + R"("userId":")" +
                   user + R"(",)" + Actions() + "}");
  }
  // Forty users by their partition, such as ".p0": what their events end in. `rank` asks for one.
  static std::map<std::string, std::vector<std::string>> ByPartition(
      const std::function<server::HttpReply(const std::string& user)>& rank) {
    std::map<std::string, std::vector<std::string>> users;
    for (int i = 0; i < 40; ++i) {
      const std::string user = "user" + std::to_string(i);
      const std::string event = Json::parse(rank(user).body)["eventId"];
      users[event.substr(event.find('.'))].push_back(user);
    }
    return users;
  }
  static void WaitFor(const std::function<bool()>& done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!done() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  // The value of a metric without labels, of one node.
  static double Metric(const ServerProcess& node, const std::string& name) {
    const auto client = node.Connect();
    const auto reply = client->Send({.target = "/metrics"}, kPatience);
    if (!reply.ok()) return -1;
    std::istringstream text(reply.value().body);
    for (std::string line; std::getline(text, line);) {
      if (line.starts_with(name + " ")) return std::stod(line.substr(name.size() + 1));
    }
    return -1;
  }
  static void AwaitShares(const std::vector<ServerProcess*>& nodes) {
    WaitFor([&] {
      double sum = 0;
      bool all = true;
      for (const ServerProcess* node : nodes) {
        const double here = Metric(*node, "codband_cluster_partitions_here");
        sum += here;
        all &= here >= kPartitions / static_cast<int>(nodes.size());
      }
      return all && sum == kPartitions;
    });
    for (const ServerProcess* node : nodes) {
      EXPECT_GE(Metric(*node, "codband_cluster_partitions_here"),
                kPartitions / static_cast<int>(nodes.size()));
    }
  }
  // Runs a command of the program on this cluster; its output, both streams, and its exit code.
  struct Outcome {
    int exit_code = -1;
    std::string text;
  };
  Outcome RunCluster(const std::string& arguments) const {
    return RunProgram("cluster " + arguments + " --cluster '" +
                      PostgresServer::Shared().Dsn(database_) + "'");
  }
  static Outcome RunProgram(const std::string& arguments) {
    const std::string command = std::string(CODBAND_PROGRAM) + " " + arguments + " 2>&1";
    std::FILE* const pipe = ::popen(command.c_str(), "r");
    Outcome outcome;
    char buffer[512];
    while (std::fgets(buffer, sizeof(buffer), pipe) != nullptr) outcome.text += buffer;
    outcome.exit_code = WEXITSTATUS(::pclose(pipe));
    return outcome;
  }
};

}  // namespace codband
