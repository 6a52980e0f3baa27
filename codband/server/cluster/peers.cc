#include "codband/server/cluster/peers.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cstring>
#include <optional>
#include <utility>

#include "codband/server/api/run_on.h"

namespace codband::server {
namespace {

namespace http = boost::beast::http;
using boost::system::error_code;
using Endpoints = std::vector<asio::ip::tcp::endpoint>;

constexpr std::chrono::milliseconds kTick(200);
constexpr std::chrono::seconds kIdle(20);  // less than what a server waits for the next request
constexpr std::size_t kReadBytes = 16 * 1024;
// The largest reply there is, a page of items or a report of models, is far smaller.
constexpr std::uint64_t kMostReplyBytes = std::uint64_t{64} << 20;

// Whether a node can have said so: what else comes is passed on to nobody.
bool IsAnswer(unsigned status) { return status >= 200 && status < 600; }

Status TooLarge() {
  return {StatusCode::kUnavailable,
          fmt::format("the node's reply is larger than {} bytes", kMostReplyBytes)};
}

Status NoAnswer(unsigned status) {
  return {StatusCode::kUnavailable, fmt::format("the node answered {}", status)};
}

// Blocks while a name is looked up.
Result<Endpoints> Resolve(const HttpUrl& url) {
  error_code error;
  if (const auto address = asio::ip::make_address(url.host, error); !error) {
    return Endpoints{{address, url.port}};
  }
  asio::io_context context;
  asio::ip::tcp::resolver resolver(context);
  Endpoints found;
  for (const auto& each : resolver.resolve(url.host, std::to_string(url.port), error)) {
    found.push_back(each.endpoint());
  }
  if (error) return Status::InvalidArgument(fmt::format("{}: {}", url.host, error.message()));
  return found;
}

Status Failed(const error_code& error, bool timed_out) {
  if (timed_out) return {StatusCode::kUnavailable, "the node did not answer in time"};
  return Status::IoError(fmt::format("the connection broke: {}", error.message()));
}

std::string Encode(const PeerRequest& request, std::string_view authority) {
  std::string bytes;
  bytes.reserve(256 + request.target.size() + request.fields.size() + request.body.size());
  fmt::format_to(std::back_inserter(bytes), FMT_COMPILE("{} {} HTTP/1.1\r\nHost: {}\r\n{}"),
                 request.method, request.target, authority, request.fields);
  if (!request.body.empty()) bytes += "Content-Type: application/json\r\n";
  if (!request.body.empty() || request.method == "POST" || request.method == "PUT") {
    fmt::format_to(std::back_inserter(bytes), FMT_COMPILE("Content-Length: {}\r\n"),
                   request.body.size());
  }
  bytes += "\r\n";
  bytes += request.body;
  return bytes;
}

}  // namespace

struct Peers::Link {
  explicit Link(Worker& worker) : socket(worker.io()) {}

