#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "codband/server/http/http_client.h"

namespace codband {

// Clients that rank and reward on nodes that come and go, trying again until they are answered, and
// that remember what was acknowledged.
class ClusterTraffic {
 public:
  using Json = nlohmann::json;
  // Of the nodes, as they are now; called from any thread.
  using Ports = std::function<std::vector<std::uint16_t>()>;
  static constexpr std::chrono::seconds kReplyPatience{60};
  static constexpr std::chrono::seconds kAnswerPatience{240};

  ClusterTraffic(int clients, Ports ports) : ports_(std::move(ports)) {
    for (int i = 0; i < clients; ++i) {
      clients_.emplace_back([this, i] { Run(i); });
    }
  }
  ~ClusterTraffic() { Stop(); }
  ClusterTraffic(const ClusterTraffic&) = delete;
  ClusterTraffic& operator=(const ClusterTraffic&) = delete;

  int acknowledged() const { return acknowledged_; }
  // Seconds until every client was answered again, whatever was under way at first.
  double Await(int more) const {
    const auto start = std::chrono::steady_clock::now();
    const int before = acknowledged_;
    while (acknowledged_ <= before + more) {
      if (std::chrono::steady_clock::now() - start > kAnswerPatience) {
        ADD_FAILURE() << "nothing was acknowledged for too long";
        break;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  double AwaitAllClients() const { return Await(static_cast<int>(clients_.size())); }
  // Seconds that the slowest request has taken, with all its tries, of those that were answered
  // since this was asked last.
  double TakeLongest() { return longest_.exchange(0); }

  void Stop() {
    stop_ = true;
    for (std::thread& client : clients_) client.join();
    clients_.clear();
  }
  // What was acknowledged is there, and counts once. After Stop.
  void ExpectNothingLostOrDoubled() {
    for (const std::string& event : events_) {
      const Json reply = Ask(0, "POST", "/v1/events/" + event + "/reward", R"({"value":1})");
      ASSERT_EQ(reply.value("status", ""), "duplicate") << event << ": " << reply;
    }
    for (const auto& [user, count] : by_user_) {
      EXPECT_EQ(Ask(0, "GET", "/v1/users/" + user, "")["observations"], count) << user;
    }
  }

 private:
  void Run(int client) {
    for (int n = 0; !stop_; ++n) {
      const std::string event = fmt::format("c{}-{}", client, n);
      const std::string user = fmt::format("u{}", (7 * client + n) % 12);
      Ask(client, "POST", "/v1/rank",
          fmt::format(R"({{"eventId":"{}","userId":"{}","actions":)"
                      R"([{{"id":"x","features":[1,0]}},{{"id":"y","features":[0,1]}}]}})",
                      event, user));
      const Json reply = Ask(client, "POST", "/v1/events/" + event + "/reward", R"({"value":1})");
      const std::string status = reply.is_object() ? reply.value("status", "") : "";
      EXPECT_TRUE(status == "accepted" || status == "duplicate") << event << ": " << reply;
      if (status.empty()) continue;  // nobody answered, or not as expected: a failure already
      ++acknowledged_;
      const std::lock_guard lock(mutex_);
      ++by_user_[user];
      events_.push_back(event);
    }
  }

  // Asks one node after the other until one has more than an error of the moment.
  Json Ask(int first, const std::string& method, const std::string& target,
           const std::string& body) const {
    const auto start = std::chrono::steady_clock::now();
    for (auto i = static_cast<std::size_t>(first);
         std::chrono::steady_clock::now() - start < kAnswerPatience; ++i) {
      const std::vector<std::uint16_t> ports = ports_();
      if (!ports.empty()) {
        if (auto json = AskOnce(ports[i % ports.size()], method, target, body)) {
          const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
          double longest = longest_;
          while (longest < took.count() && !longest_.compare_exchange_weak(longest, took.count())) {
          }
          return *json;
        }
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ADD_FAILURE() << target << ": no answer";
    return Json::object();
  }
  static std::optional<Json> AskOnce(std::uint16_t port, const std::string& method,
                                     const std::string& target, const std::string& body) {
    auto client = server::HttpClient::Connect({.host = "127.0.0.1", .port = port}, kReplyPatience);
    if (!client.ok()) return std::nullopt;
    const auto reply =
        client.value()->Send({.method = method, .target = target, .body = body}, kReplyPatience);
    if (!reply.ok() || reply.value().status == 503) return std::nullopt;
    EXPECT_LT(reply.value().status, 300U) << target << ": " << reply.value().body;
    return Json::parse(reply.value().body, nullptr, false);
  }

  const Ports ports_;
  std::atomic<bool> stop_{false};
  std::atomic<int> acknowledged_{0};
  mutable std::atomic<double> longest_{0};
  std::mutex mutex_;  // guards what follows
  std::map<std::string, int> by_user_;
  std::vector<std::string> events_;
  std::vector<std::thread> clients_;  // last: they use the rest
};

}  // namespace codband
