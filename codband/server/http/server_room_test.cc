// Who gives way when there are too many connections, and what happens when there is no memory.
#include <gtest/gtest.h>

#include <new>
#include <string>
#include <thread>
#include <vector>

#include "codband/server/server_fixture.h"

namespace codband::server {
namespace {

const std::string kRoomLive = "GET /v1/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n";
const std::string kRoomRank =
    "POST /v1/rank HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    "Content-Length: 14\r\n\r\n{\"userId\":\"u\"}";

class ServerRoomTest : public ServerFixture {
 protected:
  static int Live(TestClient& client) { return client.Request("GET", "/v1/health/live").status; }
  std::vector<TestClient> ConnectIdle(int count) {
    std::vector<TestClient> clients;
    for (int i = 0; i < count; ++i) {
      clients.push_back(Connect());
      EXPECT_EQ(Live(clients.back()), 200);
    }
    return clients;
  }
  double Metric(const std::string& name) {
    const std::string text = Request("GET", "/metrics").body;
    const std::size_t at = text.find("\n" + name + " ");
    EXPECT_NE(at, text.npos) << name;
    return at == text.npos ? -1 : std::stod(text.substr(at + name.size() + 2));
  }
};

TEST_F(ServerRoomTest, TheIdlestConnectionGivesWay) {
  Start({.threads = 1, .max_connections = 3});
  std::vector<TestClient> clients = ConnectIdle(3);
  EXPECT_EQ(Live(clients[0]), 200);  // now the second has waited longest
  TestClient fourth = Connect();
  EXPECT_EQ(Live(fourth), 200);
  EXPECT_TRUE(clients[1].Ended());
  EXPECT_EQ(Live(clients[0]), 200);
  EXPECT_EQ(Live(clients[2]), 200);
  TestClient fifth = Connect();
  EXPECT_EQ(Live(fifth), 200);
  EXPECT_TRUE(fourth.Ended());
  EXPECT_EQ(Metric("codband_connections_limit"), 3);
}

TEST_F(ServerRoomTest, ManyMoreThanThereIsRoomForAreServedOneAfterTheOther) {
  for (const std::size_t threads : {1, 2, 3}) {
    Start({.threads = threads, .max_connections = 10});
    std::vector<TestClient> clients;
    for (int i = 0; i < 300; ++i) {
      clients.push_back(Connect());
      ASSERT_EQ(Live(clients.back()), 200) << i;
    }
    EXPECT_GE(Metric("codband_connections_displaced_total"), 290);
    EXPECT_LE(Metric("codband_connections"), 10);
  }
}

TEST_F(ServerRoomTest, WhoIsBeingAnsweredStays) {
  Start({.max_connections = 3});
  engine_.Hold();
  std::vector<TestClient> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(Connect());
    clients.back().Send(kRoomRank);
  }
  engine_.AwaitWaiting(3);
  TestClient fourth = Connect();
  fourth.Send(kRoomLive);
  const TestReply refused = fourth.Receive();
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.Error("code"), "TooManyConnections");
  EXPECT_TRUE(refused.Has("Retry-After: 1\r\n"));
  engine_.Release();
  for (TestClient& client : clients) EXPECT_EQ(client.Receive().status, 200);
  // Now they are idle: there is room.
  int status = 0;
  for (int i = 0; i < 1000 && status != 200; ++i) {
    TestClient next = Connect();
    status = Live(next);
  }
  EXPECT_EQ(status, 200);
  EXPECT_GE(Metric("codband_connections_refused_total"), 1);
}

// Clients that begin a request and do not end it hold their places for a while only.
TEST_F(ServerRoomTest, SlowRequestsGiveWayAfterATenthOfTheirTime) {
  Start({.threads = 1, .max_connections = 3, .request_timeout_ms = 4000});
  std::vector<TestClient> slow;
  for (int i = 0; i < 3; ++i) {
    slow.push_back(Connect());
    EXPECT_EQ(Live(slow.back()), 200);  // the server has it
    slow.back().Send("POST /v1/rank HTTP/1.1\r\nHost: loc");
  }
  // Idle ones go first, but there are none: until they are slow, who comes is refused.
  TestClient early = Connect();
  EXPECT_EQ(Live(early), 503);
  int status = 0;
  for (int i = 0; i < 1000 && status != 200; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    TestClient next = Connect();
    status = Live(next);
  }
  EXPECT_EQ(status, 200);
  EXPECT_TRUE(slow[0].Ended()) << "without a 408: it was not its timeout";
}

TEST_F(ServerRoomTest, ThisMachineIsLimitedInAllOnly) {
  Start({.max_connections_per_address = 2});
  std::vector<TestClient> clients = ConnectIdle(5);
  for (TestClient& client : clients) EXPECT_EQ(Live(client), 200);
}

TEST_F(ServerRoomTest, StopsWhileConnectionsTakeEachOthersPlaces) {
  for (int round = 0; round < 5; ++round) {
    Start({.threads = 2, .max_connections = 4});
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([port = server_->port()] {
        for (int j = 0; j < 200; ++j) {
          TestClient client(port);
          if (!client.connected()) return;
          client.Send(kRoomLive);
          client.Receive();
        }
      });
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    server_->Stop();
    for (std::thread& thread : threads) thread.join();
  }
}

// A service whose handlers break the rule that they throw nothing.
class ThrowingService final : public Service {
 public:
  const Router& router() const override { return router_; }
  void Start(std::size_t /*workers*/) override {}
  void Stop() override {}
  Awaitable<void> Handle(Call& call) override {
    if (call.match.index == 1) throw std::bad_alloc();
    if (call.match.index == 2) throw std::runtime_error("/var/lib/secret is broken");
    call.reply.body = "{}";
    co_return;
  }
  std::unique_ptr<BodyStream> OpenStream(const Call& /*call*/,
                                         std::optional<std::uint64_t> /*bytes*/) override {
    throw std::bad_alloc();
  }
  void SetError(Reply& reply, const HttpError& error) const override {
    reply.status = error.status;
    reply.body = error.message;
  }

