// Real nodes that share several partitions: whichever is asked, the right one answers; one
// catalogue, one pool; nothing is lost when nodes come and go.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <set>

#include "tests/serve_partitions_testing.h"

namespace codband {
namespace {

TEST_F(ServePartitionsTest, WhicheverNodeIsAskedTheRightPartitionAnswers) {
  auto a = StartNode("a");
  auto b = StartNode("b");
  ASSERT_TRUE(a->listens() && b->listens());
  AwaitShares({a.get(), b.get()});
  std::set<std::string> partitions;
  for (int i = 0; i < 40; ++i) {
    const std::string user = "user" + std::to_string(i);
    ServerProcess& first = i % 2 == 0 ? *a : *b;
    ServerProcess& second = i % 2 == 0 ? *b : *a;
    // An id that the engine makes up says where it is; one of the client's is found.
    const auto ranked = RankFor({&first}, user);
    ASSERT_EQ(ranked.status, 200U) << ranked.body;
    const std::string made_up = Json::parse(ranked.body)["eventId"];
    partitions.insert(made_up.substr(made_up.find('.')));
    EXPECT_EQ(Reward({&second}, made_up), "accepted");
    EXPECT_EQ(Reward({&first}, made_up), "duplicate");
    const std::string own = "own" + std::to_string(i);
    ASSERT_EQ(RankFor({&second}, user, own).status, 200U);
    ASSERT_EQ(RankFor({&first}, user, own).status, 200U);  // the same again
    EXPECT_EQ(Reward({&first}, own), "accepted");
    EXPECT_EQ(Reward({&second}, own), "duplicate");
    const auto report = Ask({&second}, "GET", "/v1/users/" + user, "");
    ASSERT_EQ(report.status, 200U) << report.body;
    EXPECT_EQ(Json::parse(report.body)["observations"], 2) << report.body;
  }
  EXPECT_EQ(partitions, (std::set<std::string>{".p0", ".p1", ".p2", ".p3"}));
  EXPECT_EQ(Ask({a.get()}, "POST", "/v1/events/nobody-has-it/reward", R"({"value":1})").status,
            404U);
  EXPECT_EQ(Ask({a.get()}, "GET", "/v1/users/nobody", "").status, 404U);
  EXPECT_EQ(Ask({b.get()}, "POST", "/v1/rank", R"({"userId":5})").status, 400U);
  // Both slots of a page are in one partition, and get their rewards.
  const std::string slots =
      R"({"userId":"user7","actions":[{"id":"a","features":[1,0]},{"id":"b","features":[0,1]}],)"
      R"("slots":[{"id":"top","baselineAction":"a"},{"id":"side","baselineAction":"b"}]})";
  const auto page = Ask({a.get()}, "POST", "/personalizer/v1.1/multislot/rank", slots);
  ASSERT_EQ(page.status, 201U) << page.body;
  const std::string event = Json::parse(page.body)["eventId"];
  EXPECT_EQ(Ask({b.get()}, "POST", "/personalizer/v1.1/multislot/events/" + event + "/reward",
                R"({"reward":[{"slotId":"top","value":1},{"slotId":"side","value":0}]})")
                .status,
            204U);
  // A user who is forgotten by one node is unknown to all.
  EXPECT_EQ(Ask({a.get()}, "DELETE", "/v1/users/user3", "").status, 202U);
  EXPECT_EQ(Ask({b.get()}, "GET", "/v1/users/user3", "").status, 404U);
}

// What nodes tell each other anybody can say: a user has one partition all the same.
TEST_F(ServePartitionsTest, NobodyPutsAUserIntoAnotherPartition) {
  auto a = StartNode("a");
  ASSERT_TRUE(a->listens());
  AwaitShares({a.get()});
  const auto client = a->Connect();
  for (int i = 0; i < 8; ++i) {
    const std::string user = "user" + std::to_string(i);
    const std::string rank = R"({"userId":")" + user + R"(",)" + Actions() + "}";
    const std::string event = Json::parse(RankFor({a.get()}, user).body)["eventId"];
    const std::string home = event.substr(event.find('.'));
    for (const std::string forged : {"partition 0", "partition 3", "any", "event", "yes"}) {
      const auto reply = client->Send({.method = "POST",
                                       .target = "/v1/rank",
                                       .headers = {{"X-Codband-Forwarded", forged}},
                                       .body = rank},
                                      kPatience);
      ASSERT_TRUE(reply.ok());
      ASSERT_EQ(reply.value().status, 200U) << reply.value().body;
      EXPECT_TRUE(std::string(Json::parse(reply.value().body)["eventId"]).ends_with(home))
          << forged;
    }
  }
  // An id that would be looked for in another partition is refused.
  int refused = 0;
  for (const char partition : {'0', '1', '2', '3'}) {
    const std::string forged = std::string(32, 'f') + ".p" + partition;
    const auto reply = RankFor({a.get()}, "user1", forged);
    refused += reply.status == 400 ? 1 : 0;
    if (reply.status == 200) {
      EXPECT_EQ(Reward({a.get()}, forged), "accepted");
    }
  }
  EXPECT_EQ(refused, 3);
  // The id of an anonymous decision is known to be taken, as on one server.
  for (int i = 0; i < 8; ++i) {
    const auto first = Ask({a.get()}, "POST", "/v1/rank", "{" + Actions() + "}");
    const std::string event = Json::parse(first.body)["eventId"];
    const auto again =
        Ask({a.get()}, "POST", "/v1/rank", R"({"eventId":")" + event + R"(",)" + Actions() + "}");
    EXPECT_EQ(again.status, 409U) << again.body;
  }
}

TEST_F(ServePartitionsTest, AllPartitionsHaveOneCatalogue) {
  auto a = StartNode("a");
  auto b = StartNode("b");
  ASSERT_TRUE(a->listens() && b->listens());
  AwaitShares({a.get(), b.get()});
  const auto put = [&](ServerProcess& node, const std::string& id, const std::string& features) {
    return Ask({&node}, "PUT", "/v1/items/" + id, R"({"features":)" + features + "}").status;
  };
  EXPECT_EQ(put(*a, "x", "[1,0]"), 204U);
  EXPECT_EQ(put(*b, "y", "[0,1]"), 204U);
  EXPECT_EQ(put(*b, "z", "[1,1]"), 204U);
  EXPECT_EQ(put(*b, "bad", "[1]"), 400U);
  EXPECT_EQ(Ask({a.get()}, "DELETE", "/v1/items/never", "").status, 404U);
  WaitFor([&] { return Ask({a.get()}, "GET", "/v1/items/z", "").status == 200; });
  EXPECT_EQ(Ask({a.get()}, "DELETE", "/v1/items/z", "").status, 204U);
  const auto offers = [&](int user) {
    const auto ranked = Ask({user % 2 == 0 ? a.get() : b.get()}, "POST", "/v1/rank",
                            R"({"userId":"u)" + std::to_string(user) + R"("})");
    std::set<std::string> ids;
    if (ranked.status != 200) return ids;
    const Json reply = Json::parse(ranked.body);
    for (const Json& item : reply["ranking"]) ids.insert(item["id"].get<std::string>());
    return ids;
  };
  const std::set<std::string> both = {"x", "y"};
  for (int user = 0; user < 20; ++user) {
    WaitFor([&] { return offers(user) == both; });
    ASSERT_EQ(offers(user), both) << user;
  }
  // It is still there when everything has been stopped and a new node starts without a copy.
  EXPECT_EQ(a->Stop(SIGTERM), 0);
  EXPECT_EQ(b->Stop(SIGTERM), 0);
  auto c = StartNode("c");
  ASSERT_TRUE(c->listens());
  for (int user = 0; user < 20; ++user) {
    const auto ranked =
        Ask({c.get()}, "POST", "/v1/rank", R"({"userId":"u)" + std::to_string(user) + R"("})");
    ASSERT_EQ(ranked.status, 200U) << ranked.body;
    EXPECT_EQ(Json::parse(ranked.body)["ranking"].size(), 2U);
  }
}

TEST_F(ServePartitionsTest, HistoryGoesToTheUsersPartitions) {
  auto a = StartNode("a");
  auto b = StartNode("b");
  ASSERT_TRUE(a->listens() && b->listens());
  AwaitShares({a.get(), b.get()});
  std::string events;
  for (int i = 0; i < 60; ++i) {
    // Every seventh has an item that nobody knows, and no features.
    events += std::string(i == 0 ? "" : ",") + R"({"userId":"u)" + std::to_string(i % 20) +
              R"(","itemId":"a","value":0.25,"eventId":"e)" + std::to_string(i) + R"(")" +
              (i % 7 == 0 ? "}" : R"(,"features":[1,0.5]})");
  }
  const std::string body = R"({"events":[)" + events + "]}";
  const auto learned = Ask({a.get()}, "POST", "/v1/history", body);
  ASSERT_EQ(learned.status, 200U) << learned.body;
  const Json first = Json::parse(learned.body);
  EXPECT_EQ(first["accepted"], 51);
  EXPECT_EQ(first["duplicates"], 0);
  ASSERT_EQ(first["skipped"].size(), 9U) << learned.body;
  for (int i = 0; i < 9; ++i) {
    EXPECT_EQ(first["skipped"][static_cast<std::size_t>(i)]["index"], 7 * i);
  }
  const Json again = Json::parse(Ask({b.get()}, "POST", "/v1/history", body).body);
  EXPECT_EQ(again["accepted"], 0);
  EXPECT_EQ(again["duplicates"], 51);
  for (int user = 0; user < 20; ++user) {
    int expected = 0;
    for (int i = user; i < 60; i += 20) expected += i % 7 == 0 ? 0 : 1;
    const auto report = Ask({b.get()}, "GET", "/v1/users/u" + std::to_string(user), "");
    ASSERT_EQ(report.status, 200U) << report.body;
    EXPECT_EQ(Json::parse(report.body)["observations"], expected) << user;
  }
  const auto wrong = Ask({a.get()}, "POST", "/v1/history",
                         R"({"events":[{"userId":"u1","itemId":"a","value":1,"features":[1,0]},)"
                         R"({"userId":"u2","itemId":"a","value":"much"}]})");
  EXPECT_EQ(wrong.status, 400U);
  EXPECT_NE(wrong.body.find("events[1].value"), std::string::npos) << wrong.body;
}

