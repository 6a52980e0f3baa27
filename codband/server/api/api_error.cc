#include "codband/server/api/api_error.h"

#include <fmt/format.h>

#include <algorithm>

#include "codband/server/api/reply_json.h"

namespace codband::server {
namespace {

// Whether a slash at this place begins a path, and is not within a word as in "Input/output".
bool BeginsPath(std::string_view text, std::size_t at) {
  return text[at] == '/' && at + 1 < text.size() && text[at + 1] != ' ' &&
         (at == 0 || std::string_view(" '\"(=:[<").find(text[at - 1]) != std::string_view::npos);
}

std::size_t EndOfPath(std::string_view text, std::size_t begin) {
  std::size_t end = std::min(text.find_first_of("'\"(),;[]\n", begin), text.size());
  end = std::min(end, text.find(": ", begin));
  const std::size_t last_slash = text.substr(0, end).rfind('/');
  return std::min(end, text.find(' ', last_slash));
}

}  // namespace

std::string WithoutPaths(std::string_view message) {
  std::string shown;
  for (std::size_t i = 0; i < message.size();) {
    if (BeginsPath(message, i)) {
      shown += "<path>";
      i = EndOfPath(message, i);
    } else {
      shown += message[i++];
    }
  }
  return shown;
}

void SetApiError(Reply& reply, const HttpError& error,
                 const std::optional<ImportProgress>& progress) {
  reply.status = error.status;
  reply.content_type = Reply::kJson;
  reply.body.clear();
  if (error.retry_after_s > 0) {
    reply.headers += fmt::format("Retry-After: {}\r\n", error.retry_after_s);
  }
  if (error.status < 500) return AppendError(reply.body, error, progress);
  HttpError shown = error;
  shown.message = WithoutPaths(error.message);
  AppendError(reply.body, shown, progress);
}

void SetApiError(Reply& reply, const Status& status) { SetApiError(reply, ToHttpError(status)); }

}  // namespace codband::server
