#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "codband/base/status.h"

namespace codband {

// Of UTF-8, at the start of a file; no part of its text.
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

inline constexpr std::string_view kWholeNumber = "a whole number from 0 to 2^64 - 1";

// The lines of a text in memory. A line ends in "\n", "\r\n" or at the end of the text. Borrows the
// text. Not thread-safe.
class TextLines {
 public:
  explicit TextLines(std::string_view text) : rest_(text) {}

  // Moves on to the next line; false at the end.
  bool Next();

  std::string_view line() const { return line_; }              // without its line break
  std::string_view line_break() const { return line_break_; }  // "\n", "\r\n" or, at the end, ""
  std::size_t number() const { return number_; }               // of the line, from 1

 private:
  std::string_view rest_;
  std::string_view line_;
  std::string_view line_break_;
  std::size_t number_ = 0;
};

// The lines of a file of tab-separated values. Borrows the text. Not thread-safe.
class TsvLines {
 public:
  // `path` is for messages.
  TsvLines(std::string path, std::string_view text);

  // Moves on to the next line; false at the end.
  bool Next();

  const std::vector<std::string_view>& fields() const { return fields_; }
  std::size_t number() const { return lines_.number(); }

  // kInvalidArgument with file and line.
  Status Wrong(std::string_view problem) const;
  // "what = 'text', expected …".
  Status Wrong(std::string_view what, std::string_view text, std::string_view expected) const;
  // For a file without lines.
  Status Empty(std::string_view expected) const;

 private:
  std::string path_;
  TextLines lines_;
  std::vector<std::string_view> fields_;
};

}  // namespace codband
