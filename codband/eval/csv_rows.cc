#include "codband/eval/csv_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "codband/base/file.h"
#include "codband/eval/log_reader.h"

namespace codband::eval {

Result<CsvRows> CsvRows::Open(const std::string& path) {
  auto text = ReadFile(path);
  if (!text.ok()) return text.status();
  CsvRows rows;
  rows.path_ = path;
  rows.text_ = std::move(text).value();
  if (rows.text_.starts_with("\xEF\xBB\xBF")) rows.position_ = 3;  // a byte order mark
  if (!rows.Next()) {
    return Status::InvalidArgument(fmt::format("{} is empty, expected a header and rows", path));
  }
  if (!rows.problem_.empty()) {
    return Status::InvalidArgument(fmt::format("{}:{}: {}", path, rows.line_, rows.problem_));
  }
  rows.header_ = rows.fields_;
  return rows;
}

Result<std::size_t> CsvRows::Column(std::string_view flag, std::string_view name) const {
  if (const auto found = Find(name)) return *found;
  constexpr std::size_t kShown = 12;
  constexpr int kColumns = 40;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(kShown, header_.size()); ++i) {
    names.push_back(PrintableText(header_[i], kColumns));
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
  while (position_ < text_.size()) {
    line_ = next_line_;
    ReadRow();
    if (fields_.size() == 1 && fields_[0].empty() && problem_.empty()) continue;
    if (problem_.empty() && !header_.empty() && fields_.size() != header_.size()) {
      problem_ =
          fmt::format("{} fields, expected {} as in the header", fields_.size(), header_.size());
    }
    return true;
  }
  return false;
}

void CsvRows::ReadRow() {
  fields_.assign(1, "");
  problem_.clear();
  bool quoted = false;
  for (; position_ < text_.size(); ++position_) {
    const char c = text_[position_];
    next_line_ += c == '\n' ? 1 : 0;
    if (quoted) {
      if (c != '"') {
        fields_.back() += c;
      } else if (position_ + 1 < text_.size() && text_[position_ + 1] == '"') {
        fields_.back() += '"';
        ++position_;
      } else {
        quoted = false;
      }
    } else if (c == '"' && fields_.back().empty()) {
      quoted = true;
    } else if (c == ',') {
      fields_.emplace_back();
    } else if (c == '\n') {
      ++position_;
      break;
    } else if (c != '\r' || (position_ + 1 < text_.size() && text_[position_ + 1] != '\n')) {
      fields_.back() += c;
    }
  }
  if (quoted) problem_ = "a quoted field has no end, expected '\"'";
}

std::vector<std::string> SplitNames(std::string_view list) {
  std::vector<std::string> names;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    names.emplace_back(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return names;
}

}  // namespace codband::eval
