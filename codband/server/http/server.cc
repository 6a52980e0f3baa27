#include "codband/server/http/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <chrono>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "codband/base/clock.h"
#include "codband/server/http/admission.h"
#include "codband/server/http/descriptors.h"
#include "codband/server/http/service.h"
#include "codband/server/http/session.h"
#include "codband/server/http/tls_stream.h"
#include "codband/server/http/worker.h"

namespace codband::server {
namespace {

using boost::system::error_code;
using Acceptor = asio::basic_socket_acceptor<asio::ip::tcp, Executor>;
using Timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                         asio::wait_traits<std::chrono::steady_clock>, Executor>;

constexpr std::size_t kMostRefusing = 64;  // connections that are being sent a 503 at a time
constexpr std::size_t kMostSeeking = 64;   // connections that wait for the place of another

// Short enough for the shortest timeout and for the Date header.
std::chrono::milliseconds TickOf(const ServerOptions& options) {
  const std::int64_t shortest = std::min(options.request_timeout_ms, options.idle_timeout_ms);
  return std::chrono::milliseconds(std::clamp<std::int64_t>(shortest / 4, 5, 500));
}

Status Validate(const ServerOptions& options) {
  const auto bad = [](std::string_view field, std::string_view reason) {
    return Status::InvalidArgument(fmt::format("{}: {}", field, reason));
  };
  const auto not_positive = [&](std::string_view field, std::int64_t value) {
    return bad(field, fmt::format("is {}, expected a positive number", value));
  };
  if (options.threads == 0 || options.threads > kMaxThreads) {
    return bad("threads", fmt::format("is {}, expected 1 to {}", options.threads, kMaxThreads));
  }
  if (options.max_connections == 0) return not_positive("max_connections", 0);
  if (options.max_connections_per_address == 0) {
    return not_positive("max_connections_per_address", 0);
  }
  if (options.request_timeout_ms <= 0) {
    return not_positive("request_timeout_ms", options.request_timeout_ms);
  }
  if (options.idle_timeout_ms <= 0) {
    return not_positive("idle_timeout_ms", options.idle_timeout_ms);
  }
  if (options.max_body_bytes == 0) return not_positive("max_body_bytes", 0);
  for (const std::string& host : options.allowed_hosts) {
    const Status status = ValidateAllowedHost(host);
    if (!status.ok()) return bad("allowed_hosts", status.message());
  }
  for (const std::string& origin : options.allowed_origins) {
    const Status status = ValidateAllowedOrigin(origin);
    if (!status.ok()) return bad("allowed_origins", status.message());
  }
  return {};
}

std::vector<std::unique_ptr<Worker>> MakeWorkers(const ServerOptions& options, std::size_t routes) {
  std::vector<std::unique_ptr<Worker>> workers;
  for (std::size_t i = 0; i < options.threads; ++i) {
    workers.push_back(std::make_unique<Worker>(i, TickOf(options), routes));
  }
  return workers;
}

// Counts one while it lives. Movable.
class Counted {
 public:
  explicit Counted(std::atomic<std::uint64_t>& count) : count_(&count) { count.fetch_add(1); }
  Counted(Counted&& other) noexcept : count_(std::exchange(other.count_, nullptr)) {}
  Counted& operator=(Counted&&) = delete;
  ~Counted() {
    if (count_ != nullptr) count_->fetch_sub(1);
  }

 private:
  std::atomic<std::uint64_t>* count_;
};

class HttpServer final : public Server, public ServerView {
 public:
  // `tls` is nullptr for plain HTTP.
  HttpServer(std::unique_ptr<Service> service, const ServerOptions& options, TlsContext tls)
      : options_(options),
        guard_({.allowed_hosts = options.allowed_hosts,
                .allowed_origins = options.allowed_origins,
                .tls = tls != nullptr}),
        admission_(std::min(options.max_connections, ConnectionsThatFit()),
                   options.max_connections_per_address),
        tls_(std::move(tls)),
        start_time_ms_(UnixMillis()),
        service_(std::move(service)),
        workers_(MakeWorkers(options_, service_->router().routes().size())) {
    service_->Start(workers_.size());
  }
  ~HttpServer() override { Stop(); }

