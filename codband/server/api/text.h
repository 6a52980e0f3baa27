#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "codband/base/status.h"

namespace codband::server {

// Text helpers of the HTTP service. Pure functions, safe from any thread.

// Bytes of the UTF-8 character that starts at `position`; 0 if none does. Precondition: position <
// text.size().
std::size_t Utf8Length(std::string_view text, std::size_t position);

bool IsUtf8(std::string_view text);

// "caf%C3%A9" → "café". kInvalidArgument if a percent sign is not followed by two hex digits. '+'
// stays a plus unless `form` (the rule of query strings) makes it a space.
Result<std::string> UrlDecode(std::string_view text, bool form = false);

// Safe as content or as a quoted attribute of HTML; control characters and invalid UTF-8 become
// U+FFFD.
void AppendHtml(std::string& out, std::string_view text);

// RFC 3339 in UTC with milliseconds: "2019-07-07T12:00:00.000Z". Times outside of the years 0 to
// 9999 are cut to them.
void AppendTime(std::string& out, std::int64_t time_ms);

// Whether they are equal, in a time that depends on the length of `given` alone.
bool SameSecret(std::string_view expected, std::string_view given);

}  // namespace codband::server
