#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "codband/base/status.h"

namespace codband::server {

// An answer that says what is wrong: {"error": {"code", "field", "message", …}}.
struct HttpError {
  int status = 500;
  std::string_view code;                       // for programs; a literal
  std::string field = {};                      // empty: none in particular
  std::string message;                         // for people: "has 7 numbers, expected 25"
  std::optional<std::uint64_t> line = {};      // of a bulk import
  std::optional<std::uint64_t> imported = {};  // lines of it that are in the catalogue all the same
  int retry_after_s = 0;                       // 0: trying again will not help
};

// The one table from codes to HTTP. The field is what stands before the first ": " of the message
// of kInvalidArgument, if that is one word. Precondition: not ok.
HttpError ToHttpError(const Status& status);

// "Not Found" for 404.
std::string_view ReasonPhrase(int status);

}  // namespace codband::server