  Socket socket;
  Clock::time_point until = {};  // busy: it is given up then; idle: it is closed then
  bool timed_out = false;
};

// While a link is used it has so long.
class Peers::Busy {
 public:
  Busy(Peers& peers, Link& link) : peers_(peers) {
    link.until = Clock::now() + peers.timeout_;
    link.timed_out = false;
    place_ = peers.busy_.insert(peers.busy_.end(), &link);
    if (!std::exchange(peers.ticking_, true)) peers.Tick();
  }
  ~Busy() { peers_.busy_.erase(place_); }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  Peers& peers_;
  std::list<Link*>::iterator place_;
};

Peers::Peers(Worker& worker, boost::asio::thread_pool& pool, std::chrono::milliseconds timeout)
    : worker_(worker), pool_(pool), timeout_(timeout), timer_(worker.io()) {}

Peers::~Peers() = default;

// One timer for all links, while there are any.
void Peers::Tick() {
  timer_.expires_after(kTick);
  timer_.async_wait([this](const error_code& error) {
    if (error) return;
    const auto now = Clock::now();
    error_code ignored;
    for (Link* link : busy_) {
      if (now < link->until) continue;
      link->timed_out = true;
      link->socket.cancel(ignored);
    }
    for (auto& [url, links] : idle_) {
      std::erase_if(links, [&](const auto& link) { return now >= link->until; });
    }
    std::erase_if(idle_, [](const auto& each) { return each.second.empty(); });
    ticking_ = !busy_.empty();
    if (ticking_) Tick();
  });
}

Awaitable<Status> Peers::Find(const std::string& url, Place& place) {
  const auto parsed = ParseHttpUrl(url);
  if (!parsed.ok()) co_return parsed.status();
  place.url = parsed.value();
  const bool v6 = place.url.host.find(':') != std::string::npos;
  place.authority = v6 ? fmt::format("[{}]:{}", place.url.host, place.url.port)
                       : fmt::format("{}:{}", place.url.host, place.url.port);
  if (place.url.tls) co_return Status();
  Pending<Result<Endpoints>> pending(worker_);
  RunOn(pool_, pending, [&] { return Resolve(place.url); });
  co_await pending.Wait();
  auto found = pending.Take();
  if (!found.ok()) co_return found.status();
  place.addresses = std::move(found).value();
  co_return Status();
}

Awaitable<Status> Peers::Connect(Link& link, const Place& place) {
  const Busy busy(*this, link);
  error_code error = asio::error::host_not_found;
  for (const auto& address : place.addresses) {
    error_code ignored;
    link.socket.close(ignored);
    link.socket.open(address.protocol(), error);
    if (error) continue;
    co_await link.socket.async_connect(address, asio::redirect_error(kUseAwaitable, error));
    if (!error || link.timed_out) break;
  }
  if (error || link.timed_out) {
    co_return Status(StatusCode::kUnavailable,
                     fmt::format("cannot connect to {}: {}", place.authority, error.message()));
  }
  link.socket.set_option(asio::ip::tcp::no_delay(true), error);
  link.socket.non_blocking(true, error);
  co_return Status();
}

Awaitable<Status> Peers::Write(Link& link, const std::string& bytes) {
  const Busy busy(*this, link);
  std::size_t written = 0;
  while (written < bytes.size()) {
    const auto rest = asio::buffer(bytes.data() + written, bytes.size() - written);
    error_code error;
    written += link.socket.write_some(rest, error);
    if (error == asio::error::would_block || error == asio::error::try_again) {
      co_await link.socket.async_wait(Socket::wait_write,
                                      asio::redirect_error(kUseAwaitable, error));
    }
    if (error || link.timed_out) co_return Failed(error, link.timed_out);
  }
  co_return Status();
}

// kNotFound: the connection ended before anything of the reply came.
Awaitable<Status> Peers::Read(Link& link, HttpReply& reply, bool& keep) {
  const Busy busy(*this, link);
  http::response_parser<http::string_body> parser;
  parser.body_limit(kMostReplyBytes);
  parser.eager(false);  // before it takes memory for a body its length is looked at
  std::string in(kReadBytes, '\0');
  std::size_t has = 0;
  bool any = false;
  error_code error;
  while (!parser.is_done()) {
    if (has == in.size()) in.resize(2 * in.size());
    const std::size_t count = co_await link.socket.async_read_some(
        asio::buffer(in.data() + has, in.size() - has), asio::redirect_error(kUseAwaitable, error));
    if (link.timed_out) co_return Failed(error, true);
    if (error && !any) co_return Status::NotFound(error.message());
    if (error == asio::error::eof) parser.put_eof(error);
    if (error) co_return Failed(error, false);
    any |= count > 0;
    has += count;
    std::size_t used = parser.put(asio::buffer(in.data(), has), error);
    if (!error && !parser.eager() && !parser.is_done()) {
      if (parser.content_length().value_or(0) > kMostReplyBytes) co_return TooLarge();
      parser.eager(true);
      if (used < has) used += parser.put(asio::buffer(in.data() + used, has - used), error);
    }
    if (error && error != http::error::need_more) co_return Failed(error, false);
    std::memmove(in.data(), in.data() + used, has - used);
    has -= used;
  }
  keep = parser.keep_alive() && has == 0;
  reply.status = parser.get().result_int();
  if (!IsAnswer(reply.status)) co_return NoAnswer(reply.status);
  reply.body = std::move(parser.get().body());
  co_return Status();
}

Awaitable<Result<HttpReply>> Peers::SendByTls(const std::string& url, const PeerRequest& request,
                                              bool& sent) {
  HttpRequest message{.method = std::string(request.method),
                      .target = std::string(request.target),
                      .body = std::string(request.body)};
  for (std::string_view rest = request.fields; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find("\r\n"));
    rest.remove_prefix(std::min(rest.size(), line.size() + 2));
    const std::size_t colon = line.find(": ");
    message.headers.emplace_back(line.substr(0, colon), line.substr(colon + 2));
  }
  Pending<Result<HttpReply>> pending(worker_);
  RunOn(pool_, pending, [&]() -> Result<HttpReply> {
    // The connections of this thread of the pool.
    thread_local std::map<std::string, std::unique_ptr<HttpClient>> clients;
    std::unique_ptr<HttpClient>& client = clients[url];
    if (client == nullptr) {
      const auto parsed = ParseHttpUrl(url);
      if (!parsed.ok()) return parsed.status();
      auto connected = HttpClient::Connect(parsed.value(), timeout_);
      if (!connected.ok()) return connected.status();
      client = std::move(connected).value();
    }
    sent = true;
    auto reply = client->Send(message, timeout_);
    if (reply.ok() && !IsAnswer(reply.value().status)) reply = NoAnswer(reply.value().status);
    if (!reply.ok()) client.reset();
    return reply;
  });
  co_await pending.Wait();
  co_return pending.Take();
}

Awaitable<Result<HttpReply>> Peers::Send(const std::string& url, const PeerRequest& request,
                                         bool& sent) {
  sent = false;
  // Held while it is used: others may find it anew.
  std::shared_ptr<const Place> place = places_[url];
  if (place == nullptr) {
    auto found = std::make_shared<Place>();
    const Status status = co_await Find(url, *found);
    if (!status.ok()) co_return status;
    place = places_[url] = std::move(found);
  }
  if (place->url.tls) {
    auto reply = co_await SendByTls(url, request, sent);
    co_return reply;
  }
  const std::string bytes = Encode(request, place->authority);
  while (true) {
    std::unique_ptr<Link> link;
    std::vector<std::unique_ptr<Link>>& idle = idle_[url];
    const bool reused = !idle.empty();
    if (reused) {
      link = std::move(idle.back());
      idle.pop_back();
    } else {
      link = std::make_unique<Link>(worker_);
      const Status connected = co_await Connect(*link, *place);
      if (!connected.ok()) {
        places_.erase(url);  // its name may lead elsewhere by now
        co_return connected;
      }
    }
    sent = true;
    HttpReply reply;
    bool keep = false;
    Status status = co_await Write(*link, bytes);
    const bool written = status.ok();
    if (written) status = co_await Read(*link, reply, keep);
    if (status.ok()) {
      if (keep) {
        link->until = Clock::now() + kIdle;
        idle_[url].push_back(std::move(link));
      }
      co_return reply;
    }
    // The other node may have closed an idle connection. Then it has read nothing of the request.
    const bool closed = status.code() == (written ? StatusCode::kNotFound : StatusCode::kIoError);
    if (!reused || !closed) co_return status;
  }
}

}  // namespace codband::server
