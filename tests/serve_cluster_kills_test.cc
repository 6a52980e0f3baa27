// kill -9 of the node that serves, again and again, under clients: nothing acknowledged is lost,
// and nothing counts twice.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/postgres_testing.h"
#include "tests/server_process.h"

namespace codband {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr int kKills = 50;
constexpr int kClients = 4;

class KilledCluster {
 public:
  KilledCluster() {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
    cluster::Psql("public").Run("CREATE DATABASE kills");
    for (std::size_t i = 0; i < 2; ++i) Start(i);
  }
  ~KilledCluster() { std::filesystem::remove_all(root_); }

  void Start(std::size_t index) {
    const std::string name(1, static_cast<char>('a' + index));
    nodes_[index] = std::make_unique<ServerProcess>(
        root_ / name,
        std::vector<std::string>{"durability.checkpoint_events=50", "log.level=error"}, "true",
        std::vector<std::string>{"--cluster", PostgresServer::Shared().Dsn("kills"), "--name",
                                 name});
    ASSERT_TRUE(nodes_[index]->listens());
    ports_[index] = nodes_[index]->port();
  }
  void Kill(std::size_t index) { nodes_[index]->Stop(SIGKILL); }

  // Which node owns the partition; waits until one does.
  std::size_t Owner() {
    static constexpr cluster::Statement kOwner{
        "kills_owner", "SELECT owner FROM partitions WHERE lease_until > clock_timestamp()"};
    cluster::Psql psql("codband", "kills");
    while (true) {
      const cluster::Reply reply = psql.connection().Run(kOwner, {});
      if (reply.ok() && !reply.rows.empty()) return reply.rows.Bytes(0, 0) == "a" ? 0 : 1;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }

  // Asks one node after the other until one has more than an error of the moment.
  Json Ask(const std::string& method, const std::string& target, const std::string& body) {
    for (std::size_t i = 0; i < 5000; ++i) {
      auto client =
          server::HttpClient::Connect({.host = "127.0.0.1", .port = ports_[i % 2]}, kPatience);
      if (client.ok()) {
        const auto reply =
            client.value()->Send({.method = method, .target = target, .body = body}, kPatience);
        if (reply.ok() && reply.value().status != 503) {
          EXPECT_LT(reply.value().status, 300U) << reply.value().body;
          return Json::parse(reply.value().body, nullptr, false);
        }
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ADD_FAILURE() << target << ": no answer";
    return {};
  }

 private:
  const std::filesystem::path root_ =
      std::filesystem::path("/dev/shm") / fmt::format("codband_cluster_kills_{}", ::getpid());
  std::array<std::unique_ptr<ServerProcess>, 2> nodes_;
  std::array<std::atomic<std::uint16_t>, 2> ports_;
};

TEST(ServeClusterKillsTest, NothingIsLostAndNothingCountsTwice) {
  KilledCluster cluster;
  std::atomic<bool> stop{false};
  std::atomic<int> acknowledged{0};
  std::map<std::string, int> by_user;
  std::vector<std::string> events;
  std::mutex mutex;  // guards the two above
  std::vector<std::thread> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back([&, i] {
      for (int n = 0; !stop; ++n) {
        const std::string event = fmt::format("c{}-{}", i, n);
        const std::string user = fmt::format("u{}", (7 * i + n) % 12);
        cluster.Ask(
            "POST", "/v1/rank",
            fmt::format(R"({{"eventId":"{}","userId":"{}","actions":)"
                        R"([{{"id":"x","features":[1,0]}},{{"id":"y","features":[0,1]}}]}})",
                        event, user));
        const Json reply = cluster.Ask("POST", "/v1/events/" + event + "/reward", R"({"value":1})");
        EXPECT_TRUE(reply["status"] == "accepted" || reply["status"] == "duplicate") << reply;
        ++acknowledged;
        const std::lock_guard lock(mutex);
        ++by_user[user];
        events.push_back(event);
      }
    });
  }
  std::vector<double> gaps;
  for (int i = 0; i < kKills; ++i) {
    const int before = acknowledged;
    while (acknowledged < before + 20) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const std::size_t owner = cluster.Owner();
    cluster.Kill(owner);
    const auto start = Clock::now();
    const int at_kill = acknowledged;
    while (acknowledged <= at_kill + kClients) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    gaps.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    cluster.Start(owner);
  }
  stop = true;
  for (std::thread& client : clients) client.join();
  for (const std::string& event : events) {
    const Json reply = cluster.Ask("POST", "/v1/events/" + event + "/reward", R"({"value":1})");
    EXPECT_EQ(reply["status"], "duplicate") << event;
  }
  for (const auto& [user, count] : by_user) {
    EXPECT_EQ(cluster.Ask("GET", "/v1/users/" + user, "")["observations"], count) << user;
  }
  std::ranges::sort(gaps);
  fmt::print("{} kills, {} rewards acknowledged; gap: median {:.1f} s, longest {:.1f} s\n", kKills,
             events.size(), gaps[gaps.size() / 2], gaps.back());
}

}  // namespace
}  // namespace codband
