#include "codband/server/http/authority.h"

#include <algorithm>
#include <cstdint>

#include "codband/base/parse.h"

namespace codband::server {
namespace {

bool IsAsciiDigit(char c) { return c >= '0' && c <= '9'; }
char LowerAscii(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool IsNameCharacter(char c) {
  return IsAsciiDigit(c) || (LowerAscii(c) >= 'a' && LowerAscii(c) <= 'z') || c == '.' ||
         c == '-' || c == '_';
}

bool IsIpv6Character(char c) {
  return IsAsciiDigit(c) || (LowerAscii(c) >= 'a' && LowerAscii(c) <= 'f') || c == ':' || c == '.';
}

}  // namespace

std::optional<Authority> ParseAuthority(std::string_view text) {
  Authority parts;
  std::size_t end = 0;
  if (text.starts_with('[')) {
    end = text.find(']');
    if (end == text.npos || end < 3 ||
        !std::all_of(text.begin() + 1, text.begin() + static_cast<std::ptrdiff_t>(end),
                     IsIpv6Character)) {
      return std::nullopt;
    }
    ++end;
  } else {
    while (end < text.size() && IsNameCharacter(text[end])) ++end;
    if (end == 0) return std::nullopt;
  }
  parts.host = text.substr(0, end);
  if (end == text.size()) return parts;
  if (text[end] != ':') return std::nullopt;
  parts.port = text.substr(end + 1);
  if (!std::all_of(parts.port.begin(), parts.port.end(), IsAsciiDigit)) return std::nullopt;
  if (!parts.port.empty() && !ParseNumber<std::uint16_t>(parts.port)) return std::nullopt;
  return parts;
}

bool IsAddressLiteral(std::string_view host) {
  if (host.starts_with('[')) return true;
  // Every browser takes a name whose last label is a number for an IPv4 address.
  const std::string_view last = host.substr(host.rfind('.') + 1);
  return !last.empty() &&
         std::all_of(host.begin(), host.end(), [](char c) { return IsAsciiDigit(c) || c == '.'; });
}

bool EqualNoCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           return LowerAscii(x) == LowerAscii(y);
         });
}

std::optional<Origin> ParseOrigin(std::string_view text) {
  const std::size_t colon = text.find("://");
  if (colon == text.npos || colon == 0) return std::nullopt;
  const std::optional<Authority> authority = ParseAuthority(text.substr(colon + 3));
  if (!authority) return std::nullopt;
  return Origin{.scheme = text.substr(0, colon), .authority = *authority};
}

}  // namespace codband::server
