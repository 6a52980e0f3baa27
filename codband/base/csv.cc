#include "codband/base/csv.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "codband/base/file.h"
#include "codband/base/text.h"

namespace codband {
namespace {

std::string_view WithoutByteOrderMark(std::string_view text) {
  return text.starts_with(kByteOrderMark) ? text.substr(kByteOrderMark.size()) : text;
}

}  // namespace

std::string CsvField(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return std::string(text);
  std::string field = "\"";
  for (const char c : text) {
    if (c == '"') field += '"';
    field += c;
  }
  return field + '"';
}

void CsvRecord::Begin(std::string_view line) {
  open_ = false;
  problem_ = {};
  if (line.find('"') == line.npos) {
    SplitText(line, ",", fields_);
    return;
  }
  text_.clear();
  ends_.clear();
  Parse(line);
}

void CsvRecord::Continue(std::string_view line_break, std::string_view line) {
  text_ += line_break;
  Parse(line);
}

void CsvRecord::Parse(std::string_view line) {
  problem_ = {};
  fields_.clear();
  bool closed = false;  // the current field was quoted, and its closing quote has been read
  std::size_t i = 0;
  while (open_ || i < line.size()) {
    if (open_) {
      const std::size_t quote = line.find('"', i);
      text_ += line.substr(i, quote - i);
      if (quote == line.npos) {
        problem_ = "a quoted field is never closed, expected '\"'";
        return;
      }
      i = quote + 1;
      const bool doubled = i < line.size() && line[i] == '"';
      if (doubled) text_ += line[i++];
      open_ = doubled;
      closed = !doubled;
    } else if (line[i] == ',') {
      ends_.push_back(text_.size());
      closed = false;
      ++i;
    } else if (line[i] == '"' && !closed && text_.size() == field_begin()) {
      open_ = true;
      ++i;
    } else if (quotes_ == CsvQuotes::kStrict && closed) {
      problem_ = "text after a closing quote";
      return;
    } else if (quotes_ == CsvQuotes::kStrict && line[i] == '"') {
      problem_ = "a quote within a field that does not begin with one";
      return;
    } else {
      text_ += line[i++];
    }
  }
  ends_.push_back(text_.size());
  std::size_t begin = 0;
  for (const std::size_t end : ends_) {
    fields_.push_back(std::string_view(text_).substr(begin, end - begin));
    begin = end;
  }
}

CsvRows::CsvRows(std::string path, std::string text)
    : path_(std::move(path)),
      text_(std::make_unique<const std::string>(std::move(text))),
      lines_(WithoutByteOrderMark(*text_)) {}

Result<CsvRows> CsvRows::Open(const std::string& path) {
  auto text = ReadFile(path);
  if (!text.ok()) return text.status();
  CsvRows rows(path, std::move(text).value());
  if (!rows.Next()) {
    return Status::InvalidArgument(fmt::format("{} is empty, expected a header and rows", path));
  }
  if (!rows.problem_.empty()) {
    return Status::InvalidArgument(fmt::format("{}:{}: {}", path, rows.line_, rows.problem_));
  }
  rows.header_.assign(rows.record_.fields().begin(), rows.record_.fields().end());
  return rows;
}

Result<std::size_t> CsvRows::Column(std::string_view flag, std::string_view name) const {
  if (const auto found = Find(name)) return *found;
  constexpr std::size_t kShown = 12;
  constexpr int kColumns = 40;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(kShown, header_.size()); ++i) {
    names.push_back(Truncate(OneLine(header_[i]), kColumns));
  }
  return Status::InvalidArgument(fmt::format("{} = '{}', expected a column of {}: {}{}", flag, name,
                                             path_, fmt::join(names, ", "),
                                             header_.size() > kShown ? ", …" : ""));
}

std::optional<std::size_t> CsvRows::Find(std::string_view name) const {
  const auto found = std::ranges::find(header_, name);
  if (name.empty() || found == header_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - header_.begin());
}

bool CsvRows::Next() {
  while (lines_.Next()) {
    line_ = lines_.number();
    record_.Begin(lines_.line());
    while (record_.open()) {
      const std::string_view line_break = lines_.line_break();
      if (!lines_.Next()) break;
      record_.Continue(line_break, lines_.line());
    }
    problem_ = record_.problem();
    const auto& fields = record_.fields();
    if (!problem_.empty()) return true;
    if (fields.size() == 1 && fields[0].empty()) continue;
    if (!header_.empty() && fields.size() != header_.size()) {
      problem_ =
          fmt::format("{} fields, expected {} as in the header", fields.size(), header_.size());
    }
    return true;
  }
  return false;
}

}  // namespace codband
