#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/server_process.h"

namespace codband {

// A client that sends one request after another, for users of its own, and records what was
// acknowledged. It outlives the server: requests that were not acknowledged are retried.
class CrashClient {
 public:
  CrashClient(int number, int users) : name_("c" + std::to_string(number)), users_(users) {}

  // Runs until the server is gone, or until so many rewards have been acknowledged.
  void Run(const ServerProcess& server, std::uint64_t rewards = ~std::uint64_t{0}) {
    client_ = server.Connect();
    if (client_ == nullptr) return;
    const std::uint64_t end = rewards == ~std::uint64_t{0} ? rewards : events_.size() + rewards;
    // First what the last server did not acknowledge.
    if (rewarding_ && !Reward()) return;
    if (!forgetting_.empty() && !Forget()) return;
    if (!CheckUsers()) return;
    while (events_.size() < end && Visit()) continue;
  }
  // Retries what is in flight and checks every user.
  void Settle(const ServerProcess& server) {
    client_ = server.Connect();
    ASSERT_NE(client_, nullptr);
    if (rewarding_) {
      EXPECT_TRUE(Reward());
    }
    if (!forgetting_.empty()) {
      EXPECT_TRUE(Forget());
    }
    EXPECT_TRUE(CheckUsers());
  }

  struct Event {
    std::string id;
    std::string user;
    double reward;
  };
  // Rewards that were acknowledged, in order.
  const std::vector<Event>& events() const { return events_; }
  // How many; from any thread.
  std::uint64_t acknowledged() const { return acknowledged_; }
  std::uint64_t refused() const { return refused_; }
  // An impatient client does not retry refused requests. The reason of the last refusal.
  void set_patient(bool patient) { patient_ = patient; }
  // Forgets the user of every so many visits; 0: none.
  void set_forget_every(std::size_t visits) { forget_every_ = visits; }
  std::uint64_t forgets() const { return forgets_; }
  const std::string& refusal() const { return refusal_; }

  static std::string Actions() { return R"(["item0","item1","item2","item3","item4","item5"])"; }

 private:
  // The reply to a request that succeeded; nothing if the server is gone, or refuses it and the
  // client is impatient.
  std::optional<server::HttpReply> Send(const server::HttpRequest& request) {
    while (true) {
      auto reply = client_->Send(request, kPatience);
      if (!reply.ok()) return std::nullopt;
      if (reply.value().status < 500) return std::move(reply).value();
      // A refusal has a reason, as JSON, and changes nothing.
      EXPECT_TRUE(reply.value().status == 503 || reply.value().status == 507)
          << reply.value().status << reply.value().body;
      const auto body = nlohmann::json::parse(reply.value().body, nullptr, false);
      EXPECT_TRUE(body.is_object() && body.contains("error")) << reply.value().body;
      refusal_ = std::to_string(reply.value().status) + " " + reply.value().body;
      ++refused_;
      if (!patient_) return std::nullopt;
    }
  }

  bool Visit() {
    const std::size_t number = events_.size();
    const std::string user =
        name_ + "-user" + std::to_string(number % static_cast<std::size_t>(users_));
    const std::string event = name_ + "-" + std::to_string(number);
    const auto ranked = Send({.method = "POST",
                              .target = "/v1/rank",
                              .body = R"({"eventId":")" + event + R"(","userId":")" + user +
                                      R"(","actions":)" + Actions() + "}"});
    if (!ranked) return false;
    EXPECT_TRUE(ranked->status == 200 || ranked->status == 201) << ranked->body;
    const auto reply = nlohmann::json::parse(ranked->body, nullptr, false);
    const std::string action = reply.value("rewardActionId", "");
    // At even visits even items are liked; this swaps every 100 visits.
    const bool even = (action.empty() ? 0 : action.back() - '0') % 2 == 0;
    const bool likes_even = (number % 2 == 0) == (number % 200 < 100);
    rewarding_ = Event{.id = event, .user = user, .reward = even == likes_even ? 1.0 : 0.0};
    if (!Reward()) return false;
    if (forget_every_ == 0 || number % forget_every_ != forget_every_ - 1) return true;
    forgetting_ = user;
    return Forget();
  }

  bool Forget() {
    const auto reply = Send({.method = "DELETE", .target = "/v1/users/" + forgetting_});
    if (!reply) return false;
    // 404: the last server has forgotten them and was killed before it could say so.
    EXPECT_TRUE(reply->status < 300 || reply->status == 404) << reply->body;
    observations_.erase(forgetting_);
    forgetting_.clear();
    ++forgets_;
    return true;
  }

  bool Reward() {
    const auto rewarded = Send({.method = "POST",
                                .target = "/v1/events/" + rewarding_->id + "/reward",
                                .body = R"({"value":)" + std::to_string(rewarding_->reward) + "}"});
    if (!rewarded) return false;
    EXPECT_TRUE(rewarded->status == 200 || rewarded->status == 202) << rewarded->body;
    const auto reply = nlohmann::json::parse(rewarded->body, nullptr, false);
    const std::string status = reply.value("status", "");
    EXPECT_TRUE(status == "accepted" || status == "duplicate") << rewarded->body;
    ++observations_[rewarding_->user];
    events_.push_back(*std::exchange(rewarding_, std::nullopt));
    acknowledged_ = events_.size();
    return true;
  }

  // The server has learned exactly the rewards that it acknowledged.
  bool CheckUsers() {
    for (const auto& [user, observations] : observations_) {
      const auto reply = Send({.target = "/v1/users/" + user});
      if (!reply) return false;
      EXPECT_EQ(reply->status, 200U) << reply->body;
      const auto body = nlohmann::json::parse(reply->body, nullptr, false);
      EXPECT_EQ(body.value("observations", std::uint64_t{0}), observations) << user;
    }
    return true;
  }

  std::string name_;
  int users_;
  std::unique_ptr<server::HttpClient> client_;
  std::vector<Event> events_;
  std::atomic<std::uint64_t> acknowledged_ = 0;
  std::optional<Event> rewarding_;  // sent, not acknowledged
  std::map<std::string, std::uint64_t> observations_;
  std::string forgetting_;  // sent, not acknowledged
  std::size_t forget_every_ = 0;
  std::uint64_t forgets_ = 0;
  std::uint64_t refused_ = 0;
  bool patient_ = true;
  std::string refusal_;
};

}  // namespace codband
