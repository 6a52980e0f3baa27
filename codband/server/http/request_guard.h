#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codband/base/status.h"
#include "codband/server/http/http_error.h"
#include "codband/server/http/request_reader.h"
#include "codband/server/http/route.h"

namespace codband::server {

// Keeps pages of other sites from using the server through the browser of somebody who can reach
// it. Immutable: safe from any thread; its checks allocate nothing unless they refuse.
//
// - A name that an attacker points at our address (DNS rebinding): the host of a request is an
//   address, localhost or a name that is allowed.
// - Requests that a page of another site sends: browsers name the site in the header Origin, which
//   is our own or allowed; and Sec-Fetch-Site tells them even where Origin is missing.
// - What a form can send: a write is application/json, which no form can be.
class RequestGuard {
 public:
  struct Options {
    std::vector<std::string> allowed_hosts = {};    // "example.org", "*.example.org", "*": any
    std::vector<std::string> allowed_origins = {};  // "https://example.org"
    bool tls = false;
  };
  explicit RequestGuard(Options options) : options_(std::move(options)) {}

  // What is wrong with the host or the origin of a request, if anything.
  std::optional<HttpError> CheckSource(const RequestHead& head) const;
  // Whether a page of one of the allowed origins sent it. Precondition: CheckSource is fine.
  bool FromAllowedOrigin(const RequestHead& head) const;
  // What is wrong with the type or the coding of the body, if anything.
  static std::optional<HttpError> CheckBody(const RequestHead& head, const Route& route,
                                            bool has_body);

 private:
  bool HostAllowed(std::string_view host) const;

  const Options options_;
};

// kInvalidArgument, with what is wrong, for a host or an origin that cannot be allowed.
Status ValidateAllowedHost(std::string_view host);
Status ValidateAllowedOrigin(std::string_view origin);

}  // namespace codband::server
