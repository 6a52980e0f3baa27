#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codband/base/parse.h"
#include "codband/base/status.h"
#include "codband/data/hooks.h"

namespace codband::data {

// Rows of one file.
struct FileLog {
  std::string name;
  std::size_t rows = 0;       // used
  std::size_t malformed = 0;  // skipped
};

// Counts the rows that were read and those that were skipped as malformed, by file. Not
// thread-safe.
class InputLog {
 public:
  static constexpr std::size_t kExamples = 5;

  // In strict mode the first malformed line is an error.
  explicit InputLog(bool strict = false) : strict_(strict) {}

  // Starts counting for this file; a file that is read twice is counted once.
  void BeginFile(const std::filesystem::path& path);
  void AddRow() { ++files_[current_].rows; }
  // kInvalidArgument in strict mode.
  Status AddMalformed(std::size_t line, std::string_view why);
  // kInvalidArgument unless more rows of the current file were used than skipped. A file without
  // rows passes if it may be empty.
  Status EndFile(std::string_view expected, bool may_be_empty = false) const;

  const std::vector<FileLog>& files() const { return files_; }
  // The first of them: "user_artists.dat:17: 2 fields, expected 3".
  const std::vector<std::string>& examples() const { return examples_; }
  std::size_t malformed() const;

 private:
  bool strict_;
  std::string path_;
  std::size_t current_ = 0;
  std::vector<FileLog> files_;
  std::vector<std::string> examples_;
};

enum class Separator {
  kTab,
  kComma,        // CSV (RFC 4180)
  kDoubleColon,  // "::" of MovieLens; extra separators belong to text_column
};

struct TableFormat {
  Separator separator = Separator::kTab;
  std::vector<std::string> columns = {};  // their names
  bool header = true;                     // the first line holds the names
  std::size_t text_column = 0;            // free text, which may hold the separator "::"
};

// One row; its fields are valid while the row is handled.
class TableRow {
 public:
  TableRow(const TableFormat& format, const std::vector<std::string_view>& fields)
      : format_(format), fields_(fields) {}

  std::string_view operator[](std::size_t column) const { return fields_[column]; }

  // The field as a number. If it is not one, the row is rejected and the result is 0.
  template <typename T>
  T Number(std::size_t column) {
    const auto value = ParseNumber<T>(fields_[column]);
    if (!value) RejectField(column, "a number in its range");
    return value.value_or(T{});
  }

  // Marks the row as malformed. The first reason is kept.
  void Reject(std::string why);
  void RejectField(std::size_t column, std::string_view expected);

  bool ok() const { return !why_; }
  const std::string& why() const { return *why_; }

 private:
  const TableFormat& format_;
  const std::vector<std::string_view>& fields_;
  std::optional<std::string> why_;
};

using RowHandler = std::function<void(TableRow& row)>;

// Passes every row to `handle`, which may reject it. Rejected rows, and lines with the wrong number
// of fields, are skipped and counted in the log; empty lines are ignored. Memory does not grow with
// the file. kInvalidArgument with the path if the header is not the expected one, if a row is
// malformed and the log is strict, or unless there are more good rows than malformed ones (none of
// either is allowed with `may_be_empty`).
Status ReadTable(const std::filesystem::path& path, const TableFormat& format, InputLog& log,
                 const WorkPart& part, const RowHandler& handle, bool may_be_empty = false);

}  // namespace codband::data