// What the users of one partition teach is known in the others.
TEST_F(ServePartitionsTest, PartitionsLearnTogether) {
  auto a = StartNode("a");
  auto b = StartNode("b");
  ASSERT_TRUE(a->listens() && b->listens());
  AwaitShares({a.get(), b.get()});
  // Only users of one partition teach: "a" is good, "b" is not.
  auto users = ByPartition([&](const std::string& user) { return RankFor({a.get()}, user); });
  ASSERT_EQ(users.size(), 4U);
  for (int i = 0; i < 60; ++i) {
    const std::string& user = users[".p0"][static_cast<std::size_t>(i) % users[".p0"].size()];
    const auto ranked = RankFor({a.get()}, user);
    const Json reply = Json::parse(ranked.body);
    const std::string event = reply["eventId"];
    const auto rewarded = Ask({b.get()}, "POST", "/v1/events/" + event + "/reward",
                              reply["rewardActionId"] == "a" ? R"({"value":1})" : R"({"value":0})");
    ASSERT_EQ(rewarded.status, 200U) << rewarded.body;
  }
  // A user of another partition, of whom nothing is known, is expected to like it as well.
  for (const auto& [partition, names] : users) {
    if (partition == ".p0") continue;
    double a_mean = 0;
    double b_mean = 0;
    WaitFor([&] {
      const Json reply = Json::parse(RankFor({a.get()}, names[0]).body);
      for (const Json& item : reply["ranking"]) {
        (item["id"] == "a" ? a_mean : b_mean) = item["mean"];
      }
      return a_mean > 0.5 && b_mean < 0.5;
    });
    EXPECT_GT(a_mean, 0.5) << partition;
    EXPECT_LT(b_mean, 0.5) << partition;
  }
  WaitFor([&] {
    return Metric(*a, "codband_pool_age_seconds") == 0 &&
           Metric(*b, "codband_pool_age_seconds") == 0;
  });
  EXPECT_EQ(Metric(*a, "codband_pool_age_seconds"), 0);
  EXPECT_EQ(Metric(*b, "codband_pool_age_seconds"), 0);
  EXPECT_GT(Metric(*a, "codband_pool_merges_total") + Metric(*b, "codband_pool_merges_total"), 0);
}

