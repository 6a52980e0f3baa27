#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace codband::server {

struct TestReply {
  int status = 0;       // 0: the connection ended
  std::string headers;  // as sent, the status line included
  std::string body;

  bool Has(std::string_view text) const { return headers.find(text) != std::string::npos; }
  nlohmann::json Json() const { return nlohmann::json::parse(body, nullptr, false); }
  std::string Error(const char* member) const {
    const nlohmann::json parsed = Json();
    if (!parsed.is_object() || !parsed.contains("error")) return "no error: " + body;
    return parsed["error"].value(member, "");
  }
};

// A client that sends exactly the given bytes. For tests only. Waits half a minute at most for
// anything, so that a server that hangs fails a test instead of blocking it.
class TestClient {
 public:
  explicit TestClient(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    const timeval limit{.tv_sec = 30, .tv_usec = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ =
        ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }
  TestClient(TestClient&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)),
        connected_(other.connected_),
        input_(std::move(other.input_)) {}
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;
  ~TestClient() {
    if (socket_ >= 0) ::close(socket_);
  }

  bool connected() const { return connected_; }

  // False if the server does not take it all.
  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }

  TestReply Receive(bool head = false) {
    TestReply reply;
    std::size_t end = input_.find("\r\n\r\n");
    while (end == std::string::npos) {
      if (!ReadSome()) return reply;
      end = input_.find("\r\n\r\n");
    }
    reply.headers = input_.substr(0, end + 4);
    input_.erase(0, end + 4);
    std::size_t length = 0;
    const std::size_t field = reply.headers.find("Content-Length: ");
    if (field != std::string::npos) length = std::stoul(reply.headers.substr(field + 16));
    if (head) length = 0;
    while (input_.size() < length) {
      if (!ReadSome()) return reply;
    }
    reply.body = input_.substr(0, length);
    input_.erase(0, length);
    reply.status = std::stoi(reply.headers.substr(9, 3));
    return reply;
  }

  // A body is sent as application/json unless the headers say otherwise.
  TestReply Request(std::string_view method, std::string_view target, std::string_view body = {},
                    std::string_view headers = {}) {
    std::string request(method);
    request.append(" ").append(target).append(" HTTP/1.1\r\nHost: localhost\r\n").append(headers);
    if (!body.empty()) {
      request += "Content-Length: " + std::to_string(body.size()) + "\r\n";
      if (headers.find("Content-Type:") == headers.npos) {
        request += "Content-Type: application/json\r\n";
      }
    }
    request.append("\r\n").append(body);
    Send(request);
    return Receive(method == "HEAD");
  }

  // Whether the server has closed the connection without sending more.
  bool Ended() { return input_.empty() && !ReadSome(); }

  // Of a body without an end: what stands between the two, from the next one on.
  std::string ReceiveUntil(std::string_view begin, std::string_view end) {
    while (true) {
      const std::size_t from = input_.find(begin);
      const std::size_t to = from == input_.npos ? from : input_.find(end, from + begin.size());
      if (to != input_.npos) {
        std::string text = input_.substr(from + begin.size(), to - from - begin.size());
        input_.erase(0, to + end.size());
        return text;
      }
      if (!ReadSome()) return {};
    }
  }
  // Reads on until the server closes the connection; false if it does not.
  bool EndsAtLast() {
    char buffer[4096];
    ssize_t count = 0;
    while ((count = ::recv(socket_, buffer, sizeof(buffer), 0)) > 0) {
    }
    return count == 0;
  }

  // Closes the connection with a reset.
  void Reset() {
    const linger now{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    ::close(std::exchange(socket_, -1));
  }
  void ShutdownSend() { ::shutdown(socket_, SHUT_WR); }

 private:
  bool ReadSome() {
    char buffer[65536];
    const ssize_t count = ::recv(socket_, buffer, sizeof(buffer), 0);
    if (count <= 0) return false;
    input_.append(buffer, static_cast<std::size_t>(count));
    return true;
  }

  int socket_;
  bool connected_ = false;
  std::string input_;
};

}  // namespace codband::server
