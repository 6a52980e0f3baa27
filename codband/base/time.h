#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace codband {

// Points in time as text. Times are milliseconds since 1970-01-01T00:00:00Z. Pure functions, safe
// from any thread.

// Appends RFC 3339 in UTC with milliseconds: "2019-07-07T12:00:00.000Z". Times outside the years 0
// to 9999 are clamped to them.
void AppendRfc3339(std::string& out, std::int64_t time_ms);
std::string FormatRfc3339(std::int64_t time_ms);

// Reads "2021-07-29T10:00:00.9990000Z", "2019-11-24 00:03:13.44+09:00" (no zone: UTC); digits after
// the milliseconds are dropped.
std::optional<std::int64_t> ParseRfc3339(std::string_view text);

// As ParseRfc3339, or a number: seconds, or milliseconds from 1e11 on.
std::optional<std::int64_t> ParseTime(std::string_view text);

}  // namespace codband
