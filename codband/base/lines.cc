#include "codband/base/lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "codband/base/excerpt.h"
#include "codband/base/text.h"

namespace codband {

bool TextLines::Next() {
  if (rest_.empty()) return false;
  const std::size_t feed = std::min(rest_.find('\n'), rest_.size());
  const std::size_t next = std::min(feed + 1, rest_.size());
  line_ = rest_.substr(0, feed);
  if (line_.ends_with('\r')) line_.remove_suffix(1);
  line_break_ = rest_.substr(line_.size(), next - line_.size());
  rest_.remove_prefix(next);
  ++number_;
  return true;
}

TsvLines::TsvLines(std::string path, std::string_view text)
    : path_(std::move(path)), lines_(text) {}

bool TsvLines::Next() {
  if (!lines_.Next()) return false;
  SplitText(lines_.line(), "\t", fields_);
  return true;
}

Status TsvLines::Wrong(std::string_view problem) const {
  return Status::InvalidArgument(fmt::format("{}, line {}: {}", path_, number(), problem));
}

Status TsvLines::Wrong(std::string_view what, std::string_view text,
                       std::string_view expected) const {
  return Wrong(fmt::format("{} = '{}', expected {}", what, Excerpt(text), expected));
}

Status TsvLines::Empty(std::string_view expected) const {
  return Status::InvalidArgument(fmt::format("{} is empty, expected {}", path_, expected));
}

}  // namespace codband
