#include "codband/base/text.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace codband {
namespace {

int CodePointWidth(char32_t c) { return utf8proc_charwidth(static_cast<utf8proc_int32_t>(c)); }

bool IsControl(char32_t c) { return c < 0x20 || (c >= 0x7F && c < 0xA0); }

}  // namespace

char32_t DecodeUtf8(std::string_view text, std::size_t* position) {
  const std::string_view rest = text.substr(*position);
  utf8proc_int32_t point = 0;
  const utf8proc_ssize_t length =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(rest.data()),
                       static_cast<utf8proc_ssize_t>(rest.size()), &point);
  *position += length > 0 ? static_cast<std::size_t>(length) : 1;
  return length > 0 ? static_cast<char32_t>(point) : kReplacementPoint;
}

bool IsUtf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t begin = i;
    if (DecodeUtf8(text, &i) == kReplacementPoint && i - begin != kReplacementCharacter.size()) {
      return false;
    }
  }
  return true;
}

bool NestsDeeper(std::string_view json, std::size_t most) {
  std::size_t depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '"') quoted = !quoted;
    if (quoted && c == '\\') ++i;
    if (quoted) continue;
    if ((c == '{' || c == '[') && ++depth > most) return true;
    if ((c == '}' || c == ']') && depth > 0) --depth;
  }
  return false;
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
    const char32_t c = DecodeUtf8(text, &i);
    if (IsControl(c)) {
      out += ' ';
    } else if (c == kReplacementPoint) {
      out += kReplacementCharacter;
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
        (IsControl(c) && c != '\t' && c != '\n' && c != '\r') || c == 0xFFFE || c == 0xFFFF;
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
    } else if (forbidden || c == kReplacementPoint) {
      out += kReplacementCharacter;
    } else {
      out += text.substr(begin, i - begin);
    }
  }
  return out;
}

void SplitText(std::string_view text, std::string_view separator,
               std::vector<std::string_view>& parts) {
  parts.clear();
  std::size_t end = text.find(separator);
  while (end != text.npos) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + separator.size());
    end = text.find(separator);
  }
  parts.push_back(text);
}

std::vector<std::string_view> SplitList(std::string_view list) {
  std::vector<std::string_view> items;
  SplitText(list, ",", items);
  if (items.back().empty()) items.pop_back();
  return items;
}

std::size_t EditDistance(std::string_view a, std::string_view b) {
  // Row i holds the distances of a's first i letters from every prefix of b.
  std::vector<std::size_t> before_last;
  std::vector<std::size_t> last;
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last = std::exchange(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
  }
  return row.back();
}

std::optional<std::string> NearestName(std::string_view name, std::span<const std::string> known) {
  const auto longer = std::ranges::find_if(
      known, [&](const std::string& other) { return !name.empty() && other.starts_with(name); });
  if (longer != known.end()) return *longer;
  const auto distance = [&](const std::string& other) { return EditDistance(name, other); };
  const auto nearest = std::ranges::min_element(known, {}, distance);
  if (nearest == known.end() || distance(*nearest) > std::max<std::size_t>(2, name.size() / 3)) {
    return std::nullopt;
  }
  return *nearest;
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

std::string GroupThousands(std::uint64_t number) {
  return GroupThousands(std::string_view(fmt::format_int(number).c_str()));
}

std::string FormatNumber(double value) {
  const double size = std::abs(value);
  if (size >= 1000 && size < 1e15) return GroupThousands(fmt::format("{:.0f}", value));
  return fmt::format("{:.4g}", value == 0 ? 0.0 : value);
}

}  // namespace codband
