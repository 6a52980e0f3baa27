#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "codband/base/status.h"

namespace codband {

inline constexpr std::string_view kWholeNumber = "a whole number from 0 to 2^64 - 1";

// Replaces `parts` by what stands between separators: at least one part, be it empty.
void SplitText(std::string_view text, char separator, std::vector<std::string_view>& parts);

// The lines of a file, split at tabs; lines may end in "\r\n". Borrows the text. Not thread-safe.
class TsvLines {
 public:
  TsvLines(std::string path, std::string_view text);

  // Moves on to the next line; false at the end.
  bool Next();

  const std::vector<std::string_view>& fields() const { return fields_; }
  std::size_t number() const { return number_; }  // of the line, from 1

  // kInvalidArgument with file and line.
  Status Wrong(std::string_view problem) const;
  // For a text that is not what was expected.
  Status Wrong(std::string_view what, std::string_view text, std::string_view expected) const;
  // For a file without lines.
  Status Empty(std::string_view expected) const;

 private:
  std::string path_;
  std::string_view rest_;
  std::size_t number_ = 0;
  std::vector<std::string_view> fields_;
};

}  // namespace codband