  Status Listen() {
    error_code error;
    const asio::ip::address address = asio::ip::make_address(options_.host, error);
    if (error) {
      return Status::InvalidArgument(
          fmt::format("host: is '{}', expected an IPv4 or IPv6 address", options_.host));
    }
    const asio::ip::tcp::endpoint endpoint(address, options_.port);
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(Acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (!error) {
      port_ = acceptor_.local_endpoint(error).port();
      return {};
    }
    const std::string where = fmt::format("{}:{}", options_.host, options_.port);
    if (error == asio::error::address_in_use) {
      return {StatusCode::kUnavailable, fmt::format("{} is in use by another program", where)};
    }
    if (error == boost::system::errc::address_not_available) {
      return Status::InvalidArgument(
          fmt::format("host: {} is not an address of this machine", options_.host));
    }
    return {StatusCode::kUnavailable,
            fmt::format("cannot listen on {}: {}", where, error.message())};
  }

  void Serve() {
    asio::co_spawn(
        workers_.front()->io(), [this] { return Accept(); }, asio::detached);
    for (const auto& worker : workers_) {
      threads_.emplace_back([running = worker.get()] { running->Run(); });
    }
  }

  std::uint16_t port() const override { return port_; }
  std::size_t max_connections() const override { return admission_.most(); }

  std::string certificate_fingerprint() const override {
    const TlsContext tls = CurrentTls();
    return tls == nullptr ? std::string() : CertificateFingerprint(tls);
  }

  Status ReloadTls() override {
    if (options_.tls.empty()) return {};
    auto tls = LoadTls(options_.tls);
    if (!tls.ok()) return tls.status();
    const std::lock_guard lock(tls_mutex_);
    tls_ = std::move(tls).value();
    return {};
  }

  void Stop() override {
    const std::lock_guard lock(stop_mutex_);
    if (threads_.empty()) return;
    service_->BeginStop();
    asio::post(workers_.front()->io(), [this] {
      error_code ignored;
      acceptor_.close(ignored);
      retry_.cancel();
      // A connection accepted just before may still be queued for another worker, which must not
      // end before it arrives: Stop is posted from this thread, and so after the connection.
      for (const auto& worker : workers_) worker->Stop();
    });
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    service_->Stop();
  }

  ServerFacts Facts() const override {
    return {.connections = admission_.open(),
            .connections_accepted = accepted_.load(std::memory_order_relaxed),
            .connections_refused = refused_.load(std::memory_order_relaxed),
            .connections_displaced = displaced_.load(std::memory_order_relaxed),
            .max_connections = admission_.most(),
            .start_time_ms = start_time_ms_,
            .now_ms = UnixMillis()};
  }

  std::vector<RouteMetrics::Totals> RouteTotals() const override {
    std::vector<RouteMetrics::Totals> totals(service_->router().routes().size() + 1);
    for (const auto& worker : workers_) worker->metrics().AddTo(totals);
    return totals;
  }

 private:
  using Verdict = Admission::Verdict;

  Awaitable<void> Accept() {
    for (std::size_t turn = 0;; ++turn) {
      Worker& worker = *workers_[turn % workers_.size()];
      error_code error;
      // Who comes faster than room can be made waits in the queue of the system.
      while (seeking_.load() >= kMostSeeking) {
        retry_.expires_after(std::chrono::milliseconds(1));
        co_await retry_.async_wait(asio::redirect_error(kUseAwaitable, error));
        if (!acceptor_.is_open()) co_return;
      }
      asio::ip::tcp::endpoint client;
      Socket socket = co_await acceptor_.async_accept(worker.io(), client,
                                                      asio::redirect_error(kUseAwaitable, error));
      if (!acceptor_.is_open()) co_return;
      if (!error) {
        try {
          Admit(worker, std::move(socket), client.address());
        } catch (...) {
          // Out of memory, or the client is gone: this connection is closed, others may come.
        }
        continue;
      }
      // Most likely out of file descriptors: retry until some are closed.
      MakeRoomSomewhere();
      retry_.expires_after(std::chrono::milliseconds(50));
      co_await retry_.async_wait(asio::redirect_error(kUseAwaitable, error));
      if (!acceptor_.is_open()) co_return;
    }
  }

  void Admit(Worker& worker, Socket socket, const asio::ip::address& client) {
    accepted_.fetch_add(1, std::memory_order_relaxed);
    auto [place, verdict] = admission_.Enter(NetworkOf(client));
    Incoming incoming{.socket = std::move(socket), .place = std::move(place), .tls = CurrentTls()};
    if (verdict == Verdict::kAdmitted) {
      asio::post(worker.io(), [this, &worker, incoming = std::move(incoming)]() mutable {
        Open(worker, std::move(incoming));
      });
      return;
    }
    // It takes the place of another connection, on that one's worker.
    Worker& other = MostWaiting(worker);
    if (&other != &worker) incoming.socket = MovedTo(other, std::move(incoming.socket));
    asio::post(other.io(), [this, &other, verdict = verdict, seeking = Counted(seeking_),
                            incoming = std::move(incoming)]() mutable {
      const bool of_network = verdict == Verdict::kTooManyOfNetwork;
      if (other.MakeRoom(of_network ? incoming.place.network() : std::nullopt)) {
        displaced_.fetch_add(1, std::memory_order_relaxed);
        Open(other, std::move(incoming));
      } else {
        Refuse(other, of_network, std::move(incoming));
      }
    });
  }

  // On the worker's thread.
  void Open(Worker& worker, Incoming incoming) {
    // Shared only with the coroutine, whose function object must be copyable.
    const auto session =
        std::make_shared<Session>(worker, *service_, *this, options_, guard_, std::move(incoming));
    asio::co_spawn(
        worker.io(), [session] { return session->Run(); }, asio::detached);
  }

  // On the worker's thread.
  void Refuse(Worker& worker, bool of_network, Incoming incoming) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    incoming.place.Release();
    if (refusing_.load() >= kMostRefusing) return;  // closed without a reply
    const auto session =
        std::make_shared<Session>(worker, *service_, *this, options_, guard_, std::move(incoming));
    asio::co_spawn(
        worker.io(), [session, of_network] { return session->Refuse(of_network); },
        [refusing = Counted(refusing_)](const std::exception_ptr&) {});
  }

