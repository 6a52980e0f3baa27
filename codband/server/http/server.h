#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "codband/base/status.h"
#include "codband/server/http/tls_files.h"

namespace codband::server {

class Gatekeeper;
class Service;

inline constexpr std::size_t kMaxThreads = 256;

struct ServerOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8080;  // 0: any free port
  std::size_t threads = 2;
  std::size_t max_connections = 1000;  // fewer if the limit of open files is too low for them
  std::size_t max_connections_per_address = 250;  // but for this machine
  std::size_t max_body_bytes = 1 << 20;           // of a request
  std::size_t max_stream_bytes = 1 << 30;         // of a request with a streamed body
  std::int64_t request_timeout_ms = 10'000;       // from the first byte of a request to its last
  std::int64_t idle_timeout_ms = 60'000;          // between requests
  Gatekeeper* gatekeeper = nullptr;  // outlives the server; nullptr: no key is required
  // Names of this server, and sites whose pages may use it: see RequestGuard.
  std::vector<std::string> allowed_hosts = {};
  std::vector<std::string> allowed_origins = {};
  TlsFiles tls = {};  // empty: plain HTTP
};

// An HTTP/1.1 server on threads of its own. It reads requests and writes replies; what they mean is
// up to the service. docs/http_api.md describes limits and connections.
class Server {
 public:
  // Starts to listen. kUnavailable if the port is in use, kInvalidArgument if the address is not
  // one of this machine or the files of TLS cannot be used.
  static Result<std::unique_ptr<Server>> Start(std::unique_ptr<Service> service,
                                               const ServerOptions& options);
  virtual ~Server() = default;  // Stop()

  virtual std::uint16_t port() const = 0;
  // Connections that may be open at a time.
  virtual std::size_t max_connections() const = 0;
  // Of the certificate that new connections get, in hex; empty without TLS. From any thread.
  virtual std::string certificate_fingerprint() const = 0;
  // Reads certificate and key again, for connections to come. If they cannot be used, nothing
  // changes. From any thread.
  virtual Status ReloadTls() = 0;
  // Accepts no new requests, answers those that have been read, closes. Safe to call twice.
  virtual void Stop() = 0;
};

}  // namespace codband::server
