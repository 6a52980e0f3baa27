#include "codband/server/http/http_client.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

namespace codband::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(HttpUrlTest, AddressesAreTakenApart) {
  const auto check = [](const char* text, const char* host, int port) {
    const auto url = ParseHttpUrl(text);
    ASSERT_TRUE(url.ok()) << text;
    EXPECT_EQ(url.value().host, host) << text;
    EXPECT_EQ(url.value().port, port) << text;
  };
  check("http://127.0.0.1:8080", "127.0.0.1", 8080);
  check("http://[::1]:81/v1/rank", "::1", 81);
  check("http://example.org/", "example.org", 80);
  check("http://[::1]", "::1", 80);
  check("https://example.org/", "example.org", 443);
  EXPECT_TRUE(ParseHttpUrl("https://[::1]:8443").value().tls);
  EXPECT_FALSE(ParseHttpUrl("http://[::1]:8443").value().tls);
  for (const char* text :
       {"", "127.0.0.1:80", "ftp://x", "http://", "http://x:y", "http://x:99999", "http://:80"}) {
    EXPECT_FALSE(ParseHttpUrl(text).ok()) << text;
  }
}

using Replies = std::vector<std::string>;

// Answers requests as told: one connection after the other, each closed after its replies.
class ScriptedServer {
 public:
  explicit ScriptedServer(std::vector<Replies> connections) {
    listener_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listener_, generic, size), 0);
    EXPECT_EQ(listen(listener_, 5), 0);
    EXPECT_EQ(getsockname(listener_, generic, &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, script = std::move(connections)] {
      for (const auto& replies : script) Serve(replies);
    });
  }
  ~ScriptedServer() {
    thread_.join();
    close(listener_);
  }

  HttpUrl url() const { return {.host = "127.0.0.1", .port = port_}; }
  const std::vector<std::string>& requests() const { return requests_; }

 private:
  // Requests end with their body "}" or, without one, with the header.
  void Serve(const Replies& replies) {
    const int connection = accept(listener_, nullptr, nullptr);
    for (const std::string& reply : replies) {
      std::string request;
      char c = 0;
      while (read(connection, &c, 1) == 1) {
        request += c;
        const bool header = request.ends_with("\r\n\r\n");
        if ((header && request.find("Content-Length") == request.npos) || c == '}') break;
      }
      requests_.push_back(request);
      EXPECT_EQ(write(connection, reply.data(), reply.size()), static_cast<ssize_t>(reply.size()));
    }
    close(connection);
  }

  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::vector<std::string> requests_;
  std::thread thread_;
};

const std::string kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
const std::string kRefused = "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone";

TEST(HttpClientTest, SendsMethodTargetHeadersAndBodyAndReturnsAnyStatus) {
  ScriptedServer server(std::vector<Replies>{Replies{kOk, kRefused}});
  auto client = HttpClient::Connect(server.url(), seconds(10)).value();
  const HttpRequest post{.method = "POST",
                         .target = "/v1/backup",
                         .headers = {{"X-API-Key", "secret"}},
                         .body = R"({"directory":"/b"})"};
  const auto reply = client->Send(post, seconds(10));
  ASSERT_TRUE(reply.ok()) << reply.status().message();
  EXPECT_EQ(reply.value().status, 200U);
  EXPECT_EQ(reply.value().body, "hi");
  const auto refused = client->Send({.target = "/nothing"}, seconds(10));
  ASSERT_TRUE(refused.ok()) << refused.status().message();
  EXPECT_EQ(refused.value().status, 404U);
  EXPECT_EQ(refused.value().body, "none");
  const std::string& sent = server.requests().at(0);
  EXPECT_EQ(sent.rfind("POST /v1/backup HTTP/1.1\r\n", 0), 0U) << sent;
  EXPECT_NE(sent.find("X-API-Key: secret\r\n"), sent.npos) << sent;
  EXPECT_NE(sent.find("Content-Type: application/json\r\n"), sent.npos) << sent;
  EXPECT_TRUE(sent.ends_with("\r\n\r\n{\"directory\":\"/b\"}")) << sent;
}

TEST(HttpClientTest, ConnectsAgainWhenTheServerClosedAnIdleConnection) {
  ScriptedServer server(std::vector<Replies>{Replies{kOk}, Replies{kRefused}});
  auto client = HttpClient::Connect(server.url(), seconds(10)).value();
  EXPECT_EQ(client->Send({}, seconds(10)).value().status, 200U);
  const auto again = client->Send({}, seconds(10));
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again.value().status, 404U);
}

TEST(HttpClientTest, AConnectionThatBreaksBeforeTheReplyIsAnError) {
  ScriptedServer server(
      std::vector<Replies>{Replies{"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nhi"}});
  auto client = HttpClient::Connect(server.url(), seconds(10)).value();
  EXPECT_EQ(client->Send({}, seconds(10)).status().code(), StatusCode::kIoError);
}

TEST(HttpClientTest, NobodyListeningAndNoAnswerAreUnavailable) {
  HttpUrl url;
  {
    ScriptedServer silent(std::vector<Replies>{});  // connections wait to be accepted for ever
    url = silent.url();
    auto client = HttpClient::Connect(url, seconds(10)).value();
    EXPECT_EQ(client->Send({}, milliseconds(50)).status().code(), StatusCode::kUnavailable);
  }
  EXPECT_EQ(HttpClient::Connect(url, seconds(10)).status().code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace codband::server
