#include "codband/server/http/gatekeeper.h"

#include <fmt/format.h>

#include "codband/server/http/http_text.h"

namespace codband::server {
namespace {

HttpError KeyError(int status, std::string_view code, std::string message) {
  return {.status = status, .code = code, .field = "X-API-Key", .message = std::move(message)};
}

}  // namespace

std::optional<HttpError> VerdictError(const Gatekeeper::Verdict& verdict) {
  if (verdict.retry_after_s > 0) {
    HttpError error =
        KeyError(429, "TooManyFailures",
                 fmt::format("too many wrong keys came from this address; try again in {} seconds",
                             verdict.retry_after_s));
    error.retry_after_s = static_cast<int>(verdict.retry_after_s);
    return error;
  }
  if (!verdict.role) return KeyError(401, "Unauthorized", "is wrong");
  return std::nullopt;
}

std::optional<HttpError> RequestAccess::Check(const RequestHead& head, const Route* route) {
  const Access needed = route == nullptr ? Access::kAnyKey : route->access;
  if (gatekeeper_ == nullptr || needed == Access::kOpen) return std::nullopt;
  if (head.api_key.empty()) return CheckSession(head, needed);
  const bool known = !admitted_key_.empty() && verdict_.generation == gatekeeper_->generation() &&
                     SameSecret(admitted_key_, head.api_key);
  if (!known) {
    admitted_key_.clear();
    verdict_ = gatekeeper_->Check(client_, head.api_key);
    if (auto error = VerdictError(verdict_)) return error;
    admitted_key_ = head.api_key;
  }
  if (Allows(*verdict_.role, needed)) return std::nullopt;
  return KeyError(
      403, "Forbidden",
      fmt::format("has the role {}, expected {}", AccessText(*verdict_.role), AccessText(needed)));
}

std::optional<HttpError> RequestAccess::CheckSession(const RequestHead& head, Access needed) {
  const auto session = head.session.empty() ? std::nullopt : gatekeeper_->FindSession(head.session);
  if (!session) return KeyError(401, "Unauthorized", "is missing");
  if (head.method != "GET" && head.method != "HEAD" && !SameSecret(session->csrf, head.csrf)) {
    return HttpError{.status = 403,
                     .code = "Forbidden",
                     .field = "X-CSRF-Token",
                     .message = "is missing or wrong, expected that of the session"};
  }
  if (Allows(session->role, needed)) return std::nullopt;
  return KeyError(403, "Forbidden",
                  fmt::format("the session has the role {}, expected {}", AccessText(session->role),
                              AccessText(needed)));
}

}  // namespace codband::server