 private:
  static constexpr Route kRoutes[] = {
      {.method = Method::kGet, .pattern = "/ok", .operation = "ok"},
      {.method = Method::kGet, .pattern = "/memory", .operation = "memory"},
      {.method = Method::kGet, .pattern = "/throw", .operation = "throw"},
      {.method = Method::kPost,
       .pattern = "/stream",
       .operation = "stream",
       .body = BodyKind::kStreamed}};
  const Router router_{kRoutes};
};

TEST(ServerFailureTest, AnExceptionEndsItsConnectionWithAReplyAndNoOther) {
  auto server = Server::Start(std::make_unique<ThrowingService>(), {.port = 0});
  ASSERT_TRUE(server.ok());
  const std::uint16_t port = server.value()->port();
  TestClient other(port);
  EXPECT_EQ(other.Request("GET", "/ok").status, 200);
  for (int i = 0; i < 20; ++i) {
    TestClient memory(port);
    const TestReply full = memory.Request("GET", "/memory");
    EXPECT_EQ(full.status, 503);
    EXPECT_EQ(full.body, "out of memory");
    EXPECT_TRUE(full.Has("Connection: close\r\n"));
    EXPECT_TRUE(memory.Ended());
    TestClient stream(port);
    EXPECT_EQ(stream.Request("POST", "/stream", "{}").status, 503);
    TestClient broken(port);
    const TestReply failed = broken.Request("GET", "/throw");
    EXPECT_EQ(failed.status, 500);
    EXPECT_EQ(failed.body, "the request failed") << "it shows nothing of the server";
    // Replies to the requests before are not lost.
    TestClient pipelined(port);
    pipelined.Send(
        "GET /ok HTTP/1.1\r\nHost: localhost\r\n\r\n"
        "GET /memory HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_EQ(pipelined.Receive().status, 200);
    EXPECT_EQ(pipelined.Receive().status, 503);
  }
  EXPECT_EQ(other.Request("GET", "/ok").status, 200);
}

}  // namespace
}  // namespace codband::server
