#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace codband::report {

enum class Align { kLeft, kRight };

struct TableColumn {
  std::string title = {};
  Align align = Align::kLeft;  // kRight for numbers
};

// A table of text that is printed in four formats. Cells hold plain text; every format escapes what
// it must. Not thread-safe; const members may be called from several threads.
class ReportTable {
 public:
  // Throws std::invalid_argument if there is no column.
  explicit ReportTable(std::vector<TableColumn> columns);

  // Throws std::invalid_argument unless there is one cell per column.
  void AddRow(std::vector<std::string> cells);

  // Emphasises a cell, such as the best of its column: bold in Markdown, <strong> in HTML, no
  // effect in text and CSV. Throws std::invalid_argument if the cell does not exist.
  void Emphasise(std::size_t row, std::size_t column);

  std::size_t row_count() const { return rows_.size(); }

  // Aligned for a terminal: titles, a rule, rows; two spaces between columns, no trailing ones.
  std::string ToText() const;
  // A GitHub table, padded so that its source is readable too.
  std::string ToMarkdown() const;
  // RFC 4180, but lines end in "\n" alone, as Unix tools expect.
  std::string ToCsv() const;
  // A <table> whose alignment needs no style sheet.
  std::string ToHtml() const;

 private:
  bool emphasised(std::size_t row, std::size_t column) const {
    return emphasised_.count({row, column}) > 0;
  }

  std::vector<TableColumn> columns_;
  std::vector<std::vector<std::string>> rows_;
  std::set<std::pair<std::size_t, std::size_t>> emphasised_;
};

}  // namespace codband::report
