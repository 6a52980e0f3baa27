#include "codband/server/api/json_writer.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "codband/base/text.h"

namespace codband::server {
namespace {

void AppendEscaped(std::string& out, char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      fmt::format_to(std::back_inserter(out), FMT_COMPILE("\\u{:04x}"),
                     static_cast<unsigned>(static_cast<unsigned char>(c)));
  }
}

}  // namespace

// Eight characters at a time: a byte of `odd` has its highest bit set if its character is beyond
// ASCII or, the subtractions borrowing from none but odd ones, below a space, '"' or '\\'.
bool IsPlainInJson(std::string_view text) {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  for (; text.size() >= sizeof(std::uint64_t); text.remove_prefix(sizeof(std::uint64_t))) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data(), sizeof(word));
    const std::uint64_t odd = word | (word - kOnes * ' ') | ((word ^ (kOnes * '"')) - kOnes) |
                              ((word ^ (kOnes * '\\')) - kOnes);
    if ((odd & (kOnes * 0x80)) != 0) return false;
  }
  return std::ranges::all_of(text, [](char c) { return IsPlainInJson(c); });
}

void AppendJsonString(std::string& out, std::string_view text) {
  out += '"';
  std::size_t i = 0;
  while (i < text.size()) {
    std::size_t end = i;
    while (end < text.size() && IsPlainInJson(text[end])) ++end;
    out.append(text.data() + i, end - i);
    i = end;
    if (i == text.size()) break;
    if (static_cast<unsigned char>(text[i]) < 0x80) {
      AppendEscaped(out, text[i]);
      ++i;
      continue;
    }
    const std::size_t begin = i;
    const bool replaced = DecodeUtf8(text, &i) == kReplacementPoint;
    out += replaced ? kReplacementCharacter : text.substr(begin, i - begin);
  }
  out += '"';
}

void AppendJsonNumber(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  char digits[32];
  const char* const end = fmt::format_to(digits, FMT_COMPILE("{}"), value);
  out.append(digits, static_cast<std::size_t>(end - digits));
}

void AppendJsonNumber(std::string& out, std::uint64_t value) {
  const fmt::format_int digits(value);
  out.append(digits.data(), digits.size());
}

}  // namespace codband::server
