#include "codband/report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>

#include "codband/base/csv.h"
#include "codband/base/text.h"

namespace codband::report {
namespace {

using Grid = std::vector<std::vector<std::string>>;

std::string Pad(const std::string& cell, int width, Align align) {
  const std::string space(static_cast<std::size_t>(std::max(0, width - DisplayWidth(cell))), ' ');
  return align == Align::kRight ? space + cell : cell + space;
}

std::vector<int> ColumnWidths(const Grid& grid, int at_least) {
  std::vector<int> widths(grid.front().size(), at_least);
  for (const auto& row : grid) {
    for (std::size_t c = 0; c < row.size(); ++c)
      widths[c] = std::max(widths[c], DisplayWidth(row[c]));
  }
  return widths;
}

std::string EscapeMarkdown(std::string_view text) {
  std::string out;
  for (const char c : OneLine(text)) {
    if (std::string_view("\\`*_[]|~").find(c) != std::string_view::npos) out += '\\';
    if (c == '<') {
      out += "&lt;";
    } else if (c == '&') {
      out += "&amp;";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

ReportTable::ReportTable(std::vector<TableColumn> columns) : columns_(std::move(columns)) {
  if (columns_.empty()) throw std::invalid_argument("[ReportTable] needs at least one column");
}

void ReportTable::AddRow(std::vector<std::string> cells) {
  if (cells.size() != columns_.size()) {
    throw std::invalid_argument(fmt::format("[ReportTable::AddRow] row has {} cells, expected {}",
                                            cells.size(), columns_.size()));
  }
  rows_.push_back(std::move(cells));
}

void ReportTable::Emphasise(std::size_t row, std::size_t column) {
  if (row >= rows_.size() || column >= columns_.size()) {
    throw std::invalid_argument(
        fmt::format("[ReportTable::Emphasise] no cell ({}, {}) in {} rows of {} columns", row,
                    column, rows_.size(), columns_.size()));
  }
  emphasised_.insert({row, column});
}

std::string ReportTable::ToText() const {
  Grid grid(1);
  for (const TableColumn& column : columns_) grid.front().push_back(OneLine(column.title));
  for (const auto& row : rows_) {
    grid.emplace_back();
    for (const std::string& cell : row) grid.back().push_back(OneLine(cell));
  }
  const std::vector<int> widths = ColumnWidths(grid, 0);
  std::string out;
  for (std::size_t r = 0; r < grid.size(); ++r) {
    std::string line;
    std::string rule;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const std::string gap = c == 0 ? "" : "  ";
      line += gap + Pad(grid[r][c], widths[c], columns_[c].align);
      rule += gap + std::string(static_cast<std::size_t>(widths[c]), '-');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
    if (r == 0) out += rule + '\n';
  }
  return out;
}

std::string ReportTable::ToMarkdown() const {
  Grid grid(1);
  for (const TableColumn& column : columns_) grid.front().push_back(EscapeMarkdown(column.title));
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    grid.emplace_back();
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const std::string cell = EscapeMarkdown(rows_[r][c]);
      grid.back().push_back(emphasised(r, c) && !cell.empty() ? "**" + cell + "**" : cell);
    }
  }
  const std::vector<int> widths = ColumnWidths(grid, 3);
  std::string out;
  for (std::size_t r = 0; r < grid.size(); ++r) {
    std::string rule;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const bool right = columns_[c].align == Align::kRight;
      out += "| " + Pad(grid[r][c], widths[c], columns_[c].align) + ' ';
      rule += "| " + std::string(static_cast<std::size_t>(widths[c] - (right ? 1 : 0)), '-') +
              (right ? ": " : " ");
    }
    out += "|\n";
    if (r == 0) out += rule + "|\n";
  }
  return out;
}

std::string ReportTable::ToCsv() const {
  std::string out;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    out += (c == 0 ? "" : ",") + CsvField(columns_[c].title);
  }
  out += '\n';
  for (const auto& row : rows_) {
    for (std::size_t c = 0; c < row.size(); ++c) out += (c == 0 ? "" : ",") + CsvField(row[c]);
    out += '\n';
  }
  return out;
}

std::string ReportTable::ToHtml() const {
  const auto style = [this](std::size_t c) {
    return columns_[c].align == Align::kRight ? " style=\"text-align:right\"" : "";
  };
  std::string out = "<table>\n<thead><tr>";
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    out += fmt::format("<th scope=\"col\"{}>{}</th>", style(c), EscapeXml(columns_[c].title));
  }
  out += "</tr></thead>\n<tbody>\n";
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    out += "<tr>";
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const std::string cell = EscapeXml(rows_[r][c]);
      out += fmt::format("<td{}>{}</td>", style(c),
                         emphasised(r, c) ? "<strong>" + cell + "</strong>" : cell);
    }
    out += "</tr>\n";
  }
  return out + "</tbody>\n</table>\n";
}

}  // namespace codband::report