// Without features.dimension: every name has a column, the same in all partitions.
class ServeNamedPartitionsTest : public ServePartitionsTest {
 protected:
  ServeNamedPartitionsTest() {
    settings_ = {"durability.checkpoint_events=50", "log.level=warning"};
  }
  static server::HttpReply RankUnder(ServerProcess& node, const std::string& user,
                                     const std::string& time) {
    return Ask({&node}, "POST", "/v1/rank",
               R"({"userId":")" + user + R"(","contextFeatures":{"time":")" + time + R"("}})");
  }
  static std::vector<std::string> Columns(ServerProcess& node) {
    std::vector<std::string> names;
    const auto reply = Ask({&node}, "GET", "/v1/features", "");
    EXPECT_EQ(reply.status, 200U) << reply.body;
    const Json report = Json::parse(reply.body);
    for (const Json& each : report["columns"]) names.push_back(each["name"]);
    return names;
  }
  static void PutItems(ServerProcess& node) {
    for (const std::string id : {"news", "music", "toys"}) {
      const auto reply = Ask({&node}, "PUT", "/v1/items/" + id,
                             R"({"features":{"category":")" + id + R"(","price":0.25}})");
      EXPECT_EQ(reply.status, 204U) << reply.body;
    }
  }
  // The reply once all three items are on offer.
  static server::HttpReply AwaitOffer(ServerProcess& node, const std::string& user) {
    server::HttpReply reply;
    WaitFor([&] {
      reply = RankUnder(node, user, "noon");
      return reply.status == 200 && Json::parse(reply.body)["ranking"].size() == 3;
    });
    return reply;
  }
  // How much better news are expected to be than music.
  static double Lead(ServerProcess& node, const std::string& user, const std::string& time) {
    std::map<std::string, double> means;
    const Json reply = Json::parse(RankUnder(node, user, time).body);
    for (const Json& item : reply["ranking"]) means[item["id"]] = item["mean"];
    return means["news"] - means["music"];
  }
};

