#include "codband/server/http/session.h"

#include <fmt/compile.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/beast/http/error.hpp>
#include <cstring>

namespace codband::server {
namespace {

namespace http = beast::http;
using boost::system::error_code;

constexpr std::size_t kHeaderLimit = 16 * 1024;     // of the request line and the header fields
constexpr std::size_t kSmallInput = kHeaderLimit;   // the read buffer of a connection
constexpr std::size_t kLargeInput = 256 * 1024;     // while a large body comes in
constexpr std::size_t kKeepCapacity = 256 * 1024;   // strings that grew more are given back
constexpr std::size_t kEagerOutput = 256 * 1024;    // answers to write before more are made
constexpr std::uint64_t kImportStep = 1024 * 1024;  // bytes of an import that renew its time
constexpr std::uint64_t kHoldImport = 64u * 1024 * 1024;  // imports up to this size are atomic
constexpr std::size_t kImportBatch = 1000;                // items put together in larger ones
constexpr std::int64_t kLingerMs = 2000;

void Release(std::string& text) {
  text.clear();
  if (text.capacity() > kKeepCapacity) std::string().swap(text);
}

}  // namespace

Session::Session(Worker& worker, Api& api, const ServerOptions& options, Socket socket,
                 std::function<void()> gone)
    : worker_(worker),
      api_(api),
      options_(options),
      socket_(std::move(socket)),
      gone_(std::move(gone)),
      in_(kSmallInput) {
  worker_.Add(this);
}

Session::~Session() {
  error_code ignored;
  socket_.close(ignored);
  gone_();
  worker_.Remove(this);
}

Awaitable<void> Session::Run() {
  try {
    error_code ignored;
    socket_.non_blocking(true, ignored);
    socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
    bool more = true;
    while (more) {
      const bool served = co_await ServeOne();
      more = served;
    }
  } catch (...) {
    // Memory or the system ran out: this connection ends, the others go on.
  }
}

Awaitable<void> Session::Refuse() {
  try {
    error_code ignored;
    socket_.non_blocking(true, ignored);
    reply_.Reset();
    SetError(reply_, {.status = 503,
                      .code = "TooManyConnections",
                      .message = "there are too many connections",
                      .retry_after_s = 1});
    AppendReply(false);
    if (WriteSome() && out_.empty()) co_await Linger();
  } catch (...) {
  }
}

void Session::Enter(State state, std::int64_t limit_ms) {
  state_ = state;
  deadline_ =
      limit_ms > 0 ? Clock::now() + std::chrono::milliseconds(limit_ms) : Clock::time_point::max();
}

void Session::OnTick(Clock::time_point now) {
  if (now < deadline_) return;
  deadline_ = Clock::time_point::max();
  timed_out_ = true;
  error_code ignored;
  socket_.cancel(ignored);
}

void Session::OnStop() {
  // Whoever waits for the client has not been asked anything yet.
  if (state_ == State::kAnswering || state_ == State::kWriting) return;
  error_code ignored;
  socket_.cancel(ignored);
}

// One request, answered. False: the connection ends.
Awaitable<bool> Session::ServeOne() {
  timed_out_ = false;
  header_bytes_ = 0;
  reply_.Reset();
  reader_.emplace(head_, body_);
  match_ = {};
  if (HasInput()) {
    Enter(State::kReading, options_.request_timeout_ms);
  } else {
    Enter(State::kIdle, options_.idle_timeout_ms);
  }
  const Next next = co_await ReadRequest();
  if (next == Next::kEnd) co_return false;
  if (next == Next::kAnswer) {
    Enter(State::kAnswering, 0);
    co_await api_.Handle(worker_, match_, body_, reply_);
  }
  const bool keep_alive =
      reader_->is_done() && reader_->keep_alive() && !reply_.close && !worker_.stopping();
  AppendReply(keep_alive);
  worker_.metrics().Record(match_.route != nullptr ? match_.route->id : RouteId::kOther,
                           reply_.status, Clock::now() - received_);
  Release(body_);
  Release(reply_.body);
  // The answers to requests that came together are written together.
  if (keep_alive && HasInput() && out_.size() < kEagerOutput) co_return true;
  if (!WriteSome()) co_return false;
  if (!out_.empty()) {
    const bool written = co_await WriteRest();
    if (!written) co_return false;
  }
  if (keep_alive) co_return true;
  if (!reader_->is_done() || HasInput()) co_await Linger();
  co_return false;
}

Awaitable<Session::Next> Session::ReadRequest() {
  Next next = co_await ReadHeader();
  received_ = Clock::now();
  if (next != Next::kAnswer) co_return next;
  match_ = MatchRoute(head_.method, head_.target);
  if (const std::optional<HttpError> objection = Objection()) {
    Object(*objection);
    co_return Next::kReply;
  }
  if (match_.route->id == RouteId::kImportItems) co_return co_await ReadImport();
  if (reader_->is_done()) co_return Next::kAnswer;
  next = co_await ReadBody();
  received_ = Clock::now();
  co_return next;
}

void Session::Object(const HttpError& error) {
  SetError(reply_, error);
  if (error.status == 405) {
    reply_.headers += fmt::format("Allow: {}\r\n", AllowedMethods(head_.target));
  }
  // A body that is here already is passed over; for one that is not, we do not wait.
  reader_->DropBody();
  reader_->eager(true);
  if (!reader_->is_done() && HasInput()) Parse();
  if (!reader_->is_done()) reply_.close = true;
}

// What is wrong with a request before its body is looked at.
std::optional<HttpError> Session::Objection() const {
  if (!api_.Authorised(match_, head_.api_key)) {
    return HttpError{.status = 401,
                     .code = "Unauthorized",
                     .field = "X-API-Key",
                     .message = head_.api_key.empty() ? "is missing" : "is not the right one"};
  }
  if (match_.kind == RouteMatch::Kind::kNoSuchPath) {
    const std::vector<std::string_view> near = NearPaths(head_.target);
    return HttpError{.status = 404,
                     .code = "NotFound",
                     .field = "path",
                     .message = near.empty() ? "there is no such path; see /openapi.json"
                                             : fmt::format("there is no such path; near: {}",
                                                           fmt::join(near, ", "))};
  }
  if (match_.kind == RouteMatch::Kind::kWrongMethod) {
    return HttpError{.status = 405,
                     .code = "MethodNotAllowed",
                     .field = "method",
                     .message = fmt::format("the path takes {}", AllowedMethods(head_.target))};
  }
  if (head_.expect == RequestHead::Expect::kOther) {
    return HttpError{.status = 417,
                     .code = "ExpectationFailed",
                     .field = "Expect",
                     .message = "can only be 100-continue"};
  }
  const std::size_t most = match_.route->id == RouteId::kImportItems ? options_.max_import_bytes
                                                                     : options_.max_body_bytes;
  if (reader_->content_length().value_or(0) > most) {
    return HttpError{.status = 413,
                     .code = "BodyTooLarge",
                     .field = "body",
                     .message = fmt::format("has {} bytes, expected at most {}",
                                            *reader_->content_length(), most)};
  }
  return std::nullopt;
}

bool Session::Parse() {
  error_code error;
  const bool in_header = !reader_->is_header_done();
  const std::size_t used =
      reader_->put(asio::buffer(in_.data() + in_begin_, in_end_ - in_begin_), error);
  in_begin_ += used;
  if (in_header) header_bytes_ += used;
  if (!error || error == http::error::need_more) {
    const std::size_t waiting = reader_->is_header_done() ? 0 : in_end_ - in_begin_;
    // What the parser cannot use yet must leave room for more.
    const bool full = error && in_begin_ == 0 && in_end_ == in_.size();
    if (header_bytes_ + waiting <= kHeaderLimit && !full) return true;
    error = http::error::header_limit;
  }
  if (error == http::error::body_limit) {
    SetError(reply_, {.status = 413,
                      .code = "BodyTooLarge",
                      .field = "body",
                      .message = "is larger than what this path takes"});
  } else if (error == http::error::header_limit) {
    SetError(reply_, {.status = 431,
                      .code = "HeadersTooLarge",
                      .message = fmt::format("the request line and the header fields have more "
                                             "than {} bytes",
                                             kHeaderLimit)});
  } else {
    SetError(reply_, {.status = 400, .code = "BadRequest", .message = error.message()});
  }
  reply_.close = true;
  return false;
}

// The input ended before the request did: a reply only if the client took too long.
Session::Next Session::EndOfInput() {
  if (!timed_out_ || state_ != State::kReading) return Next::kEnd;
  SetError(reply_, {.status = 408,
                    .code = "RequestTimeout",
                    .field = "request",
                    .message = fmt::format("the request took longer than {} ms to arrive",
                                           options_.request_timeout_ms)});
  reply_.close = true;
  return Next::kReply;
}

Awaitable<Session::Next> Session::ReadHeader() {
  while (true) {
    if (HasInput()) {
      if (!Parse()) co_return Next::kReply;
      if (reader_->is_header_done()) co_return Next::kAnswer;
    }
    const bool more = co_await ReadMore();
    if (!more) co_return EndOfInput();
  }
}

void Session::StartBody(std::uint64_t max_bytes) {
  reader_->set_max_body(max_bytes);
  reader_->eager(true);
  if (head_.expect == RequestHead::Expect::kContinue && head_.version >= 11 && !HasInput()) {
    out_ += "HTTP/1.1 100 Continue\r\n\r\n";
  }
  if (reader_->chunked() || reader_->content_length().value_or(0) > kSmallInput) {
    in_.resize(std::max(in_.size(), kLargeInput));
  }
}

Awaitable<Session::Next> Session::ReadBody() {
  StartBody(options_.max_body_bytes);
  while (true) {
    if (HasInput() && !Parse()) co_return Next::kReply;
    if (reader_->is_done()) co_return Next::kAnswer;
    const bool more = co_await ReadMore();
    if (!more) co_return EndOfInput();
  }
}

Awaitable<Session::Next> Session::ReadImport() {
  StartBody(options_.max_import_bytes);
  ItemImport import(api_.engine().dim(), options_.max_body_bytes);
  const bool announced_large = reader_->content_length().value_or(0) > kHoldImport;
  std::uint64_t imported = 0;
  std::uint64_t renewed_at = 0;
  bool in_line = true;  // whether a fault is the line's
  Status status;
  while (true) {
    if (!reader_->is_done() && HasInput() && !Parse()) co_return Next::kReply;
    status = import.Feed(body_);
    body_.clear();
    const bool done = reader_->is_done();
    if (status.ok() && done) status = import.Finish();
    if (!status.ok()) break;
    const bool large = announced_large || import.bytes() > kHoldImport;
    if (import.ready() > 0 && (done || (large && import.ready() >= kImportBatch))) {
      const std::size_t count = import.ready();
      Enter(State::kAnswering, 0);
      status = co_await api_.PutReady(worker_, import);
      in_line = status.ok();
      if (!status.ok()) break;
      imported += count;
      Enter(State::kReading, options_.request_timeout_ms);
    }
    if (done) break;
    if (import.bytes() - renewed_at >= kImportStep) {
      renewed_at = import.bytes();
      Enter(State::kReading, options_.request_timeout_ms);
    }
    const bool more = co_await ReadMore();
    if (!more) co_return EndOfInput();
  }
  if (status.ok() && imported == 0) {
    in_line = false;
    status = Status::InvalidArgument("body: is empty, expected one JSON object a line");
  }
  if (!status.ok()) {
    HttpError error = ToHttpError(status);
    if (in_line) error.line = import.line();
    error.imported = imported;
    SetError(reply_, error);
    reply_.close = !reader_->is_done();
    co_return Next::kReply;
  }
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - received_);
  fmt::format_to(std::back_inserter(reply_.body),
                 "{{\"accepted\":{},\"status\":\"ok\",\"tookMillis\":{}}}", imported, took.count());
  co_return Next::kReply;
}

