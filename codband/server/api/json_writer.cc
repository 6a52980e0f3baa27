#include "codband/server/api/json_writer.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <cmath>

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