// In the morning news are clicked, in the evening music: users of one partition teach it.
TEST_F(ServeNamedPartitionsTest, AContextThatOnePartitionLearnsAllKnow) {
  auto a = StartNode("a");
  auto b = StartNode("b");
  ASSERT_TRUE(a->listens() && b->listens());
  AwaitShares({a.get(), b.get()});
  PutItems(*a);
  auto users = ByPartition([&](const std::string& user) { return AwaitOffer(*a, user); });
  ASSERT_EQ(users.size(), 4U);
  for (int i = 0; i < 240; ++i) {
    const std::string& user = users[".p0"][static_cast<std::size_t>(i) % users[".p0"].size()];
    const std::string time = i / 10 % 2 == 0 ? "morning" : "evening";
    const Json reply = Json::parse(RankUnder(i % 3 == 0 ? *a : *b, user, time).body);
    const bool liked = reply["rewardActionId"] == (time == "morning" ? "news" : "music");
    const std::string event = reply["eventId"];
    const auto rewarded = Ask({b.get()}, "POST", "/v1/events/" + event + "/reward",
                              liked ? R"({"value":1})" : R"({"value":0})");
    ASSERT_EQ(rewarded.status, 200U) << rewarded.body;
  }
  for (const auto& [partition, names] : users) {
    const auto knows = [&] {
      return Lead(*a, names[0], "morning") > 0.3 && Lead(*b, names[0], "evening") < -0.3;
    };
    WaitFor(knows);
    EXPECT_TRUE(knows()) << partition << ": " << Lead(*a, names[0], "morning") << " and "
                         << Lead(*b, names[0], "evening");
  }
  WaitFor([&] { return Columns(*a) == Columns(*b); });
  const std::vector<std::string> columns = Columns(*a);
  EXPECT_EQ(columns, Columns(*b));
  EXPECT_EQ(std::ranges::count(columns, "time=morning"), 1);
  EXPECT_EQ(std::ranges::count(columns, "category=news × time=morning"), 1);
  // A node without copies of its own goes on.
  EXPECT_EQ(a->Stop(SIGKILL), -SIGKILL);
  EXPECT_EQ(b->Stop(SIGTERM), 0);
  std::filesystem::remove_all(root_ / "a");
  a = StartNode("a");
  ASSERT_TRUE(a->listens());
  for (const auto& [partition, names] : users) {
    AwaitOffer(*a, names[0]);
    EXPECT_GT(Lead(*a, names[0], "morning"), 0.3) << partition;
    EXPECT_LT(Lead(*a, names[0], "evening"), -0.3) << partition;
  }
  WaitFor([&] { return Columns(*a) == columns; });
  EXPECT_EQ(Columns(*a), columns);
  const Outcome sound = RunCluster("doctor");
  EXPECT_NE(sound.text.find(" columns, "), std::string::npos) << sound.text;
}

