#include "codband/base/text.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace codband {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

int CodePointWidth(char32_t c) {
  struct Range {
    char32_t first, last;
  };
  constexpr std::array<Range, 5> kZero = {
      {{0x0300, 0x036F}, {0x200B, 0x200F}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFEFF, 0xFEFF}}};
  constexpr std::array<Range, 8> kWide = {{{0x1100, 0x115F},
                                           {0x2E80, 0xA4CF},
                                           {0xAC00, 0xD7A3},
                                           {0xF900, 0xFAFF},
                                           {0xFE30, 0xFE6F},
                                           {0xFF00, 0xFF60},
                                           {0x1F300, 0x1FAFF},
                                           {0x20000, 0x3FFFD}}};
  for (const Range& range : kZero) {
    if (c >= range.first && c <= range.last) return 0;
  }
  for (const Range& range : kWide) {
    if (c >= range.first && c <= range.last) return 2;
  }
  return 1;
}

bool IsControl(char32_t c) { return c < 0x20 || (c >= 0x7F && c < 0xA0); }

}  // namespace

char32_t DecodeUtf8(std::string_view text, std::size_t* position) {
  const auto lead = static_cast<unsigned char>(text[*position]);
  ++*position;
  if (lead < 0x80) return lead;
  int extra = 0;
  if (lead >= 0xC2 && lead <= 0xDF) extra = 1;
  if (lead >= 0xE0 && lead <= 0xEF) extra = 2;
  if (lead >= 0xF0 && lead <= 0xF4) extra = 3;
  if (extra == 0) return kReplacement;
  char32_t code = lead & (0x3Fu >> extra);
  std::size_t next = *position;
  for (int i = 0; i < extra; ++i, ++next) {
    if (next >= text.size()) return kReplacement;
    const auto byte = static_cast<unsigned char>(text[next]);
    if ((byte & 0xC0u) != 0x80u) return kReplacement;
    code = (code << 6) | (byte & 0x3Fu);
  }
  // Overlong forms, surrogates and values past the last plane are not characters.
  if ((extra == 2 && code < 0x800) || (extra == 3 && code < 0x10000) || code > 0x10FFFF ||
      (code >= 0xD800 && code <= 0xDFFF)) {
    return kReplacement;
  }
  *position = next;
  return code;
}

int DisplayWidth(std::string_view text) {
  int width = 0;
  for (std::size_t i = 0; i < text.size();) width += CodePointWidth(DecodeUtf8(text, &i));
  return width;
}

std::string Truncate(std::string_view text, int columns) {
  if (DisplayWidth(text) <= columns) return std::string(text);
  if (columns <= 0) return "";
  int width = 0;
  std::size_t end = 0;
  for (std::size_t i = 0; i < text.size();) {
    width += CodePointWidth(DecodeUtf8(text, &i));
    if (width > columns - 1) break;
    end = i;
  }
  return std::string(text.substr(0, end)) + "…";
}

std::string OneLine(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t begin = i;
    if (IsControl(DecodeUtf8(text, &i))) {
      out += ' ';
    } else {
      out += text.substr(begin, i - begin);
    }
  }
  return out;
}

std::string EscapeXml(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t begin = i;
    const char32_t c = DecodeUtf8(text, &i);
    const bool forbidden =
        (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0xFFFE || c == 0xFFFF;
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (c == '\'') {
      out += "&#39;";
    } else if (forbidden || c == kReplacement) {
      out += "\xEF\xBF\xBD";
    } else {
      out += text.substr(begin, i - begin);
    }
  }
  return out;
}

std::string GroupThousands(std::string_view number) {
  const std::size_t first = number.find_first_of("0123456789");
  if (first == std::string_view::npos) return std::string(number);
  std::size_t last = number.find_first_not_of("0123456789", first);
  if (last == std::string_view::npos) last = number.size();
  std::string out(number.substr(0, first));
  for (std::size_t i = first; i < last; ++i) {
    if (i > first && (last - i) % 3 == 0) out += ',';
    out += number[i];
  }
  return out.append(number.substr(last));
}

std::string FormatNumber(double value) {
  const double size = std::abs(value);
  if (size >= 1000 && size < 1e15) return GroupThousands(fmt::format("{:.0f}", value));
  return fmt::format("{:.4g}", value == 0 ? 0.0 : value);
}

}  // namespace codband
