#include "codband/server/http/request_guard.h"

#include <fmt/format.h>

#include <algorithm>

#include "codband/base/excerpt.h"
#include "codband/server/http/authority.h"

namespace codband::server {
namespace {

// The host that a request is for: an absolute target overrides the header (RFC 9112, 3.2.2).
// Nothing if it is malformed; an empty one if the request names none, as in HTTP/1.0.
std::optional<Authority> TargetAuthority(const RequestHead& head) {
  const std::string_view target = head.target;
  const std::size_t scheme = target.starts_with('/') ? target.npos : target.find("://");
  if (scheme != target.npos) {
    const std::string_view rest = target.substr(scheme + 3);
    return ParseAuthority(rest.substr(0, rest.find_first_of("/?#")));
  }
  if (head.host.empty()) return Authority{};
  return ParseAuthority(head.host);
}

std::string_view PortOr(std::string_view port, std::string_view otherwise) {
  return port.empty() ? otherwise : port;
}

bool SameOrigin(std::string_view text, const Authority& host, bool tls) {
  const std::optional<Origin> origin = ParseOrigin(text);
  if (!origin) return false;
  const bool secure = origin->scheme == "https";
  // A proxy in front of a plain server may speak TLS.
  if (!secure && (tls || origin->scheme != "http")) return false;
  const std::string_view standard = secure ? "443" : "80";
  return EqualNoCase(origin->authority.host, host.host) &&
         PortOr(origin->authority.port, standard) == PortOr(host.port, standard);
}

bool IsWrite(std::string_view method) { return method != "GET" && method != "HEAD"; }

}  // namespace

bool RequestGuard::HostAllowed(std::string_view host) const {
  // An attacker can give their name our address, but not ours to their page.
  if (IsAddressLiteral(host) || EqualNoCase(host, "localhost")) return true;
  return std::ranges::any_of(options_.allowed_hosts, [&](std::string_view allowed) {
    if (allowed == "*") return true;
    if (!allowed.starts_with("*.")) return EqualNoCase(allowed, host);
    const std::string_view suffix = allowed.substr(1);
    return host.size() > suffix.size() &&
           EqualNoCase(host.substr(host.size() - suffix.size()), suffix);
  });
}

std::optional<HttpError> RequestGuard::CheckSource(const RequestHead& head) const {
  const std::optional<Authority> host = TargetAuthority(head);
  if (!host) {
    return HttpError{.status = 400,
                     .code = "BadRequest",
                     .field = "target",
                     .message = "has a malformed host, expected a host and an optional port"};
  }
  if (!host->host.empty() && !HostAllowed(host->host)) {
    return HttpError{.status = 421,
                     .code = "HostNotAllowed",
                     .field = "Host",
                     .message = fmt::format("is '{}', expected an address, localhost or a name of "
                                            "the setting http.allowed_hosts: add it there if it "
                                            "is a name of this server",
                                            Excerpt(host->host))};
  }
  if (head.origin.empty()) {
    if (head.fetch_site != RequestHead::FetchSite::kForeign || !IsWrite(head.method)) return {};
    return HttpError{.status = 403,
                     .code = "OriginNotAllowed",
                     .field = "Sec-Fetch-Site",
                     .message = "names a page of another site, whose writes are refused"};
  }
  if (SameOrigin(head.origin, *host, options_.tls) || FromAllowedOrigin(head)) return {};
  return HttpError{.status = 403,
                   .code = "OriginNotAllowed",
                   .field = "Origin",
                   .message = fmt::format("is '{}', expected none, that of this server or one of "
                                          "the setting http.allowed_origins: add it there if its "
                                          "pages may use this server",
                                          Excerpt(head.origin))};
}

bool RequestGuard::FromAllowedOrigin(const RequestHead& head) const {
  return !head.origin.empty() &&
         std::ranges::any_of(options_.allowed_origins, [&](std::string_view allowed) {
           return EqualNoCase(allowed, head.origin);
         });
}

std::optional<HttpError> RequestGuard::CheckBody(const RequestHead& head, const Route& route,
                                                 bool has_body) {
  using Type = RequestHead::Type;
  // A GET changes nothing, whatever is sent with it.
  if (route.method != Method::kGet) {
    const bool lines = route.body == BodyKind::kStreamed;
    const bool fits = head.type == Type::kJson || (lines && head.type == Type::kNdjson) ||
                      (!has_body && head.type == Type::kNone);
    if (!fits) {
      return HttpError{
          .status = 415,
          .code = "UnsupportedMediaType",
          .field = "Content-Type",
          .message = fmt::format(
              "{}, expected {}", head.type == Type::kNone ? "is missing" : "is not supported",
              lines ? "application/x-ndjson or application/json" : "application/json")};
    }
  }
  if (has_body && head.coding == RequestHead::Coding::kOther) {
    return HttpError{.status = 415,
                     .code = "UnsupportedMediaType",
                     .field = "Content-Encoding",
                     .message = "is not supported, expected gzip or none"};
  }
  return {};
}

Status ValidateAllowedHost(std::string_view host) {
  if (host == "*") return {};
  const std::string_view name = host.starts_with("*.") ? host.substr(2) : host;
  const std::optional<Authority> parsed = ParseAuthority(name);
  if (parsed && parsed->host == name) return {};
  return Status::InvalidArgument(
      fmt::format("'{}' is not the name of a host, without a port", Excerpt(host)));
}

Status ValidateAllowedOrigin(std::string_view origin) {
  const std::optional<Origin> parsed = ParseOrigin(origin);
  if (parsed && (parsed->scheme == "http" || parsed->scheme == "https")) return {};
  return Status::InvalidArgument(fmt::format(
      "'{}' is not an origin, such as https://example.org, without a path", Excerpt(origin)));
}

}  // namespace codband::server
