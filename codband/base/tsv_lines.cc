#include "codband/base/tsv_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "codband/base/excerpt.h"

namespace codband {

void SplitText(std::string_view text, char separator, std::vector<std::string_view>& parts) {
  parts.clear();
  std::size_t end = text.find(separator);
  while (end != text.npos) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
    end = text.find(separator);
  }
  parts.push_back(text);
}

TsvLines::TsvLines(std::string path, std::string_view text) : path_(std::move(path)), rest_(text) {}

bool TsvLines::Next() {
  if (rest_.empty()) return false;
  const std::size_t end = std::min(rest_.find('\n'), rest_.size());
  std::string_view line = rest_.substr(0, end);
  rest_.remove_prefix(std::min(end + 1, rest_.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  SplitText(line, '\t', fields_);
  ++number_;
  return true;
}

Status TsvLines::Wrong(std::string_view problem) const {
  return Status::InvalidArgument(fmt::format("{}, line {}: {}", path_, number_, problem));
}

Status TsvLines::Wrong(std::string_view what, std::string_view text,
                       std::string_view expected) const {
  return Wrong(fmt::format("{} = '{}', expected {}", what, Excerpt(text), expected));
}

Status TsvLines::Empty(std::string_view expected) const {
  return Status::InvalidArgument(fmt::format("{} is empty, expected {}", path_, expected));
}

}  // namespace codband
