// The server with TLS.
#include "codband/server/http/tls_stream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "codband/server/http/http_client.h"
#include "codband/server/http/tls_testing.h"
#include "codband/server/server_fixture.h"

namespace codband::server {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

class TlsTest : public ServerFixture {
 protected:
  TlsTest() {
    std::string name = testing::TempDir() + "codband_tls_XXXXXX";
    directory_ = mkdtemp(name.data());
    files_ = WriteTestCertificate(directory_, "first");
  }
  ~TlsTest() override { fs::remove_all(directory_); }

  void StartTls(ServerOptions options = {}) {
    options.tls = files_;
    Start(options);
  }
  std::uint16_t port() const { return server_->port(); }
  Result<HttpReply> Ask(const std::string& fingerprint) const {
    auto client = HttpClient::Connect(
        {.host = "127.0.0.1", .port = port(), .tls = true, .fingerprint = fingerprint},
        seconds(10));
    if (!client.ok()) return client.status();
    return client.value()->Send({.target = "/v1/health/live"}, seconds(10));
  }
  std::string WriteText(const std::string& name, const std::string& text) const {
    std::ofstream(directory_ / name) << text;
    return directory_ / name;
  }

  fs::path directory_;
  TlsFiles files_;
};

const std::string kTlsRank = R"({"userId":"u"})";

TEST_F(TlsTest, ServesRequestsOfEveryKind) {
  StartTls();
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsTestClient client(port(), version);
    ASSERT_TRUE(client.connected());
    EXPECT_EQ(client.version(), version);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(client.Request("POST", "/v1/rank", kTlsRank).substr(0, 15), "HTTP/1.1 200 OK");
    }
    // A large body, a large reply, pipelined requests.
    std::string lines;
    for (int i = 0; i < 20'000; ++i) {
      lines += R"({"id":"item-)" + std::to_string(i) + R"(","features":[1,2,3,4]})" + "\n";
    }
    EXPECT_NE(client.Request("POST", "/v1/items", lines).find(R"("accepted":20000)"),
              std::string::npos);
    const std::string get = "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n";
    std::string many;
    for (int i = 0; i < 50; ++i) many += get;
    client.Send(many);
    const std::string first = client.Receive();
    EXPECT_GT(first.size(), 20'000U);
    for (int i = 1; i < 50; ++i) ASSERT_EQ(client.Receive().size(), first.size());
  }
}

TEST_F(TlsTest, OldVersionsAreRefused) {
  StartTls();
  EXPECT_FALSE(TlsTestClient(port(), TLS1_1_VERSION).connected());
  EXPECT_TRUE(TlsTestClient(port()).connected());
}

TEST_F(TlsTest, PlainHttpIsToldSo) {
  StartTls();
  const TestReply reply = Request("GET", "/v1/health/live");
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.Error("message"), "plain HTTP was sent to a server that speaks HTTPS");
  TestClient garbage = Connect();
  garbage.Send("\x16\x03\x01garbage garbage garbage");
  garbage.ShutdownSend();
  EXPECT_NE(garbage.Receive().status, 200);
  EXPECT_TRUE(TlsTestClient(port()).connected());
}

