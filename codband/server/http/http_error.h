#pragma once

#include <exception>
#include <string>
#include <string_view>

#include "codband/base/status.h"

namespace codband::server {

// An error as a reply reports it.
struct HttpError {
  int status = 500;
  std::string_view code;   // for programs; a literal
  std::string field = {};  // empty: no particular one
  std::string message;     // for people: "has 7 numbers, expected 25"
  int retry_after_s = 0;   // 0: a retry will not help
};

// The one table from status codes to HTTP. The field is what comes before the first ": " in a
// message of kInvalidArgument, kConflict, kGone or kRejected, if that is one word. Precondition:
// not ok.
HttpError ToHttpError(const Status& status);

// For an exception that escaped a handler: 503 if there was no memory, else 500.
HttpError ErrorOfException(const std::exception_ptr& failure);

// "Not Found" for 404.
std::string_view ReasonPhrase(int status);

}  // namespace codband::server
