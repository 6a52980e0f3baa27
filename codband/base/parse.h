#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace codband {

// Parses the whole text as a number. None for anything else, including surrounding blanks, and for
// numbers out of the range of T. Real numbers may be "inf" and "nan".
template <typename T>
std::optional<T> ParseNumber(std::string_view text) {
  T value{};
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc{} || end != last) return std::nullopt;
  return value;
}

}  // namespace codband
