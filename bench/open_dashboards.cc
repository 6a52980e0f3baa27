#include "bench/open_dashboards.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <stdexcept>
#include <string_view>

namespace codband {
namespace asio = boost::asio;

OpenDashboards::OpenDashboards(std::uint16_t port, std::size_t count) : curves_client_({port}, 1) {
  const asio::ip::tcp::endpoint server(asio::ip::make_address("127.0.0.1"), port);
  const std::string request = MakeGet("/v1/live");
  for (std::size_t i = 0; i < count; ++i) {
    Stream& stream = streams_.emplace_back(io_);
    stream.socket.connect(server);
    asio::write(stream.socket, asio::buffer(request));
  }
  for (Stream& stream : streams_) {
    asio::read_until(stream.socket, asio::dynamic_buffer(stream.input), "event: live");
    stream.input.resize(1 << 16);
    Read(stream);
  }
  AskForCurves();
  thread_ = std::thread([this] { io_.run(); });
}

OpenDashboards::~OpenDashboards() {
  io_.stop();
  thread_.join();
}

void OpenDashboards::Read(Stream& stream) {
  stream.socket.async_read_some(
      asio::buffer(stream.input),
      [this, &stream](const boost::system::error_code& error, std::size_t got) {
        if (error) throw std::runtime_error("a live stream ended: " + error.message());
        bytes_ += got;
        Read(stream);
      });
}

// The dashboards were opened one after the other: their requests come evenly.
void OpenDashboards::AskForCurves() {
  timer_.expires_after(std::chrono::milliseconds(10'000 / streams_.size()));
  timer_.async_wait([this](const boost::system::error_code&) {
    static const std::string request = MakeGet("/v1/stats?step=60");
    const LoadResult result = curves_client_.Run([](std::size_t, std::string_view reply) {
      return reply.empty() ? std::string_view(request) : std::string_view();
    });
    if (result.failures > 0) throw std::runtime_error("GET /v1/stats: " + result.first_failure);
    ++curves_;
    AskForCurves();
  });
}

}  // namespace codband
