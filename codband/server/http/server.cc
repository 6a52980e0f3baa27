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
#include <thread>
#include <vector>

#include "codband/server/api/api.h"
#include "codband/server/api/decision_log.h"
#include "codband/server/api/metrics.h"
#include "codband/server/http/session.h"
#include "codband/server/http/worker.h"

namespace codband::server {
namespace {

using boost::system::error_code;
using Acceptor = asio::basic_socket_acceptor<asio::ip::tcp, Executor>;
using Timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                         asio::wait_traits<std::chrono::steady_clock>, Executor>;

constexpr std::size_t kMostRefusing = 64;  // connections that are being told that there is no room

std::int64_t NowMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// Often enough for the shortest time limit, and for the clock in the answers.
std::chrono::milliseconds TickOf(const ServerOptions& options) {
  const std::int64_t shortest = std::min(options.request_timeout_ms, options.idle_timeout_ms);
  return std::chrono::milliseconds(std::clamp<std::int64_t>(shortest / 4, 5, 500));
}

Status Validate(const ServerOptions& options) {
  const auto bad = [](std::string_view field, std::string_view reason) {
    return Status::InvalidArgument(fmt::format("{}: {}", field, reason));
  };
  if (options.threads == 0 || options.threads > kMaxThreads) {
    return bad("threads", fmt::format("is {}, expected 1 to {}", options.threads, kMaxThreads));
  }
  if (options.max_connections == 0) return bad("max_connections", "is 0");
  if (options.request_timeout_ms <= 0) return bad("request_timeout_ms", "is not positive");
  if (options.idle_timeout_ms <= 0) return bad("idle_timeout_ms", "is not positive");
  if (options.max_body_bytes == 0) return bad("max_body_bytes", "is 0");
  if (options.api_key.find_first_of("\r\n") != std::string::npos) {
    return bad("api_key", "has a line break");
  }
  return {};
}

std::vector<std::unique_ptr<Worker>> MakeWorkers(const ServerOptions& options) {
  std::vector<std::unique_ptr<Worker>> workers;
  for (std::size_t i = 0; i < options.threads; ++i) {
    workers.push_back(std::make_unique<Worker>(TickOf(options)));
  }
  return workers;
}

class HttpServer final : public Server {
 public:
  HttpServer(engine::Engine& engine, const ServerOptions& options)
      : options_(options),
        start_time_ms_(NowMs()),
        api_(engine, options_,
             {.metrics =
                  [this, &engine] {
                    std::vector<const RouteMetrics*> threads;
                    for (const auto& worker : workers_) threads.push_back(&worker->metrics());
                    return RenderMetrics(threads, Facts(), engine.Stats());
                  },
              .facts = [this] { return Facts(); }}),
        workers_(MakeWorkers(options_)) {}
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
      return {StatusCode::kUnavailable, fmt::format("{} is taken by another program", where)};
    }
    if (error == boost::system::errc::address_not_available) {
      return Status::InvalidArgument(
          fmt::format("host: {} is no address of this machine", options_.host));
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

  void Stop() override {
    const std::lock_guard lock(stop_mutex_);
    if (threads_.empty()) return;
    asio::post(workers_.front()->io(), [this] {
      error_code ignored;
      acceptor_.close(ignored);
      retry_.cancel();
      // A connection that was accepted just now may be on its way to another worker, which must
      // not have ended before it gets there: all are told from here, after it was sent.
      for (const auto& worker : workers_) worker->Stop();
    });
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    api_.Stop();
  }

 private:
  ServerFacts Facts() const {
    ServerFacts facts{.connections = connections_.load(std::memory_order_relaxed),
                      .connections_accepted = accepted_.load(std::memory_order_relaxed),
                      .connections_refused = refused_.load(std::memory_order_relaxed),
                      .start_time_ms = start_time_ms_,
                      .now_ms = NowMs()};
    if (options_.decision_log != nullptr) facts.decision_log = options_.decision_log->Stats();
    return facts;
  }

  Awaitable<void> Accept() {
    for (std::size_t turn = 0;; ++turn) {
      Worker& worker = *workers_[turn % workers_.size()];
      error_code error;
      Socket socket =
          co_await acceptor_.async_accept(worker.io(), asio::redirect_error(kUseAwaitable, error));
      if (!acceptor_.is_open()) co_return;
      if (error) {
        // Out of file descriptors, most likely: some will come free.
        retry_.expires_after(std::chrono::milliseconds(50));
        co_await retry_.async_wait(asio::redirect_error(kUseAwaitable, error));
        if (!acceptor_.is_open()) co_return;
        continue;
      }
      Admit(worker, std::move(socket));
    }
  }

  void Admit(Worker& worker, Socket socket) {
    accepted_.fetch_add(1, std::memory_order_relaxed);
    const bool full = connections_.load() >= options_.max_connections;
    std::atomic<std::uint64_t>& count = full ? refusing_ : connections_;
    if (full) {
      refused_.fetch_add(1, std::memory_order_relaxed);
      if (refusing_.load() >= kMostRefusing) return;  // closes it without a word
    }
    count.fetch_add(1);
    asio::post(worker.io(), [this, &worker, &count, full, socket = std::move(socket)]() mutable {
      // Shared with the coroutine alone, which may only hold what can be copied.
      const auto session = std::make_shared<Session>(worker, api_, options_, std::move(socket),
                                                     [&count] { count.fetch_sub(1); });
      asio::co_spawn(
          worker.io(), [session, full] { return full ? session->Refuse() : session->Run(); },
          asio::detached);
    });
  }

  const ServerOptions options_;
  const std::int64_t start_time_ms_;
  std::atomic<std::uint64_t> connections_ = 0;
  std::atomic<std::uint64_t> refusing_ = 0;
  std::atomic<std::uint64_t> accepted_ = 0;
  std::atomic<std::uint64_t> refused_ = 0;
  std::uint16_t port_ = 0;
  Api api_;
  std::vector<std::unique_ptr<Worker>> workers_;
  Acceptor acceptor_{workers_.front()->io()};
  Timer retry_{workers_.front()->io()};
  std::mutex stop_mutex_;
  std::vector<std::thread> threads_;
};

}  // namespace

Result<std::unique_ptr<Server>> Server::Start(engine::Engine& engine,
                                              const ServerOptions& options) {
  CODBAND_RETURN_IF_ERROR(Validate(options));
  auto server = std::make_unique<HttpServer>(engine, options);
  CODBAND_RETURN_IF_ERROR(server->Listen());
  server->Serve();
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace codband::server