TEST_F(TlsTest, ConnectionsAreEndedCleanly) {
  StartTls({.idle_timeout_ms = 60'000});
  TlsTestClient client(port());
  client.Send("GET /v1/health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_NE(client.Receive().find("Connection: close\r\n"), std::string::npos);
  EXPECT_TRUE(client.EndedCleanly());
  TlsTestClient bad(port());
  bad.Send("GET / HTTP/1.1\r\n\r\n" + std::string(100'000, 'x'));
  EXPECT_EQ(bad.Receive().substr(0, 12), "HTTP/1.1 400");
}

TEST_F(TlsTest, ASlowHandshakeTimesOut) {
  StartTls({.request_timeout_ms = 150});
  TestClient silent = Connect();
  EXPECT_TRUE(silent.Ended());
  TestClient half = Connect();
  half.Send(std::string("\x16\x03\x01\x02\x00\x01", 6));
  EXPECT_TRUE(half.Ended());
  // So does a slow request behind it.
  TlsTestClient slow(port());
  slow.Send("GET / HT");
  EXPECT_EQ(slow.Receive().substr(0, 12), "HTTP/1.1 408");
  EXPECT_TRUE(slow.EndedCleanly());
}

TEST_F(TlsTest, TheIdlestConnectionGivesWayWithTlsToo) {
  StartTls({.threads = 1, .max_connections = 2});
  TlsTestClient first(port());
  TlsTestClient second(port());
  EXPECT_NE(first.Request("GET", "/v1/health/live").find("live"), std::string::npos);
  EXPECT_NE(second.Request("GET", "/v1/health/live").find("live"), std::string::npos);
  TlsTestClient third(port());
  EXPECT_NE(third.Request("GET", "/v1/health/live").find("live"), std::string::npos);
  EXPECT_EQ(first.Receive(), "");
  EXPECT_NE(second.Request("GET", "/v1/health/live").find("live"), std::string::npos);
}

TEST_F(TlsTest, ANewCertificateCountsForNewConnections) {
  StartTls();
  const std::string first = server_->certificate_fingerprint();
  EXPECT_EQ(first.size(), 64U);
  EXPECT_EQ(Ask(first).value().status, 200U);
  TlsTestClient old(port());
  EXPECT_NE(old.Request("GET", "/v1/health/live").find("live"), std::string::npos);
  // What cannot be used changes nothing.
  const TlsFiles second = WriteTestCertificate(directory_, "second");
  fs::rename(second.key, files_.key);
  EXPECT_EQ(server_->ReloadTls().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Ask(first).value().status, 200U);
  fs::rename(second.certificate, files_.certificate);
  ASSERT_TRUE(server_->ReloadTls().ok());
  const std::string now = server_->certificate_fingerprint();
  EXPECT_NE(now, first);
  EXPECT_EQ(Ask(now).value().status, 200U);
  EXPECT_EQ(Ask(first).status().code(), StatusCode::kUnavailable) << "another server";
  EXPECT_NE(old.Request("POST", "/v1/rank", kTlsRank).find("200 OK"), std::string::npos)
      << "a connection of before goes on";
}

TEST_F(TlsTest, AClientWithoutTheFingerprintTrustsWhomThisMachineTrusts) {
  StartTls();
  EXPECT_EQ(Ask("").status().code(), StatusCode::kUnavailable) << "nobody has signed it";
}

TEST_F(TlsTest, ReloadsUnderLoad) {
  StartTls();
  const TlsFiles second = WriteTestCertificate(directory_, "second");
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      TlsTestClient kept(port());
      while (!done) {
        ASSERT_NE(kept.Request("POST", "/v1/rank", kTlsRank).find("200 OK"), std::string::npos);
        TlsTestClient fresh(port());
        ASSERT_TRUE(fresh.connected());
      }
    });
  }
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(server_->ReloadTls().ok());
  done = true;
  for (std::thread& thread : threads) thread.join();
}

TEST_F(TlsTest, StopsWithOpenConnections) {
  StartTls();
  TlsTestClient idle(port());
  EXPECT_NE(idle.Request("GET", "/v1/health/live").find("live"), std::string::npos);
  TestClient handshaking = Connect();
  handshaking.Send("\x16");
  server_->Stop();
  EXPECT_EQ(idle.Receive(), "");
}

TEST_F(TlsTest, FilesThatCannotBeUsedAreNamed) {
  const TlsFiles second = WriteTestCertificate(directory_, "second");
  const TlsFiles locked = WriteTestCertificate(directory_, "locked", "password");
  const std::string text = WriteText("text", "no PEM");
  const auto error = [&](const fs::path& certificate, const fs::path& key) {
    const auto server =
        StartServer(engine_, {.port = 0, .tls = {.certificate = certificate, .key = key}});
    EXPECT_EQ(server.status().code(), StatusCode::kInvalidArgument);
    std::string message = server.status().message();
    while (message.find(directory_.string()) != message.npos) {
      message.erase(message.find(directory_.string()), directory_.string().size() + 1);
    }
    return message;
  };
  EXPECT_EQ(error(files_.certificate, ""),
            "tls.key is missing: TLS needs both tls.certificate and tls.key");
  EXPECT_EQ(error("", files_.key),
            "tls.certificate is missing: TLS needs both tls.certificate and tls.key");
  EXPECT_EQ(error(directory_ / "none", files_.key).substr(0, 24), "tls.certificate is none:");
  EXPECT_EQ(error(files_.certificate, directory_ / "none").substr(0, 16), "tls.key is none:");
  EXPECT_EQ(error(text, files_.key), "tls.certificate is text: is not a certificate in PEM");
  EXPECT_EQ(error(files_.certificate, text), "tls.key is text: is not a key in PEM");
  EXPECT_EQ(error(files_.certificate, second.key),
            "tls.key is second.key: does not belong to the certificate in first.crt");
  EXPECT_EQ(error(locked.certificate, locked.key),
            "tls.key is locked.key: is encrypted, expected a key without a password");
  EXPECT_EQ(error(files_.certificate, directory_).substr(0, 10), "tls.key is");
}

}  // namespace
}  // namespace codband::server
