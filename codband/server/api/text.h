#pragma once

#include <string>
#include <string_view>

#include "codband/base/status.h"

namespace codband::server {

// Text helpers of the HTTP service. Pure functions, safe from any thread.

// "caf%C3%A9" → "café". kInvalidArgument if a percent sign is not followed by two hex digits. '+'
// stays a plus unless `form` (the rule of query strings) makes it a space.
Result<std::string> UrlDecode(std::string_view text, bool form = false);

// Whether they are equal, in a time that depends on the length of `given` alone.
bool SameSecret(std::string_view expected, std::string_view given);

}  // namespace codband::server