// Writes what is to be written, then waits for input. False: there will be none.
Awaitable<bool> Session::ReadMore() {
  if (!out_.empty()) {
    const bool written = co_await WriteRest();
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

// Writes as much as goes without waiting. False: the connection is broken.
bool Session::WriteSome() {
  error_code error;
  out_begin_ +=
      socket_.write_some(asio::buffer(out_.data() + out_begin_, out_.size() - out_begin_), error);
  if (error && error != asio::error::would_block && error != asio::error::try_again) return false;
  if (out_begin_ == out_.size()) {
    Release(out_);
    out_begin_ = 0;
  }
  return true;
}

Awaitable<bool> Session::WriteRest() {
  if (!WriteSome()) co_return false;
  if (out_.empty()) co_return true;
  const State before = state_;
  const Clock::time_point deadline_before = deadline_;
  while (!out_.empty()) {
    // The limit is for a client that takes nothing at all.
    Enter(State::kWriting, options_.request_timeout_ms);
    error_code error;
    const std::size_t count = co_await socket_.async_write_some(
        asio::buffer(out_.data() + out_begin_, out_.size() - out_begin_),
        asio::redirect_error(kUseAwaitable, error));
    out_begin_ += count;
    if (error || timed_out_) co_return false;
    if (!WriteSome()) co_return false;
  }
  state_ = before;
  deadline_ = deadline_before;
  co_return true;
}

// Closing a socket with unread input would reset the connection and could take the last answer with
// it: tell the client that all is said, and read on for a while.
Awaitable<void> Session::Linger() {
  error_code error;
  socket_.shutdown(Socket::shutdown_send, error);
  timed_out_ = false;
  Enter(State::kLingering, worker_.stopping() ? 100 : kLingerMs);
  while (!error && !timed_out_) {
    co_await socket_.async_read_some(asio::buffer(in_), asio::redirect_error(kUseAwaitable, error));
  }
}

void Session::AppendReply(bool keep_alive) {
  const auto out = std::back_inserter(out_);
  fmt::format_to(out, FMT_COMPILE("HTTP/1.1 {} {}\r\n"), reply_.status,
                 ReasonPhrase(reply_.status));
  out_ += worker_.date_header();
  if (reply_.status != 204) {
    fmt::format_to(out, FMT_COMPILE("Content-Type: {}\r\nContent-Length: {}\r\n"),
                   reply_.content_type, reply_.body.size());
  }
  out_ += reply_.headers;
  if (!keep_alive) {
    out_ += "Connection: close\r\n";
  } else if (head_.version < 11) {
    out_ += "Connection: keep-alive\r\n";
  }
  out_ += "\r\n";
  if (!match_.head && reply_.status != 204) out_ += reply_.body;
}

}  // namespace codband::server
