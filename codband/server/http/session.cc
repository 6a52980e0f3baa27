#include "codband/server/http/session.h"

#include <fmt/compile.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/http/error.hpp>

#include "codband/server/http/http_text.h"

namespace codband::server {
namespace {

namespace http = beast::http;
using boost::system::error_code;

constexpr std::size_t kHeaderLimit = 16 * 1024;     // of the request line and the header fields
constexpr std::size_t kEagerOutput = 256 * 1024;    // replies to write before more are made
constexpr std::size_t kReplyHeadBytes = 512;        // more than the fields of every reply have
constexpr std::size_t kDecodedPiece = 256 * 1024;   // of a streamed body of gzip at a time
constexpr std::uint64_t kRenewBytes = 1024 * 1024;  // of a streamed body that renew its timeout
// Of a body that anybody may send, without a key: no more than a read buffer holds anyway.
constexpr std::size_t kMostOfStrangers = Connection::kSmallInput;

asio::ip::address AddressOf(const Socket& socket) {
  error_code gone;
  return socket.remote_endpoint(gone).address();
}

}  // namespace

Session::Session(Worker& worker, Service& service, const ServerView& server,
                 const ServerOptions& options, const RequestGuard& guard, Incoming incoming)
    : worker_(worker),
      service_(service),
      server_(server),
      options_(options),
      guard_(guard),
      access_(options.gatekeeper, AddressOf(incoming.socket)),
      connection_(worker, options, std::move(incoming)) {}

Awaitable<void> Session::Run() {
  std::exception_ptr failure;
  try {
    connection_.SetNoDelay();
    bool more = co_await Open();
    while (more) {
      const bool served = co_await ServeOne();
      more = served;
    }
  } catch (...) {
    // Out of memory or another resource: this connection ends, the others go on.
    failure = std::current_exception();
  }
  if (!failure) co_return;
  try {
    co_await ReplyFailed(failure);
  } catch (...) {
    // Not even for that.
  }
}

Awaitable<bool> Session::Open() {
  if (!connection_.is_tls()) co_return true;
  const TlsStream::Opened opened = co_await connection_.Handshake();
  if (opened == TlsStream::Opened::kPlainHttp) {
    service_.SetError(reply_, {.status = 400,
                               .code = "BadRequest",
                               .message = "plain HTTP was sent to a server that speaks HTTPS"});
    AppendReply(false);
    if (connection_.WriteSome()) co_await connection_.Linger();
  }
  co_return opened == TlsStream::Opened::kYes;
}

Awaitable<void> Session::ReplyFailed(const std::exception_ptr& failure) {
  if (replied_ || connection_.state() == State::kIdle) co_return;  // nobody waits for a reply
  HttpError error = ErrorOfException(failure);
  if (error.status == 500) error.message = "the request failed";
  reply_.Reset();
  service_.SetError(reply_, error);
  AppendReply(false);
  worker_.metrics().Record(match_.index, reply_.status, Clock::now() - received_);
  const bool written = co_await connection_.WriteAll();
  if (written) co_await connection_.Linger();
}

Awaitable<void> Session::Refuse(bool of_network) {
  if (connection_.is_tls()) co_return;  // a handshake costs more than a refusal should
  try {
    reply_.Reset();
    service_.SetError(reply_,
                      {.status = 503,
                       .code = "TooManyConnections",
                       .message = of_network ? "there are too many connections from your address"
                                             : "there are too many connections",
                       .retry_after_s = 1});
    AppendReply(false);
    if (connection_.WriteSome() && connection_.output().empty()) co_await connection_.Linger();
  } catch (...) {
  }
}

// One request and its reply. False: the connection ends.
Awaitable<bool> Session::ServeOne() {
  connection_.ClearTimeout();
  replied_ = false;
  header_bytes_ = 0;
  reply_.Reset();
  reader_.emplace(head_, body_);
  decoder_.reset();
  cors_ = false;
  match_ = {};
  if (connection_.has_input()) {
    connection_.Enter(State::kReading, options_.request_timeout_ms);
  } else {
    connection_.Enter(State::kIdle, options_.idle_timeout_ms);
  }
  const Next next = co_await ReadRequest();
  if (next == Next::kEnd) co_return false;
  if (next == Next::kHandle) {
    connection_.Enter(State::kAnswering, 0);
    Call call = MakeCall();
    co_await service_.Handle(call);
  }
  const bool streams = reply_.stream != nullptr && !match_.head;
  const bool keep_alive = reader_->is_done() && reader_->keep_alive() && !reply_.close &&
                          !worker_.stopping() && !streams;
  AppendReply(keep_alive);
  worker_.metrics().Record(match_.index, reply_.status, Clock::now() - received_);
  ClearAndShrink(body_);
  ClearAndShrink(decoded_);
  ClearAndShrink(reply_.body);
  // Replies to pipelined requests are written together.
  if (keep_alive && connection_.has_input() && connection_.output().size() < kEagerOutput) {
    co_return true;
  }
  if (!connection_.WriteSome()) co_return false;
  if (!connection_.output().empty()) {
    const bool written = co_await connection_.WriteAll();
    if (!written) co_return false;
  }
  if (keep_alive) co_return true;
  if (streams) {
    co_await RunReplyStream(*reply_.stream);
    co_return false;
  }
  if (!reader_->is_done() || connection_.has_input() || connection_.is_tls()) {
    co_await connection_.Linger();
  }
  co_return false;
}

Awaitable<void> Session::RunReplyStream(ReplyStream& stream) {
  bool more = true;
  while (more && !worker_.stopping() && !connection_.gave_way()) {
    // It gives way to a connection that needs its place.
    connection_.Enter(State::kIdle, 0);
    more = co_await stream.Next(worker_, connection_.output());
    if (connection_.output().empty()) continue;
    // A key that was removed, or a session that is over, ends it.
    if (access_.Check(head_, match_.route)) co_return;
    const bool written = co_await connection_.WriteAll();
    more = more && written;
  }
}

Awaitable<Session::Next> Session::ReadRequest() {
  Next next = co_await ReadHeader();
  received_ = Clock::now();
  if (next != Next::kHandle) co_return next;
  match_ = service_.router().Match(head_.method, head_.target);
  if (const std::optional<HttpError> error = guard_.CheckSource(head_)) {
    RefuseRequest(*error);
    co_return Next::kReply;
  }
  cors_ = guard_.FromAllowedOrigin(head_);
  if (cors_ && head_.method == "OPTIONS") {
    AnswerPreflight();
    co_return Next::kReply;
  }
  if (const std::optional<HttpError> error = CheckHead()) {
    RefuseRequest(*error);
    co_return Next::kReply;
  }
  if (reader_->has_body() && head_.coding == RequestHead::Coding::kGzip) {
    decoder_ = std::make_unique<GzipDecoder>();
    decoded_bytes_ = 0;
  }
  if (match_.route->body == BodyKind::kStreamed) co_return co_await ReadStream();
  if (reader_->is_done()) co_return Next::kHandle;
  next = co_await ReadBody();
  received_ = Clock::now();
  co_return next;
}

void Session::RefuseRequest(const HttpError& error) {
  service_.SetError(reply_, error);
  if (error.status == 405) {
    reply_.headers += fmt::format("Allow: {}\r\n", service_.router().AllowedMethods(head_.target));
  }
  if (error.status == 400) reply_.close = true;  // who knows where a malformed request ends
  if (error.status == 401) reply_.headers += "WWW-Authenticate: Bearer\r\n";
  if (error.status == 415) reply_.headers += "Accept-Encoding: gzip\r\n";
  SkipBody();
}

void Session::AnswerPreflight() {
  const std::string methods = service_.router().AllowedMethods(head_.target);
  if (methods.empty()) {
    RefuseRequest(*CheckRoute());
    return;
  }
  reply_.status = 204;
  reply_.headers += fmt::format(
      "Access-Control-Allow-Methods: {}\r\n"
      "Access-Control-Allow-Headers: Authorization, Content-Encoding, Content-Type, X-API-Key\r\n"
      "Access-Control-Max-Age: 600\r\n",
      methods);
  SkipBody();
}

// A body that is here already is skipped; for the rest of one we do not wait.
void Session::SkipBody() {
  reader_->DropBody();
  reader_->eager(true);
  if (!reader_->is_done() && connection_.has_input()) Parse();
  if (!reader_->is_done()) reply_.close = true;
}

std::optional<HttpError> Session::CheckHead() {
  if (std::optional<HttpError> error = access_.Check(head_, match_.route)) return error;
  if (std::optional<HttpError> error = CheckRoute()) return error;
  if (head_.expect == RequestHead::Expect::kOther) {
    return HttpError{.status = 417,
                     .code = "ExpectationFailed",
                     .field = "Expect",
                     .message = "is not supported, expected 100-continue"};
  }
  if (auto error = RequestGuard::CheckBody(head_, *match_.route, reader_->has_body())) return error;
  const std::size_t most = MostBody();
  if (reader_->content_length().value_or(0) > most) {
    return HttpError{.status = 413,
                     .code = "BodyTooLarge",
                     .field = "body",
                     .message = fmt::format("has {} bytes, expected at most {}",
                                            *reader_->content_length(), most)};
  }
  return std::nullopt;
}

std::size_t Session::MostBody() const {
  const Route& route = *match_.route;
  if (route.body == BodyKind::kStreamed) return options_.max_stream_bytes;
  return route.access == Access::kOpen ? std::min(kMostOfStrangers, options_.max_body_bytes)
                                       : options_.max_body_bytes;
}

std::optional<HttpError> Session::CheckRoute() const {
  if (match_.kind == RouteMatch::Kind::kNoSuchPath) {
    const std::vector<std::string_view> near = service_.router().NearPaths(head_.target);
    return HttpError{.status = 404,
                     .code = "NotFound",
                     .field = "path",
                     .message = near.empty() ? "does not exist; see /openapi.json"
                                             : fmt::format("does not exist; did you mean {}?",
                                                           fmt::join(near, " or "))};
  }
  if (match_.kind == RouteMatch::Kind::kWrongMethod) {
    return HttpError{.status = 405,
                     .code = "MethodNotAllowed",
                     .field = "method",
                     .message = fmt::format("is not allowed here, expected {}",
                                            service_.router().AllowedMethods(head_.target))};
  }
  return std::nullopt;
}

bool Session::Parse() {
  error_code error;
  const bool in_header = !reader_->is_header_done();
  const std::string_view input = connection_.input();
  reader_->set_input(input);
  const std::size_t used = reader_->put(asio::buffer(input.data(), input.size()), error);
  const bool full = error && used == 0 && connection_.input_full();
  connection_.Consume(used);
  if (in_header) header_bytes_ += used;
  if (!error || error == http::error::need_more) {
    const std::size_t waiting = reader_->is_header_done() ? 0 : input.size() - used;
    // What the parser cannot use yet must leave room for more.
    if (header_bytes_ + waiting <= kHeaderLimit && !full) return true;
    error = http::error::header_limit;
  }
  if (const HeadFault* fault = reader_->fault()) {
    service_.SetError(reply_, {.status = fault->status,
                               .code = fault->code,
                               .field = std::string(fault->field),
                               .message = std::string(fault->message)});
  } else if (error == http::error::body_limit) {
    SetTooLarge();
  } else if (error == http::error::header_limit) {
    service_.SetError(reply_, {.status = 431,
                               .code = "HeadersTooLarge",
                               .message = fmt::format("request line and header fields have more "
                                                      "than {} bytes",
                                                      kHeaderLimit)});
  } else {
    service_.SetError(reply_, {.status = 400, .code = "BadRequest", .message = error.message()});
  }
  reply_.close = true;
  return false;
}

void Session::SetTooLarge() {
  service_.SetError(reply_, {.status = 413,
                             .code = "BodyTooLarge",
                             .field = "body",
                             .message = "is larger than this path allows"});
}

// The input ended before the request did: a reply only if the client took too long.
Session::Next Session::EndOfInput() {
  if (!connection_.timed_out() || connection_.state() != State::kReading) return Next::kEnd;
  connection_.ClearTimeout();  // the reply has a time of its own
  service_.SetError(reply_, {.status = 408,
                             .code = "RequestTimeout",
                             .field = "request",
                             .message = fmt::format("took longer than {} ms to arrive",
                                                    options_.request_timeout_ms)});
  reply_.close = true;
  return Next::kReply;
}

Awaitable<Session::Next> Session::ReadHeader() {
  while (true) {
    if (connection_.has_input()) {
      if (!Parse()) co_return Next::kReply;
      if (reader_->is_header_done()) co_return Next::kHandle;
    }
    const bool more = co_await connection_.ReadMore();
    if (!more) co_return EndOfInput();
  }
}

void Session::StartBody(std::uint64_t max_bytes) {
  reader_->set_max_body(max_bytes);
  reader_->eager(true);
  if (head_.expect == RequestHead::Expect::kContinue && head_.version >= 11 &&
      !connection_.has_input()) {
    connection_.output() += "HTTP/1.1 100 Continue\r\n\r\n";
  }
  const bool large =
      reader_->chunked() || reader_->content_length().value_or(0) > Connection::kSmallInput;
  if (large && max_bytes > Connection::kSmallInput) {
    connection_.ExpectLargeInput();
  }
}

Awaitable<Session::Next> Session::ReadBody() {
  StartBody(MostBody());
  while (true) {
    if (connection_.has_input() && !Parse()) co_return Next::kReply;
    if (reader_->is_done()) co_return DecodeBody() ? Next::kHandle : Next::kReply;
    const bool more = co_await connection_.ReadMore();
    if (!more) co_return EndOfInput();
  }
}

bool Session::DecodeBody() {
  if (decoder_ == nullptr) return true;
  std::string_view rest = body_;
  decoded_.clear();
  const std::size_t most = MostBody();
  Status status = decoder_->Decode(rest, decoded_, most + 1);
  if (status.ok() && decoded_.size() > most) {
    SetTooLarge();
    return false;
  }
  if (status.ok()) status = decoder_->Finish();
  if (!status.ok()) {
    service_.SetError(reply_, ToHttpError(status));
    return false;
  }
  body_.swap(decoded_);
  return true;
}

Awaitable<bool> Session::Deliver(BodyStream& stream, bool last) {
  if (decoder_ == nullptr) {
    const bool wanted = co_await stream.Take(body_, last);
    co_return wanted;
  }
  std::string_view rest = body_;
  bool decoding = true;
  while (decoding) {
    decoded_.clear();
    Status status = decoder_->Decode(rest, decoded_, kDecodedPiece);
    decoding = status.ok() && decoded_.size() == kDecodedPiece;
    if (status.ok() && !decoding && last) status = decoder_->Finish();
    if (!status.ok()) {
      service_.SetError(reply_, ToHttpError(status));
      co_return false;
    }
    decoded_bytes_ += decoded_.size();
    if (decoded_bytes_ > options_.max_stream_bytes) {
      SetTooLarge();
      co_return false;
    }
    const bool wanted = co_await stream.Take(decoded_, last && !decoding);
    if (!wanted) co_return false;
    // A few bytes can be gigabytes: the worker's other connections have their turn in between.
    if (decoding) co_await asio::post(worker_.io(), kUseAwaitable);
  }
  co_return true;
}

Awaitable<Session::Next> Session::ReadStream() {
  StartBody(options_.max_stream_bytes);
  const auto length = reader_->content_length();
  const std::unique_ptr<BodyStream> stream = service_.OpenStream(
      MakeCall(), length ? std::optional<std::uint64_t>(*length) : std::nullopt);
  std::uint64_t since_renewal = 0;
  while (true) {
    if (!reader_->is_done() && connection_.has_input() && !Parse()) co_return Next::kReply;
    const bool last = reader_->is_done();
    since_renewal += body_.size();
    // The time that the service takes is not the client's.
    const Clock::time_point deadline = connection_.deadline();
    const Clock::time_point start = Clock::now();
    connection_.Enter(State::kAnswering, 0);
    const bool wanted = co_await Deliver(*stream, last);
    body_.clear();
    if (!wanted) reply_.close = !reader_->is_done();
    if (!wanted || last) co_return Next::kReply;
    connection_.Enter(State::kReading, deadline + (Clock::now() - start));
    if (since_renewal >= kRenewBytes) {
      since_renewal = 0;
      connection_.Enter(State::kReading, options_.request_timeout_ms);
    }
    const bool more = co_await connection_.ReadMore();
    if (!more) co_return EndOfInput();
  }
}

void Session::AppendReply(bool keep_alive) {
  std::string& output = connection_.output();
  // At once: half a reply would be worse than none.
  output.reserve(output.size() + kReplyHeadBytes + head_.origin.size() + reply_.headers.size() +
                 reply_.body.size());
  const auto out = std::back_inserter(output);
  fmt::format_to(out, FMT_COMPILE("HTTP/1.1 {} {}\r\n"), reply_.status,
                 ReasonPhrase(reply_.status));
  output += worker_.date_header();
  if (reply_.stream != nullptr) {
    fmt::format_to(out, FMT_COMPILE("Content-Type: {}\r\n"), reply_.content_type);
  } else if (reply_.status != 204) {
    fmt::format_to(out, FMT_COMPILE("Content-Type: {}\r\nContent-Length: {}\r\n"),
                   reply_.content_type, reply_.body.size());
  }
  output += reply_.headers;
  if (cors_) {
    fmt::format_to(out,
                   FMT_COMPILE("Access-Control-Allow-Origin: {}\r\n"
                               "Access-Control-Expose-Headers: Retry-After\r\n"
                               "Vary: Origin\r\n"),
                   head_.origin);
  }
  if (!keep_alive) {
    output += "Connection: close\r\n";
  } else if (head_.version < 11) {
    output += "Connection: keep-alive\r\n";
  }
  output += "\r\n";
  if (!match_.head && reply_.status != 204) output += reply_.body;
  replied_ = true;
}

}  // namespace codband::server
