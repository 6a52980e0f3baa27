#include "bench/load_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/connect.hpp>
#include <boost/asio/write.hpp>
#include <charconv>
#include <stdexcept>
#include <utility>

#include "codband/base/clock.h"

namespace codband {
namespace asio = boost::asio;

double LoadResult::Percentile(double share) {
  if (latency_us.empty()) return 0;
  std::sort(latency_us.begin(), latency_us.end());
  const auto index = static_cast<std::size_t>(share * static_cast<double>(latency_us.size()));
  return static_cast<double>(latency_us[std::min(index, latency_us.size() - 1)]);
}

void LoadResult::Add(LoadResult&& other) {
  seconds += other.seconds;
  requests += other.requests;
  failures += other.failures;
  if (first_failure.empty()) first_failure = std::move(other.first_failure);
  latency_us.insert(latency_us.end(), other.latency_us.begin(), other.latency_us.end());
}

LoadClient::LoadClient(const std::vector<std::uint16_t>& ports, std::size_t connections) {
  for (std::size_t i = 0; i < connections; ++i) {
    const asio::ip::tcp::endpoint server(asio::ip::make_address("127.0.0.1"),
                                         ports[i % ports.size()]);
    Connection& connection = connections_.emplace_back(io_);
    connection.number = i;
    connection.input.resize(1 << 16);
    connection.socket.connect(server);
    connection.socket.set_option(asio::ip::tcp::no_delay(true));
  }
}

LoadResult LoadClient::Run(const Next& next) {
  next_ = &next;
  result_ = {};
  const double start = WallSeconds();
  for (Connection& connection : connections_) Send(connection, {});
  io_.run();
  io_.restart();
  result_.seconds = WallSeconds() - start;
  return std::move(result_);
}

void LoadClient::Send(Connection& connection, std::string_view reply) {
  const std::string_view request = (*next_)(connection.number, reply);
  if (request.empty()) return;
  connection.sent_at = WallSeconds();
  // Requests are small and the connection is idle: they fit into the socket's buffer.
  asio::write(connection.socket, asio::buffer(request.data(), request.size()));
  Read(connection);
}

void LoadClient::Read(Connection& connection) {
  if (connection.filled == connection.input.size()) {
    connection.input.resize(2 * connection.input.size());
  }
  connection.socket.async_read_some(
      asio::buffer(connection.input.data() + connection.filled,
                   connection.input.size() - connection.filled),
      [this, &connection](const boost::system::error_code& error, std::size_t got) {
        if (error) throw std::runtime_error("the server closed a connection: " + error.message());
        connection.filled += got;
        if (!TakeReply(connection)) Read(connection);
      });
}

bool LoadClient::TakeReply(Connection& connection) {
  const std::string_view input(connection.input.data(), connection.filled);
  const std::size_t head = input.find("\r\n\r\n");
  if (head == input.npos) return false;
  std::size_t length = 0;
  constexpr std::string_view kLength = "Content-Length: ";
  if (const std::size_t at = input.substr(0, head).find(kLength); at != input.npos) {
    std::from_chars(input.data() + at + kLength.size(), input.data() + head, length);
  }
  if (connection.filled < head + 4 + length) return false;
  const std::string_view body = input.substr(head + 4, length);
  const double now = WallSeconds();
  result_.latency_us.push_back(static_cast<float>(1e6 * (now - connection.sent_at)));
  ++result_.requests;
  if (input.size() < 10 || input[9] != '2') {  // HTTP/1.1 200
    if (result_.failures++ == 0) result_.first_failure = input.substr(0, head + 4 + length);
  }
  connection.filled = 0;
  Send(connection, body);
  return true;
}

std::string MakeGet(std::string_view target) {
  return fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n", target);
}

std::string MakePost(std::string_view target, std::string_view body, std::string_view type) {
  return fmt::format(
      "POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {}\r\nContent-Length: {}\r\n\r\n{}",
      target, type, body.size(), body);
}

}  // namespace codband
