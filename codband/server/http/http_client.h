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

// "http://127.0.0.1:8080", in parts. Only plain HTTP; what follows the port is left out.
struct HttpUrl {
  std::string host;  // without the brackets of an IPv6 address
  std::uint16_t port = 80;
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

// One connection to a server, for commands and load tools: one request at a time, kept open between
// them and opened again when the server has closed it in the meantime. Not thread-safe.
class HttpClient {
 public:
  // Connects. kUnavailable if nobody listens there, kInvalidArgument if the host has no address.
  static Result<std::unique_ptr<HttpClient>> Connect(const HttpUrl& url,
                                                     std::chrono::milliseconds timeout);
  virtual ~HttpClient() = default;

  // Sends and waits for the whole reply, whatever its status says. kUnavailable when the time is
  // over, kIoError when the connection breaks; the request may have been carried out all the same.
  virtual Result<HttpReply> Send(const HttpRequest& request, std::chrono::milliseconds timeout) = 0;
};

}  // namespace codband::server
