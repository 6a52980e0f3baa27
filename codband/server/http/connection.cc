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

Connection::Connection(Worker& worker, const ServerOptions& options, Incoming incoming)
    : worker_(worker),
      options_(options),
      socket_(std::move(incoming.socket)),
      place_(std::move(incoming.place)),
      gives_room_(place_.held()),
      tls_(incoming.tls != nullptr ? MakeTlsStream(socket_, incoming.tls) : nullptr),
      in_(kSmallInput),
      client_(worker.Add(this, StandingOf(state_))) {
  error_code ignored;
  socket_.non_blocking(true, ignored);
}

Connection::~Connection() {
  error_code ignored;
  tls_.reset();
  socket_.close(ignored);
  place_.Release();
  worker_.Remove(client_, StandingOf(state_));
}

Worker::Standing Connection::StandingOf(State state) const {
  if (!gives_room_) return Worker::Standing::kAnswering;
  switch (state) {
    case State::kIdle:
      return Worker::Standing::kIdle;
    case State::kAnswering:
      return Worker::Standing::kAnswering;
    default:
      return Worker::Standing::kMidway;
  }
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
  worker_.Move(client_, StandingOf(state_), StandingOf(state));
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

bool Connection::OnRoomNeeded(Clock::time_point now) {
  // In the middle of a request or a reply the client has a tenth of its time for itself.
  const std::chrono::milliseconds patience(options_.request_timeout_ms * 9 / 10);
  if (state_ != State::kIdle && state_ != State::kLingering && deadline_ - now > patience) {
    return false;
  }
  Enter(State::kAnswering, 0);  // nobody asks it again
  gave_way_ = true;
  error_code ignored;
  socket_.close(ignored);
  place_.Release();
  return true;
}

Awaitable<TlsStream::Opened> Connection::Handshake() {
  Enter(State::kReading, options_.request_timeout_ms);
  const TlsStream::Opened opened = co_await tls_->Handshake();
  if (opened == TlsStream::Opened::kPlainHttp) tls_.reset();
  co_return timed_out_ || gave_way_ ? TlsStream::Opened::kNo : opened;
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
  std::size_t count = 0;
  if (tls_ != nullptr) {
    count = co_await tls_->ReadSome(in_.data() + in_end_, in_.size() - in_end_, error);
  } else {
    count =
        co_await socket_.async_read_some(asio::buffer(in_.data() + in_end_, in_.size() - in_end_),
                                         asio::redirect_error(kUseAwaitable, error));
  }
  if (error || timed_out_ || gave_way_) co_return false;
  in_end_ += count;
  if (state_ == State::kIdle) Enter(State::kReading, options_.request_timeout_ms);
  co_return true;
}

bool Connection::WriteSome() {
  if (tls_ != nullptr) return true;  // it only writes by waiting
  error_code error;
  out_begin_ +=
      socket_.write_some(asio::buffer(out_.data() + out_begin_, out_.size() - out_begin_), error);
  if (error && error != asio::error::would_block && error != asio::error::try_again) return false;
  if (out_begin_ == out_.size()) ClearOutput();
  return true;
}

void Connection::ClearOutput() {
  ClearAndShrink(out_);
  out_begin_ = 0;
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
    std::size_t count = 0;
    if (tls_ != nullptr) {
      count = co_await tls_->WriteSome(out_.data() + out_begin_, out_.size() - out_begin_, error);
    } else {
      count = co_await socket_.async_write_some(
          asio::buffer(out_.data() + out_begin_, out_.size() - out_begin_),
          asio::redirect_error(kUseAwaitable, error));
    }
    out_begin_ += count;
    if (error || timed_out_ || gave_way_) co_return false;
    if (tls_ == nullptr && !WriteSome()) co_return false;
    if (out_begin_ == out_.size()) ClearOutput();
  }
  Enter(before, deadline_before);
  co_return true;
}

Awaitable<void> Connection::Linger() {
  timed_out_ = false;
  Enter(State::kLingering, worker_.stopping() ? kLingerAtStopMs : kLingerMs);
  if (tls_ != nullptr) co_await tls_->Shutdown();
  error_code error;
  socket_.shutdown(Socket::shutdown_send, error);
  while (!error && !timed_out_) {
    co_await socket_.async_read_some(asio::buffer(in_), asio::redirect_error(kUseAwaitable, error));
  }
}

}  // namespace codband::server
