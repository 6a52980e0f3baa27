// A node that is not what it says: it is in the tables, and answers what it likes.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tests/serve_partitions_testing.h"

namespace codband {
namespace {

constexpr std::string_view kGood = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";

// Accepts connections one after the other, reads a request from each, answers and closes.
class HostileNode {
 public:
  HostileNode() : listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listener_, generic, size), 0);
    EXPECT_EQ(::listen(listener_, 64), 0);
    EXPECT_EQ(::getsockname(listener_, generic, &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Run(); });
  }
  ~HostileNode() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  // To the next `times` requests, then kGood. What is `endless` is sent while it is taken.
  void Answer(std::string bytes, std::string endless = {}, int times = 1) {
    const std::lock_guard lock(mutex_);
    bytes_ = std::move(bytes);
    endless_ = std::move(endless);
    times_ = times;
    requests_.clear();
    sent_ = 0;
  }
  std::vector<std::string> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  std::size_t sent() const { return sent_; }

 private:
  static bool Send(int connection, const std::string& bytes) {
    for (std::string_view rest = bytes; !rest.empty();) {
      const ssize_t count = ::send(connection, rest.data(), rest.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      rest.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }
  void Run() {
    while (true) {
      const int connection = ::accept(listener_, nullptr, nullptr);
      if (connection < 0) return;
      std::string request(4096, '\0');
      const ssize_t count = ::recv(connection, request.data(), request.size(), 0);
      request.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
      std::string bytes(kGood);
      std::string endless;
      {
        const std::lock_guard lock(mutex_);
        requests_.push_back(request);
        if (times_-- > 0) {
          bytes = bytes_;
          endless = endless_;
        }
      }
      bool taken = Send(connection, bytes);
      while (taken && !endless.empty()) {
        taken = Send(connection, endless);
        sent_ += taken ? endless.size() : 0;
      }
      ::close(connection);
    }
  }

  int listener_;
  std::uint16_t port_ = 0;
  mutable std::mutex mutex_;  // guards what follows
  std::string bytes_;
  std::string endless_;
  int times_ = 0;
  std::vector<std::string> requests_;
  std::atomic<std::size_t> sent_{0};
  std::thread thread_;
};

class ServeHostileNodeTest : public ServePartitionsTest {
 protected:
  void SetUp() override {
    ServePartitionsTest::SetUp();
    node_ = StartNode("a");
    ASSERT_TRUE(node_->listens());
    AwaitShares({node_.get()});
    cluster::Psql psql("codband", database_);
    psql.Run(
        "INSERT INTO nodes (name, instance, url, version, draining, follows, lease_until) "
        "VALUES ('evil', 'x', 'http://" +
        hostile_.address() + "', '', false, '', now() + interval '1 hour')");
    psql.Run(
        "UPDATE partitions SET epoch = epoch + 1, owner = 'evil', "
        "lease_until = now() + interval '1 hour'");
    WaitFor([&] { return Metric(*node_, "codband_cluster_partitions_here") == 0; });
  }
  server::HttpReply Send(const std::string& method, const std::string& target,
                         const std::string& body = {}) const {
    const auto reply =
        node_->Connect()->Send({.method = method, .target = target, .body = body}, kPatience);
    EXPECT_TRUE(reply.ok()) << reply.status().ToString();
    return reply.ok() ? reply.value() : server::HttpReply();
  }

  HostileNode hostile_;
  std::unique_ptr<ServerProcess> node_;
};

// They count as no answer, and it is asked again.
TEST_F(ServeHostileNodeTest, OnlyAnswersArePassedOn) {
  for (const std::string answer :
       {"HTTP/1.1 101 Switching Protocols\r\n\r\n", "HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999\r\n\r\n{", "no HTTP at all\r\n\r\n"}) {
    hostile_.Answer(answer);
    const server::HttpReply reply = Send("GET", "/v1/users/ann");
    EXPECT_EQ(reply.status, 200U) << answer;
    EXPECT_EQ(reply.body, "{}") << answer;
    EXPECT_EQ(hostile_.requests().size(), 2U) << answer;
  }
}

TEST_F(ServeHostileNodeTest, AReplyWithoutEndIsGivenUp) {
  hostile_.Answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                  "40000\r\n" + std::string(256 * 1024, 'x') + "\r\n");
  EXPECT_EQ(Send("GET", "/v1/users/ann").body, "{}");
  EXPECT_LT(hostile_.sent() >> 20, 100U) << "megabytes";
}

// It says that it does not have what it owns.
TEST_F(ServeHostileNodeTest, ANodeThatRefusesIsNotAskedWithoutEnd) {
  hostile_.Answer("HTTP/1.1 421 Misdirected\r\nContent-Length: 17\r\n\r\n{\"partitions\":[]}", {},
                  1'000'000);
  EXPECT_EQ(Send("POST", "/v1/events/unknown/reward", R"({"value":1})").status, 503U);
  EXPECT_GT(hostile_.requests().size(), 10U);
  EXPECT_LT(hostile_.requests().size(), 100U);
}

// The client's node knows the length of the reply then.
TEST_F(ServeHostileNodeTest, HeadIsPassedOnAsGet) {
  EXPECT_EQ(Send("HEAD", "/v1/users/ann").status, 200U);
  ASSERT_EQ(hostile_.requests().size(), 1U);
  EXPECT_TRUE(hostile_.requests()[0].starts_with("GET /v1/users/ann ")) << hostile_.requests()[0];
}

TEST_F(ServeHostileNodeTest, StrangersAreNotToldWhereNodesAre) {
  const std::string who_may_read = Send("POST", "/v1/backup", R"({"name":"x"})").body;
  EXPECT_NE(who_may_read.find(hostile_.address()), std::string::npos) << who_may_read;
  const server::HttpReply stranger = Send("GET", "/");
  EXPECT_EQ(stranger.status, 503U);
  EXPECT_EQ(stranger.body.find("127.0.0.1"), std::string::npos) << stranger.body;
}

}  // namespace
}  // namespace codband
