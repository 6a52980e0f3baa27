#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "codband/base/status.h"
#include "codband/engine/engine.h"

namespace codband::server {

class DecisionLog;

inline constexpr std::size_t kMaxThreads = 256;

struct ServerOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8080;  // 0: any that is free
  std::size_t threads = 2;
  std::size_t max_connections = 1000;
  std::size_t max_body_bytes = 1 << 20;       // of one request
  std::size_t max_import_bytes = 1 << 30;     // of a bulk import
  std::int64_t request_timeout_ms = 10'000;   // to send a request as a whole
  std::int64_t idle_timeout_ms = 60'000;      // between requests
  std::string api_key = {};                   // empty: none is asked for
  std::string mode = {};                      // of the engine, for the first page: "online"
  const DecisionLog* decision_log = nullptr;  // for the metrics; outlives the server
};

// The HTTP service; docs/http_api.md describes it. Runs on threads of its own.
class Server {
 public:
  // Listens. The engine outlives the server. kUnavailable if the address is taken, kInvalidArgument
  // if it is none of this machine's.
  static Result<std::unique_ptr<Server>> Start(engine::Engine& engine,
                                               const ServerOptions& options);
  virtual ~Server() = default;  // Stop()

  virtual std::uint16_t port() const = 0;
  // Takes no new requests, answers those that have been read, closes. Safe to call twice.
  virtual void Stop() = 0;
};

}  // namespace codband::server
