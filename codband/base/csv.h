#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codband/base/lines.h"
#include "codband/base/status.h"

namespace codband {

// Comma-separated values (RFC 4180): a field may be quoted, a quote in quotes is doubled, and a
// quoted field may hold commas and line breaks.

// The field as it is written to a file: quoted if necessary.
std::string CsvField(std::string_view text);

// What becomes of text after a closing quote, and of a quote inside a field that is not quoted.
enum class CsvQuotes {
  kStrict,   // a problem of the record
  kLenient,  // part of the field, as most programs read it
};

// The fields of one record, which may extend over several lines. Not thread-safe.
class CsvRecord {
 public:
  explicit CsvRecord(CsvQuotes quotes) : quotes_(quotes) {}

  // Starts a record with its first line, without the line break.
  void Begin(std::string_view line);
  // Whether the record ends inside quotes so far: the next line belongs to it.
  bool open() const { return open_; }
  // Adds the next line, and the line break before it. Precondition: open().
  void Continue(std::string_view line_break, std::string_view line);

  // What is wrong with the record; empty if nothing is. An open record has a problem.
  std::string_view problem() const { return problem_; }
  // Valid until the next call, and as long as the first line. Precondition: problem() is empty.
  const std::vector<std::string_view>& fields() const { return fields_; }

 private:
  void Parse(std::string_view line);
  std::size_t field_begin() const { return ends_.empty() ? 0 : ends_.back(); }

  CsvQuotes quotes_;
  bool open_ = false;
  std::string_view problem_;
  std::string text_;               // of all fields, without their quotes
  std::vector<std::size_t> ends_;  // of the fields, in text_
  std::vector<std::string_view> fields_;
};

// A CSV file with a header; quotes are read leniently. Not thread-safe.
class CsvRows {
 public:
  // kNotFound and kIoError name the file; kInvalidArgument if there is no header.
  static Result<CsvRows> Open(const std::string& path);

  const std::string& path() const { return path_; }
  const std::vector<std::string>& header() const { return header_; }
  // kInvalidArgument names the flag, the column that is missing, and those that exist.
  Result<std::size_t> Column(std::string_view flag, std::string_view name) const;
  std::optional<std::size_t> Find(std::string_view name) const;

  // Moves on to the next row that is not blank; false at the end.
  bool Next();
  // Where the row starts, from 1.
  std::size_t line() const { return line_; }
  // What is wrong with the row; empty if nothing is.
  const std::string& problem() const { return problem_; }
  // Valid until Next is called. Precondition: problem() is empty.
  std::string_view field(std::size_t column) const { return record_.fields()[column]; }

 private:
  CsvRows(std::string path, std::string text);

  std::string path_;
  std::unique_ptr<const std::string> text_;  // stays where it is when the object moves
  TextLines lines_;
  CsvRecord record_{CsvQuotes::kLenient};
  std::size_t line_ = 0;
  std::vector<std::string> header_;
  std::string problem_;
};

}  // namespace codband
