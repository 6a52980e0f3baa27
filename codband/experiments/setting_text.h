#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "codband/base/status.h"

namespace codband::experiments {

// Settings are typed as text and parsed here, so that every message names the flag, the value and
// what is allowed: "--users = 'many', expected a whole number from 1 to 10000000".
Result<std::size_t> ParseWhole(std::string_view flag, std::string_view text, std::size_t min,
                               std::size_t max);
Result<double> ParseReal(std::string_view flag, std::string_view text);
Result<double> ParseReal(std::string_view flag, std::string_view text, double min, double max);

// The place of the word in the list: "--order = 'size', expected time or log".
Result<std::size_t> ParseWord(std::string_view flag, std::string_view text,
                              std::span<const std::string_view> words);

// Stores what was parsed, or passes on what was wrong.
template <typename T, typename Target>
Status Assign(const Result<T>& parsed, Target& target) {
  if (!parsed.ok()) return parsed.status();
  target = static_cast<Target>(parsed.value());
  return {};
}

}  // namespace codband::experiments
