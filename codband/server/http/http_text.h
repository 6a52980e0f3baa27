#pragma once

#include <string>
#include <string_view>

#include "codband/base/status.h"

namespace codband::server {

// Text helpers of the HTTP server. Pure functions, safe from any thread.

// Percent-decoding: "caf%C3%A9" → "café". kInvalidArgument if a percent sign is not followed by two
// hex digits. '+' becomes a space if `form`, as in query strings.
Result<std::string> UrlDecode(std::string_view text, bool form = false);

// Whether they are equal; takes a time that depends only on the length of `given`.
bool SameSecret(std::string_view expected, std::string_view given);

}  // namespace codband::server
