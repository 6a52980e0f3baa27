// How the server treats connections: order, limits, slow and vanishing clients, shutdown.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "codband/server/server_fixture.h"

namespace codband::server {
namespace {

class ServerLimitsTest : public ServerFixture {};

const std::string kJsonHead = " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
const std::string kPostRank = "POST /v1/rank" + kJsonHead;
const std::string kPostItems = "POST /v1/items" + kJsonHead;
constexpr std::string_view kLive = "GET /v1/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n";

std::string RankOf(const std::string& event) {
  const std::string body = R"({"userId":"u","eventId":")" + event + R"(","actions":["a"]})";
  return kPostRank + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

TEST_F(ServerLimitsTest, AConnectionServesManyRequests) {
  Start();
  TestClient client = Connect();
  for (int i = 0; i < 100; ++i) {
    const std::string event = std::to_string(i);
    client.Send(RankOf(event));
    ASSERT_EQ(client.Receive().Json()["eventId"], event);
  }
}

TEST_F(ServerLimitsTest, PipelinedRequestsAreAnsweredInOrder) {
  Start();
  TestClient client = Connect();
  std::string requests;
  for (int i = 0; i < 200; ++i) {
    requests += RankOf(std::to_string(i));
    requests += kLive;
  }
  std::thread sender([&] { client.Send(requests); });
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(client.Receive().Json()["eventId"], std::to_string(i));
    ASSERT_EQ(client.Receive().Json()["status"], "live");
  }
  sender.join();
}

TEST_F(ServerLimitsTest, ARequestMayComeByteByByte) {
  Start();
  TestClient client = Connect();
  for (const char byte : RankOf("slow")) ASSERT_TRUE(client.Send(std::string_view(&byte, 1)));
  EXPECT_EQ(client.Receive().Json()["eventId"], "slow");
}

TEST_F(ServerLimitsTest, ConnectionsLastAsLongAsTheClientWants) {
  Start();
  TestClient old = Connect();
  old.Send("GET /v1/health/live HTTP/1.0\r\n\r\n");
  const TestReply reply = old.Receive();
  EXPECT_EQ(reply.status, 200);
  EXPECT_TRUE(reply.Has("Connection: close\r\n"));
  EXPECT_TRUE(old.Ended());
  TestClient kept = Connect();
  for (int i = 0; i < 2; ++i) {
    kept.Send("GET /v1/health/live HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    EXPECT_TRUE(kept.Receive().Has("Connection: keep-alive\r\n"));
  }
  TestClient closing = Connect();
  EXPECT_EQ(closing.Request("GET", "/v1/health/live", "", "Connection: close\r\n").status, 200);
  EXPECT_TRUE(closing.Ended());
}

TEST_F(ServerLimitsTest, ContinuesWhenExpected) {
  Start();
  TestClient client = Connect();
  const std::string body = R"({"userId":"u"})";
  client.Send(kPostRank + "Expect: 100-continue\r\nContent-Length: " + std::to_string(body.size()) +
              "\r\n\r\n");
  EXPECT_EQ(client.Receive().status, 100);
  client.Send(body);
  EXPECT_EQ(client.Receive().status, 200);
  // A request that would be refused is refused at once.
  client.Send(kPostRank + "Expect: 100-continue\r\nContent-Length: 9999999\r\n\r\n");
  EXPECT_EQ(client.Receive().status, 413);
  EXPECT_EQ(Request("GET", "/v1/models", "", "Expect: miracles\r\n").status, 417);
}

TEST_F(ServerLimitsTest, LargeBodiesAreRefusedBeforeTheyAreRead) {
  Start({.max_body_bytes = 1000});
  TestClient announced = Connect();
  announced.Send(kPostRank + "Content-Length: 1001\r\n\r\n");
  const TestReply reply = announced.Receive();  // no byte of the body was sent
  EXPECT_EQ(reply.status, 413);
  EXPECT_EQ(reply.Error("field"), "body");
  EXPECT_TRUE(reply.Has("Connection: close\r\n"));
  announced.ShutdownSend();
  EXPECT_TRUE(announced.Ended());
  // One that does not say how long it is.
  TestClient chunked = Connect();
  chunked.Send(kPostRank + "Transfer-Encoding: chunked\r\n\r\n");
  const std::string chunk = "100\r\n" + std::string(0x100, ' ') + "\r\n";
  for (int i = 0; i < 10; ++i) chunked.Send(chunk);
  EXPECT_EQ(chunked.Receive().status, 413);
  // At the limit it is taken.
  const std::string body = R"({"userId":"u"})";
  EXPECT_EQ(Request("POST", "/v1/rank", body + std::string(1000 - body.size(), ' ')).status, 200);
  EXPECT_EQ(engine_.calls(), 1u);
}

// A login needs no key, so anybody may send its body: a thousand large ones would fill the memory.
TEST_F(ServerLimitsTest, StrangersMaySendSmallBodiesOnly) {
  Start();
  const std::string login = "POST /v1/session" + kJsonHead;
  TestClient announced = Connect();
  announced.Send(login + "Content-Length: 16385\r\n\r\n");  // no byte of the body was sent
  EXPECT_EQ(announced.Receive().status, 413);
  TestClient chunked = Connect();
  chunked.Send(login + "Transfer-Encoding: chunked\r\n\r\n");
  const std::string chunk = "1000\r\n" + std::string(0x1000, ' ') + "\r\n";
  for (int i = 0; i < 5; ++i) chunked.Send(chunk);
  EXPECT_EQ(chunked.Receive().status, 413);
  const auto probe = Connect().Request("GET", "/v1/health/live", std::string(16385, ' '));
  EXPECT_EQ(probe.status, 413) << "nobody looks at the body of a GET";
  const std::string key = R"({"key":"x"})";
  EXPECT_EQ(Request("POST", "/v1/session", key + std::string(16384 - key.size(), ' ')).status, 409)
      << "this server has no keys";
}

TEST_F(ServerLimitsTest, TheWholeOfARefusedBodyMayBeSent) {
  Start({.max_body_bytes = 1000});
  TestClient client = Connect();
  const std::string body(3'000'000, ' ');
  std::thread sender([&] { client.Send(kPostRank + "Content-Length: 3000000\r\n\r\n" + body); });
  // The reply is not lost although the client is still sending.
  EXPECT_EQ(client.Receive().status, 413);
  client.ShutdownSend();
  sender.join();
}

TEST_F(ServerLimitsTest, ImportsHaveALimitOfTheirOwn) {
  Start({.max_body_bytes = 1000, .max_stream_bytes = 5000});
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += "{\"id\":\"a\",\"features\":[1,2,3,4]}\n";
  EXPECT_EQ(Request("POST", "/v1/items", lines).status, 200);
  EXPECT_EQ(Request("POST", "/v1/items", lines + lines).status, 413);
  EXPECT_EQ(Request("POST", "/v1/items", std::string(1001, ' ')).Error("message"),
            "has a line of more than 1000 bytes");
}

TEST_F(ServerLimitsTest, LargeHeadersAreRefused) {
  Start();
  EXPECT_EQ(
      Request("GET", "/v1/health/live", "", "X-A: " + std::string(10'000, 'a') + "\r\n").status,
      200);
  EXPECT_EQ(
      Request("GET", "/v1/health/live", "", "X-A: " + std::string(20'000, 'a') + "\r\n").status,
      431);
  EXPECT_EQ(Request("GET", "/" + std::string(20'000, 'a')).status, 431);
  // Many small ones, each of which would do.
  TestClient client = Connect();
  client.Send("GET /v1/health/live HTTP/1.1\r\nHost: localhost\r\n");
  for (int i = 0; i < 1000; ++i) {
    if (!client.Send("X-A: " + std::string(100, 'a') + "\r\n")) break;
  }
  EXPECT_EQ(client.Receive().status, 431);
}

TEST_F(ServerLimitsTest, MalformedHttpIsRefused) {
  Start();
  for (const std::string& bytes :
       std::vector<std::string>{"nonsense\r\n\r\n", "GET / HTTP/3.0\r\n\r\n", "GET /\r\n\r\n",
                                "\x16\x03\x01\x02\r\n\r\n", kPostRank + "Content-Length: x\r\n\r\n",
                                kPostRank + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
                                kPostRank + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n"}) {
    TestClient client = Connect();
    client.Send(bytes);
    const TestReply reply = client.Receive();
    EXPECT_EQ(reply.status, 400) << bytes;
    EXPECT_EQ(reply.Error("code"), "BadRequest");
    client.ShutdownSend();
    EXPECT_TRUE(client.Ended());
  }
  EXPECT_EQ(Request("GET", "/v1/health/live").status, 200);
}

TEST_F(ServerLimitsTest, SlowRequestsTimeOut) {
  Start({.request_timeout_ms = 150});
  for (const std::string& start : std::vector<std::string>{
           "G", "GET /v1/health/live HTTP/1.1\r\nHost: localhost\r\nX-",
           kPostRank + "Content-Length: 9\r\n\r\n{", kPostItems + "Content-Length: 9\r\n\r\n{"}) {
    TestClient client = Connect();
    client.Send(start);
    const TestReply reply = client.Receive();
    EXPECT_EQ(reply.status, 408) << start;
    EXPECT_EQ(reply.Error("code"), "RequestTimeout");
    client.ShutdownSend();
    EXPECT_TRUE(client.Ended());
  }
}

TEST_F(ServerLimitsTest, ATrickleDoesNotExtendTheTimeout) {
  Start({.request_timeout_ms = 150});
  TestClient client = Connect();
  client.Send("GET /v1/health/live HTTP/1.1\r\nHost: localhost\r\nX-A: ");
  std::atomic<bool> answered = false;
  std::thread sender([&] {
    while (!answered && client.Send("a"))
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
  });
  EXPECT_EQ(client.Receive().status, 408);
  answered = true;
  sender.join();
}

TEST_F(ServerLimitsTest, IdleConnectionsAreClosedWithoutAReply) {
  Start({.idle_timeout_ms = 100});
  TestClient fresh = Connect();
  EXPECT_TRUE(fresh.Ended());
  TestClient used = Connect();
  EXPECT_EQ(used.Request("GET", "/v1/health/live").status, 200);
  EXPECT_TRUE(used.Ended());
}

TEST_F(ServerLimitsTest, AnAnswerMayTakeLongerThanARequest) {
  Start({.request_timeout_ms = 50, .idle_timeout_ms = 50});
  engine_.Hold();
  TestClient client = Connect();
  client.Send(RankOf("e"));
  engine_.AwaitWaiting(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  engine_.Release();
  EXPECT_EQ(client.Receive().status, 200);
}

TEST_F(ServerLimitsTest, AClientThatReadsNothingIsDropped) {
  Start({.request_timeout_ms = 200});
  TestClient client = Connect();
  // Answers pile up until no buffer takes more.
  std::string requests;
  for (int i = 0; i < 1000; ++i)
    requests += "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n";
  client.Send(requests);
  // The connection is given back all the same: the count comes down to that of the asking one.
  bool gone = false;
  for (int i = 0; i < 1000 && !gone; ++i) {
    gone = Request("GET", "/metrics").body.find("codband_connections 1\n") != std::string::npos;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(gone);
}

TEST_F(ServerLimitsTest, ClientsMayVanishAtAnyPoint) {
  Start();
  const std::string request = RankOf("e");
  for (std::size_t cut = 0; cut <= request.size(); cut += 7) {
    TestClient reset = Connect();
    reset.Send(request.substr(0, cut));
    reset.Reset();
    TestClient closed = Connect();
    closed.Send(request.substr(0, cut));
  }
  // While the engine works on their request.
  engine_.Hold();
  std::vector<TestClient> clients;
  for (int i = 0; i < 10; ++i) {
    clients.push_back(Connect());
    clients.back().Send(request);
  }
  engine_.AwaitWaiting(10);
  for (TestClient& client : clients) client.Reset();
  engine_.Release();
  EXPECT_EQ(Request("POST", "/v1/rank", R"({"userId":"u"})").status, 200);
}

TEST_F(ServerLimitsTest, TwoHundredConnectionsAtOnce) {
  Start();
  engine_.Hold();
  std::vector<TestClient> clients;
  for (int i = 0; i < 200; ++i) {
    clients.push_back(Connect());
    ASSERT_TRUE(clients.back().connected());
    clients.back().Send(RankOf(std::to_string(i)));
  }
  engine_.AwaitWaiting(200);
  engine_.Release();
  for (std::size_t i = 0; i < clients.size(); ++i) {
    EXPECT_EQ(clients[i].Receive().Json()["eventId"], std::to_string(i));
  }
}

TEST_F(ServerLimitsTest, StopAnswersWhatWasReadAndNothingElse) {
  Start();
  engine_.Hold();
  TestClient idle = Connect();
  EXPECT_EQ(idle.Request("GET", "/v1/health/live").status, 200);
  TestClient half = Connect();
  half.Send(kPostRank + "Content-Le");
  std::vector<TestClient> working;
  for (int i = 0; i < 20; ++i) {
    working.push_back(Connect());
    working.back().Send(RankOf(std::to_string(i)));
  }
  engine_.AwaitWaiting(20);
  auto stopped = std::async(std::launch::async, [&] { server_->Stop(); });
  EXPECT_TRUE(idle.Ended());
  EXPECT_TRUE(half.Ended());
  engine_.Release();
  for (std::size_t i = 0; i < working.size(); ++i) {
    const TestReply reply = working[i].Receive();
    EXPECT_EQ(reply.Json()["eventId"], std::to_string(i));
    EXPECT_TRUE(reply.Has("Connection: close\r\n"));
    EXPECT_TRUE(working[i].Ended());
  }
  stopped.get();
  EXPECT_FALSE(Connect().connected());
  server_->Stop();  // a second time is fine
}

TEST_F(ServerLimitsTest, StopsUnderLoad) {
  for (int round = 0; round < 5; ++round) {
    Start();
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&, port = server_->port()] {
        TestClient client(port);
        int answers = 0;
        while (client.Send(RankOf("e"))) {
          const TestReply reply = client.Receive();
          if (reply.status == 0) break;  // closed, never half an answer
          ASSERT_EQ(reply.status, 200);
          ++answers;
        }
      });
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    server_->Stop();
    for (std::thread& thread : threads) thread.join();
  }
}

}  // namespace
}  // namespace codband::server