TEST_F(ServePartitionsTest, AKilledNodesPartitionsAreTakenAndNothingAcknowledgedIsLost) {
  auto a = StartNode("a");
  auto b = StartNode("b");
  ASSERT_TRUE(a->listens() && b->listens());
  AwaitShares({a.get(), b.get()});
  std::vector<std::string> acknowledged;
  const auto work = [&](const std::vector<ServerProcess*>& nodes, int count) {
    for (int i = 0; i < count; ++i) {
      const std::string event = "event" + std::to_string(acknowledged.size());
      const auto ranked = RankFor(nodes, "user" + std::to_string(i), event);
      ASSERT_EQ(ranked.status, 200U) << ranked.body;
      const std::string outcome = Reward(nodes, event);
      ASSERT_TRUE(outcome == "accepted" || outcome == "duplicate") << outcome;
      acknowledged.push_back(event);
    }
  };
  work({a.get(), b.get()}, 30);
  a->Stop(SIGKILL);
  work({b.get()}, 30);
  EXPECT_EQ(Metric(*b, "codband_cluster_partitions_here"), kPartitions);
  std::filesystem::remove_all(root_ / "a");
  a = StartNode("a");
  ASSERT_TRUE(a->listens());
  AwaitShares({a.get(), b.get()});
  work({a.get(), b.get()}, 30);
  b->Stop(SIGKILL);
  for (const std::string& event : acknowledged) {
    ASSERT_EQ(Reward({a.get()}, event), "duplicate") << event;
  }
}

// Clients that rank and reward without end, each time at another of the nodes that they are told
// of, and once more at the next one if they get no answer or 503.
class RetryingClients {
 public:
  RetryingClients(std::vector<std::uint16_t> ports, int count) : ports_(std::move(ports)) {
    for (int client = 0; client < count; ++client) {
      threads_.emplace_back([this, client] {
        for (int i = 0; !stop_; ++i) Visit(client, i);
      });
    }
  }
  ~RetryingClients() { Stop(); }

  void TellOf(std::uint16_t port) {
    const std::lock_guard lock(mutex_);
    ports_.push_back(port);
  }
  void NoLonger(std::uint16_t port) {
    const std::lock_guard lock(mutex_);
    std::erase(ports_, port);
  }
  void Stop() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  int answered() const { return answered_; }
  int retried() const { return retried_; }
  int failed() const { return failed_; }