  // The worker with the most idle connections, else with the most that wait for their clients.
  Worker& MostWaiting(Worker& otherwise) {
    Worker* most = &otherwise;
    for (const auto& worker : workers_) {
      if (worker->waiting() > most->waiting()) most = worker.get();
    }
    return *most;
  }

  void MakeRoomSomewhere() {
    Worker& worker = MostWaiting(*workers_.front());
    try {
      asio::post(worker.io(), [this, &worker] {
        if (worker.MakeRoom(std::nullopt)) displaced_.fetch_add(1, std::memory_order_relaxed);
      });
    } catch (const std::bad_alloc&) {
      // The next attempt may do it.
    }
  }

  // The same connection with the event loop of another worker.
  static Socket MovedTo(Worker& worker, Socket socket) {
    const auto protocol = socket.local_endpoint().protocol();
    return Socket(worker.io(), protocol, socket.release());
  }

  TlsContext CurrentTls() const {
    const std::lock_guard lock(tls_mutex_);
    return tls_;
  }

  const ServerOptions options_;
  const RequestGuard guard_;
  Admission admission_;
  mutable std::mutex tls_mutex_;
  TlsContext tls_;  // of connections to come; nullptr: plain HTTP
  const std::int64_t start_time_ms_;
  std::atomic<std::uint64_t> seeking_ = 0;
  std::atomic<std::uint64_t> refusing_ = 0;
  std::atomic<std::uint64_t> displaced_ = 0;
  std::atomic<std::uint64_t> accepted_ = 0;
  std::atomic<std::uint64_t> refused_ = 0;
  std::uint16_t port_ = 0;
  const std::unique_ptr<Service> service_;
  std::vector<std::unique_ptr<Worker>> workers_;
  Acceptor acceptor_{workers_.front()->io()};
  Timer retry_{workers_.front()->io()};
  std::mutex stop_mutex_;
  std::vector<std::thread> threads_;
};

}  // namespace

Result<std::unique_ptr<Server>> Server::Start(std::unique_ptr<Service> service,
                                              const ServerOptions& options) {
  CODBAND_RETURN_IF_ERROR(Validate(options));
  TlsContext tls;
  if (!options.tls.empty()) {
    auto loaded = LoadTls(options.tls);
    if (!loaded.ok()) return loaded.status();
    tls = std::move(loaded).value();
  }
  auto server = std::make_unique<HttpServer>(std::move(service), options, std::move(tls));
  CODBAND_RETURN_IF_ERROR(server->Listen());
  server->Serve();
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace codband::server
