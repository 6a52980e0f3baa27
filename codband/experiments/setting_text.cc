#include "codband/experiments/setting_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "codband/base/parse.h"

namespace codband::experiments {

Result<std::size_t> ParseWhole(std::string_view flag, std::string_view text, std::size_t min,
                               std::size_t max) {
  const auto value = ParseNumber<std::size_t>(text);
  if (!value || *value < min || *value > max) {
    return Status::InvalidArgument(
        fmt::format("{} = '{}', expected a whole number from {} to {}", flag, text, min, max));
  }
  return *value;
}

Result<double> ParseReal(std::string_view flag, std::string_view text) {
  const auto value = ParseNumber<double>(text);
  if (!value) {
    return Status::InvalidArgument(fmt::format("{} = '{}', expected a number", flag, text));
  }
  return *value;
}

Result<double> ParseReal(std::string_view flag, std::string_view text, double min, double max) {
  const auto value = ParseNumber<double>(text);
  if (!value || !(*value >= min && *value <= max)) {
    return Status::InvalidArgument(
        fmt::format("{} = '{}', expected a number from {} to {}", flag, text, min, max));
  }
  return *value;
}

Result<std::size_t> ParseWord(std::string_view flag, std::string_view text,
                              std::span<const std::string_view> words) {
  const auto found = std::ranges::find(words, text);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  std::string expected = "one of ";
  if (words.size() <= 3) {
    const auto first = words.first(words.size() - 1);
    expected = fmt::format("{} or {}", fmt::join(first, ", "), words.back());
  } else {
    expected += fmt::format("{}", fmt::join(words, ", "));
  }
  return Status::InvalidArgument(fmt::format("{} = '{}', expected {}", flag, text, expected));
}

}  // namespace codband::experiments
