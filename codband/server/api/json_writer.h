#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace codband::server {

// JSON values, appended to a string that the caller reuses. Pure functions, safe from any thread.

// Whether a character stands for itself in a JSON string, as most do.
inline bool IsPlainInJson(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x80 && c != '"' && c != '\\';
}

// Whether all of them do.
bool IsPlainInJson(std::string_view text);

// Quoted and escaped. Valid JSON whatever the text: invalid UTF-8 becomes U+FFFD.
void AppendJsonString(std::string& out, std::string_view text);

// The shortest digits that read back as the same number; null if it is not finite.
void AppendJsonNumber(std::string& out, double value);
void AppendJsonNumber(std::string& out, std::uint64_t value);

}  // namespace codband::server
