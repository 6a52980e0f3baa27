#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codband/base/status.h"

namespace codband::eval {

// Reads comma-separated values (RFC 4180: fields may be quoted, a quote in quotes is doubled, a
// quoted field may hold line breaks) with a header. Not thread-safe.
class CsvRows {
 public:
  // kNotFound and kIoError name the file; kInvalidArgument if there is no header.
  static Result<CsvRows> Open(const std::string& path);

  const std::string& path() const { return path_; }
  const std::vector<std::string>& header() const { return header_; }
  // kInvalidArgument names the flag, the column that is not there, and those that are.
  Result<std::size_t> Column(std::string_view flag, std::string_view name) const;
  std::optional<std::size_t> Find(std::string_view name) const;

  // Moves on to the next row that is not blank; false at the end.
  bool Next();
  // Of the row: where it starts, counted from 1; its fields; what is wrong with it, if anything.
  std::size_t line() const { return line_; }
  const std::string& field(std::size_t column) const { return fields_[column]; }
  const std::string& problem() const { return problem_; }

 private:
  CsvRows() = default;
  void ReadRow();

  std::string path_;
  std::string text_;
  std::size_t position_ = 0;
  std::size_t next_line_ = 1;
  std::size_t line_ = 0;
  std::vector<std::string> header_;
  std::vector<std::string> fields_;
  std::string problem_;
};

// "a,b" → {"a", "b"}; "" → {}.
std::vector<std::string> SplitNames(std::string_view list);

}  // namespace codband::eval
