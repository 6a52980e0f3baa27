#include "codband/server/http/connection.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/redirect_error.hpp>
#include <cstring>

namespace codband::server {
namespace {

using boost::system::error_code;

constexpr std::size_t kLargeInput = 256 * 1024;    // the read buffer while a large body arrives
constexpr std::size_t kKeepCapacity = 256 * 1024;  // of strings that are reused
constexpr std::int64_t kLingerMs = 2000;
constexpr std::int64_t kLingerAtStopMs = 100;

}  // namespace

void ClearAndShrink(std::string& text) {
  text.clear();
  if (text.capacity() > kKeepCapacity) std::string().swap(text);
}

Connection::Connection(Worker& worker, const ServerOptions& options, Socket socket,
                       std::function<void()> closed)
    : worker_(worker),
      options_(options),
      socket_(std::move(socket)),
      closed_(std::move(closed)),
      in_(kSmallInput) {
  error_code ignored;
  socket_.non_blocking(true, ignored);
  worker_.Add(this);
}

Connection::~Connection() {
  error_code ignored;
  socket_.close(ignored);
  closed_();
  worker_.Remove(this);
}

void Connection::SetNoDelay() {
  error_code ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
}

void Connection::Enter(State state, std::int64_t timeout_ms) {
  Enter(state, timeout_ms > 0 ? Clock::now() + std::chrono::milliseconds(timeout_ms)
                              : Clock::time_point::max());
}

void Connection::Enter(State state, Clock::time_point deadline) {
  state_ = state;
  deadline_ = deadline;
}

void Connection::OnTick(Clock::time_point now) {
  if (now < deadline_) return;
  deadline_ = Clock::time_point::max();
  timed_out_ = true;
  error_code ignored;
  socket_.cancel(ignored);
}

void Connection::OnStop() {
  // In every other state there is no complete request to be answered.
  if (state_ == State::kAnswering || state_ == State::kWriting) return;
  error_code ignored;
  socket_.cancel(ignored);
}

void Connection::ExpectLargeInput() { in_.resize(std::max(in_.size(), kLargeInput)); }

Awaitable<bool> Connection::ReadMore() {
  if (!out_.empty()) {
    const bool written = co_await WriteAll();
    if (!written) co_return false;
  }
  if (worker_.stopping()) co_return false;
  if (in_begin_ == in_end_) {
    in_begin_ = in_end_ = 0;
    if (state_ == State::kIdle && in_.size() > kSmallInput) {
      std::vector<char>(kSmallInput).swap(in_);
    }
  } else if (in_begin_ > 0) {
    std::memmove(in_.data(), in_.data() + in_begin_, in_end_ - in_begin_);
    in_end_ -= in_begin_;
    in_begin_ = 0;
  }
  error_code error;
  const std::size_t count =
      co_await socket_.async_read_some(asio::buffer(in_.data() + in_end_, in_.size() - in_end_),
                                       asio::redirect_error(kUseAwaitable, error));
  if (error || timed_out_) co_return false;
  in_end_ += count;
  if (state_ == State::kIdle) Enter(State::kReading, options_.request_timeout_ms);
  co_return true;
}

bool Connection::WriteSome() {
  error_code error;
  out_begin_ +=
      socket_.write_some(asio::buffer(out_.data() + out_begin_, out_.size() - out_begin_), error);
  if (error && error != asio::error::would_block && error != asio::error::try_again) return false;
  if (out_begin_ == out_.size()) {
    ClearAndShrink(out_);
    out_begin_ = 0;
  }
  return true;
}

Awaitable<bool> Connection::WriteAll() {
  if (!WriteSome()) co_return false;
  if (out_.empty()) co_return true;
  const State before = state_;
  const Clock::time_point deadline_before = deadline_;
  while (!out_.empty()) {
    // The timeout is for a client that takes nothing at all: every byte renews it.
    Enter(State::kWriting, options_.request_timeout_ms);
    error_code error;
    const std::size_t count = co_await socket_.async_write_some(
        asio::buffer(out_.data() + out_begin_, out_.size() - out_begin_),
        asio::redirect_error(kUseAwaitable, error));
    out_begin_ += count;
    if (error || timed_out_) co_return false;
    if (!WriteSome()) co_return false;
  }
  Enter(before, deadline_before);
  co_return true;
}

Awaitable<void> Connection::Linger() {
  error_code error;
  socket_.shutdown(Socket::shutdown_send, error);
  timed_out_ = false;
  Enter(State::kLingering, worker_.stopping() ? kLingerAtStopMs : kLingerMs);
  while (!error && !timed_out_) {
    co_await socket_.async_read_some(asio::buffer(in_), asio::redirect_error(kUseAwaitable, error));
  }
}

}  // namespace codband::server
