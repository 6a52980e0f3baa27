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

// What came of many requests.
struct LoadResult {
  double seconds = 0;
  std::uint64_t requests = 0;
  std::uint64_t failures = 0;     // replies that say so
  std::string first_failure;      // status and body
  std::vector<float> latency_us;  // of each request

  double per_second() const { return static_cast<double>(requests) / seconds; }
  // Of the latencies, for a share from 0 to 1; sorts them.
  double Percentile(double share);
  void Add(LoadResult&& other);
};

// Drives a server over several connections from one thread, one request at a time on each. Small
// and quick, so that the server is what is measured: requests are plain strings, of replies only
// status and length are looked at.
class LoadClient {
 public:
  // Throws std::system_error if it cannot connect.
  LoadClient(std::uint16_t port, std::size_t connections);

  // What a connection sends next, given its number and the body of the last reply (empty at first);
  // an empty request ends it.
  using Next = std::function<std::string_view(std::size_t connection, std::string_view reply)>;
  // Goes on until every connection has ended.
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
  // Whether the input holds a whole reply; passes it on if so.
  bool TakeReply(Connection& connection);

  boost::asio::io_context io_{1};
  std::deque<Connection> connections_;
  const Next* next_ = nullptr;
  LoadResult result_;
};

// Requests as they go over the wire.
std::string MakeGet(std::string_view target);
std::string MakePost(std::string_view target, std::string_view body,
                     std::string_view type = "application/json");

}  // namespace codband
