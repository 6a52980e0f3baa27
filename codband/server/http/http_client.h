#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codband/base/status.h"

namespace codband::server {

// The parts of "http://127.0.0.1:8080"; what follows the port is ignored.
struct HttpUrl {
  std::string host;  // without the brackets of an IPv6 address
  std::uint16_t port = 80;
  bool tls = false;  // https
  // With TLS: the SHA-256 of the server's certificate, in hex. Empty: the certificate must be one
  // that this machine trusts for the host.
  std::string fingerprint = {};
};
Result<HttpUrl> ParseHttpUrl(std::string_view url);

struct HttpRequest {
  std::string method = "GET";
  std::string target = "/";
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body = {};  // with a body: sent as application/json unless a header says otherwise
};

struct HttpReply {
  unsigned status = 0;
  std::string body;
};

// One connection to a server, for commands and tests: one request at a time. It is kept alive, and
// reopened if the server has closed it meanwhile. Not thread-safe.
class HttpClient {
 public:
  // Connects. kUnavailable if nobody listens or with TLS cannot be trusted, kInvalidArgument if the
  // host cannot be resolved.
  static Result<std::unique_ptr<HttpClient>> Connect(const HttpUrl& url,
                                                     std::chrono::milliseconds timeout);
  virtual ~HttpClient() = default;

  // Sends the request and waits for the complete reply, whatever its status. kUnavailable after the
  // timeout, kIoError if the connection breaks; the request may have been handled nevertheless.
  virtual Result<HttpReply> Send(const HttpRequest& request, std::chrono::milliseconds timeout) = 0;
};

}  // namespace codband::server
