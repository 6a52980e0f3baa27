#include "codband/server/api/api_error.h"

#include <fmt/format.h>

#include "codband/server/api/reply_json.h"

namespace codband::server {

void SetApiError(Reply& reply, const HttpError& error,
                 const std::optional<ImportProgress>& progress) {
  reply.status = error.status;
  reply.content_type = Reply::kJson;
  reply.body.clear();
  if (error.retry_after_s > 0) {
    reply.headers += fmt::format("Retry-After: {}\r\n", error.retry_after_s);
  }
  AppendError(reply.body, error, progress);
}

void SetApiError(Reply& reply, const Status& status) { SetApiError(reply, ToHttpError(status)); }

void SetInternalError(Reply& reply, std::string message) {
  reply.Reset();
  SetApiError(reply, {.status = 500, .code = "Internal", .message = std::move(message)});
}

}  // namespace codband::server