 private:
  void Visit(int client, int i) {
    const std::string event = "c" + std::to_string(client) + "e" + std::to_string(i);
    const std::string user = "u" + std::to_string(i % 50);
    Send(client + i, "/v1/rank",
         R"({"eventId":")" + event + R"(","userId":")" + user + R"(",)" + Actions() + "}");
    Send(client + i, "/v1/events/" + event + "/reward", R"({"value":1})");
  }
  void Send(int node, const std::string& target, const std::string& body) {
    if (!SendOnce(node, target, body)) {
      ++retried_;
      if (!SendOnce(node + 1, target, body)) ++failed_;
    }
    ++answered_;
  }
  bool SendOnce(int node, const std::string& target, const std::string& body) {
    std::uint16_t port = 0;
    {
      const std::lock_guard lock(mutex_);
      port = ports_[static_cast<std::size_t>(node) % ports_.size()];
    }
    auto connected = server::HttpClient::Connect({.host = "127.0.0.1", .port = port}, kPatience);
    if (!connected.ok()) return false;
    const auto reply =
        connected.value()->Send({.method = "POST", .target = target, .body = body}, kPatience);
    return reply.ok() && reply.value().status == 200;
  }

  std::mutex mutex_;
  std::vector<std::uint16_t> ports_;  // of nodes that are not being stopped
  std::atomic<bool> stop_{false};
  std::atomic<int> answered_{0};
  std::atomic<int> retried_{0};
  std::atomic<int> failed_{0};
  std::vector<std::thread> threads_;
};

TEST_F(ServePartitionsTest, ARollingRestartIsNoErrorForClientsThatRetryOnce) {
  std::map<std::string, std::unique_ptr<ServerProcess>> nodes;
  for (const std::string name : {"a", "b", "c"}) {
    nodes[name] = StartNode(name);
    ASSERT_TRUE(nodes[name]->listens());
  }
  AwaitShares({nodes["a"].get(), nodes["b"].get(), nodes["c"].get()});
  RetryingClients clients({nodes["a"]->port(), nodes["b"]->port(), nodes["c"]->port()}, 4);
  for (const std::string name : {"a", "b", "c"}) {
    clients.NoLonger(nodes[name]->port());
    EXPECT_EQ(nodes[name]->Stop(SIGTERM), 0);
    nodes[name] = StartNode(name);
    ASSERT_TRUE(nodes[name]->listens());
    AwaitShares({nodes["a"].get(), nodes["b"].get(), nodes["c"].get()});
    clients.TellOf(nodes[name]->port());
  }
  clients.Stop();
  EXPECT_GT(clients.answered(), 100);
  EXPECT_EQ(clients.failed(), 0) << clients.answered() << " answered, " << clients.retried()
                                 << " of them at the second try";
  RecordProperty("answered", clients.answered());
  RecordProperty("retried", clients.retried());
}

TEST_F(ServePartitionsTest, WrongNumbersAreRefusedWithAReason) {
  auto a = StartNode("a");
  ASSERT_TRUE(a->listens());
  const auto output_of = [&](const std::string& flags) {
    return RunProgram("serve --data " + (root_ / "x").string() +
                      " --listen 127.0.0.1:0 --cluster '" +
                      PostgresServer::Shared().Dsn(database_) + "' --name x " + flags)
        .text;
  };
  EXPECT_NE(output_of("--partitions 3").find("was made with 4, for good"), std::string::npos);
  EXPECT_NE(output_of("--set features.dimension=5").find("was made for 2 features"),
            std::string::npos);
  EXPECT_NE(output_of("--partitions 257").find("expected 1 to 256"), std::string::npos);
  EXPECT_NE(output_of("--partitions x").find("expected 1 to 256"), std::string::npos);
}

}  // namespace
}  // namespace codband
