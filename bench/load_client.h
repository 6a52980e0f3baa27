#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace codband {

// The outcome of many requests.
struct LoadResult {
  double seconds = 0;
  std::uint64_t requests = 0;
  std::uint64_t failures = 0;     // replies other than 2xx
  std::string first_failure;      // status and body
  std::vector<float> latency_us;  // of each request

  double per_second() const { return static_cast<double>(requests) / seconds; }
  // A percentile of the latencies, for a share in [0, 1]; sorts them.
  double Percentile(double share);
  void Add(LoadResult&& other);
};

// Drives a server over several connections from one thread, with one request at a time on each.
// Does little itself, so that the server is what is measured: requests are ready-made strings, and
// of replies only status and length are parsed.
class LoadClient {
 public:
  // Connections go to the ports in turn. Throws std::system_error if it cannot connect.
  LoadClient(const std::vector<std::uint16_t>& ports, std::size_t connections);

  // The next request of a connection, given its number and the body of the last reply (empty at
  // first); an empty request ends it.
  using Next = std::function<std::string_view(std::size_t connection, std::string_view reply)>;
  // Runs until every connection has ended.
  LoadResult Run(const Next& next);

 private:
  struct Connection {
    explicit Connection(boost::asio::io_context& io) : socket(io) {}
    boost::asio::ip::tcp::socket socket;
    std::size_t number = 0;
    std::string input = {};
    std::size_t filled = 0;
    double sent_at = 0;
  };

  void Send(Connection& connection, std::string_view reply);
  void Read(Connection& connection);
  // Whether the input holds a complete reply; if so, the next request is sent.
  bool TakeReply(Connection& connection);

  boost::asio::io_context io_{1};
  std::deque<Connection> connections_;
  const Next* next_ = nullptr;
  LoadResult result_;
};

// Requests as they are sent.
std::string MakeGet(std::string_view target);
std::string MakePost(std::string_view target, std::string_view body,
                     std::string_view type = "application/json");

}  // namespace codband
