#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <deque>
#include <string>
#include <thread>

#include "bench/load_client.h"

namespace codband {

// What a server gets from open overviews of its dashboard, until the object is destroyed: of each
// the stream of live events, and GET /v1/stats three times in thirty seconds
// (web/src/overview.tsx). A thread of its own reads the replies and does nothing with them:
// browsers are on other machines.
class OpenDashboards {
 public:
  // Returns when every stream has begun; throws boost::system::system_error if one does not.
  OpenDashboards(std::uint16_t port, std::size_t count);
  ~OpenDashboards();
  OpenDashboards(const OpenDashboards&) = delete;
  OpenDashboards& operator=(const OpenDashboards&) = delete;

  // Bytes of live events, and replies of /v1/stats, so far.
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t curves() const { return curves_; }

 private:
  struct Stream {
    explicit Stream(boost::asio::io_context& io) : socket(io) {}
    boost::asio::ip::tcp::socket socket;
    std::string input;
  };

  void Read(Stream& stream);
  void AskForCurves();

  boost::asio::io_context io_{1};
  std::deque<Stream> streams_;
  LoadClient curves_client_;
  boost::asio::steady_timer timer_{io_};
  std::atomic<std::uint64_t> bytes_ = 0;
  std::atomic<std::uint64_t> curves_ = 0;
  std::thread thread_;
};

}  // namespace codband
