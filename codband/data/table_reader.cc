#include "codband/data/table_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "codband/base/csv.h"
#include "codband/base/excerpt.h"
#include "codband/base/text.h"
#include "codband/data/line_reader.h"

namespace codband::data {
namespace {

constexpr std::size_t kRowsBetweenReports = 16384;
// A quoted field with more line breaks than this has lost its closing quote.
constexpr std::size_t kMaxRecordLines = 100;

// Turns the lines of a file into fields.
class RowSource {
 public:
  RowSource(LineReader reader, const TableFormat& format)
      : reader_(std::move(reader)), format_(format) {}

  // Moves on to the next row; false at the end or on a read error.
  bool Next() {
    problem_.clear();
    if (!NextLine()) return false;
    line_number_ = number_;
    switch (format_.separator) {
      case Separator::kTab:
        SplitText(line_, "\t", fields_);
        break;
      case Separator::kComma:
        SplitCsv();
        break;
      case Separator::kDoubleColon:
        SplitText(line_, "::", fields_);
        JoinText();
        break;
    }
    return true;
  }

  const std::vector<std::string_view>& fields() const { return fields_; }
  std::string_view line() const { return line_; }
  const std::string& problem() const { return problem_; }  // of the row as a whole; else empty
  std::size_t line_number() const { return line_number_; }
  const LineReader& reader() const { return reader_; }

 private:
  struct PendingLine {
    std::string text;
    std::size_t number;
  };

  // Into line_ and number_. Lines that an unclosed quote has consumed are read again first.
  bool NextLine() {
    if (!pending_.empty()) {
      pending_line_ = std::move(pending_.front());
      pending_.pop_front();
      line_ = pending_line_.text;
      number_ = pending_line_.number;
      return true;
    }
    if (!reader_.Next()) return false;
    line_ = reader_.line();
    number_ = reader_.number();
    return true;
  }

  // Extra fields are part of the free text.
  void JoinText() {
    if (fields_.size() <= format_.columns.size()) return;
    const std::size_t surplus = fields_.size() - format_.columns.size();
    const auto first = fields_.begin() + static_cast<std::ptrdiff_t>(format_.text_column);
    const auto last = first + static_cast<std::ptrdiff_t>(surplus);
    *first = {first->data(), static_cast<std::size_t>(last->data() + last->size() - first->data())};
    fields_.erase(first + 1, last + 1);
  }

  void SplitCsv() {
    record_.Begin(line_);
    if (record_.open()) ReadOpenRecord();
    problem_ = record_.problem();
    if (problem_.empty()) fields_ = record_.fields();
  }

  // Continues a record that ends inside quotes.
  void ReadOpenRecord() {
    record_text_ = line_;
    std::vector<PendingLine> taken;
    while (record_.open() && taken.size() < kMaxRecordLines &&
           record_text_.size() <= kMaxLineBytes && NextLine()) {
      taken.push_back({std::string(line_), number_});
      record_text_ += '\n';
      record_text_ += line_;
      record_.Continue("\n", line_);
    }
    if (record_.open()) {
      // Only the first line is lost.
      pending_.insert(pending_.begin(), std::make_move_iterator(taken.begin()),
                      std::make_move_iterator(taken.end()));
    }
    line_ = record_text_;
  }

  LineReader reader_;
  const TableFormat& format_;
  std::deque<PendingLine> pending_;
  PendingLine pending_line_{};
  std::string_view line_;
  std::size_t number_ = 0;
  std::size_t line_number_ = 0;  // where the current row begins
  std::vector<std::string_view> fields_;
  std::string problem_;
  CsvRecord record_{CsvQuotes::kStrict};
  std::string record_text_;  // of a record of several lines
};

std::string_view SeparatorText(Separator separator) {
  switch (separator) {
    case Separator::kTab:
      return "<tab>";
    case Separator::kComma:
      return ",";
    case Separator::kDoubleColon:
      return "::";
  }
  return "";
}

Status CheckHeader(const std::filesystem::path& path, const TableFormat& format,
                   RowSource& source) {
  const bool there = source.Next();
  if (!source.reader().status().ok()) return source.reader().status();
  if (there && std::ranges::equal(source.fields(), format.columns)) return {};
  return Status::InvalidArgument(
      fmt::format("{}, line 1: {}, expected the header '{}'", path.string(),
                  there ? fmt::format("'{}'", Excerpt(source.line())) : "the file is empty",
                  fmt::join(format.columns, SeparatorText(format.separator))));
}

}  // namespace

void InputLog::BeginFile(const std::filesystem::path& path) {
  path_ = path.string();
  const std::string name = path.filename().string();
  const auto known = std::ranges::find(files_, name, &FileLog::name);
  current_ = static_cast<std::size_t>(known - files_.begin());
  if (known == files_.end()) {
    files_.push_back({.name = name});
    return;
  }
  known->rows = 0;
  known->malformed = 0;
  std::erase_if(examples_, [&](const std::string& text) { return text.starts_with(name + ":"); });
}

Status InputLog::AddMalformed(std::size_t line, std::string_view why) {
  FileLog& file = files_[current_];
  ++file.malformed;
  if (strict_) return Status::InvalidArgument(fmt::format("{}:{}: {}", path_, line, why));
  if (examples_.size() < kExamples) {
    examples_.push_back(fmt::format("{}:{}: {}", file.name, line, why));
  }
  return {};
}

Status InputLog::EndFile(std::string_view expected, bool may_be_empty) const {
  const FileLog& file = files_[current_];
  if (file.rows > file.malformed) return {};
  if (file.rows + file.malformed == 0) {
    if (may_be_empty) return {};
    return Status::InvalidArgument(fmt::format("{} has no rows, expected {}", path_, expected));
  }
  const auto example = std::ranges::find_if(
      examples_, [&](const std::string& text) { return text.starts_with(file.name + ":"); });
  return Status::InvalidArgument(
      fmt::format("{}: {} of {} lines are malformed, expected {}{}", path_, file.malformed,
                  file.rows + file.malformed, expected,
                  example == examples_.end() ? "" : "; for instance " + *example));
}

std::size_t InputLog::malformed() const {
  std::size_t count = 0;
  for (const FileLog& file : files_) count += file.malformed;
  return count;
}

void TableRow::Reject(std::string why) {
  if (!why_) why_ = std::move(why);
}

void TableRow::RejectField(std::size_t column, std::string_view expected) {
  Reject(fmt::format("{} = '{}', expected {}", format_.columns[column], Excerpt(fields_[column]),
                     expected));
}

Status ReadTable(const std::filesystem::path& path, const TableFormat& format, InputLog& log,
                 const WorkPart& part, const RowHandler& handle, bool may_be_empty) {
  auto reader = LineReader::Open(path);
  if (!reader.ok()) return reader.status();
  RowSource source(std::move(reader).value(), format);
  log.BeginFile(path);
  if (format.header) CODBAND_RETURN_IF_ERROR(CheckHeader(path, format, source));
  bool malformed = false;
  for (std::size_t rows = 0; source.Next(); ++rows) {
    if (rows % kRowsBetweenReports == 0) {
      CODBAND_RETURN_IF_ERROR(part.Report(source.reader().share()));
    }
    if (source.line().empty()) continue;
    TableRow row(format, source.fields());
    if (!source.problem().empty()) {
      row.Reject(source.problem());
    } else if (source.fields().size() != format.columns.size()) {
      row.Reject(fmt::format("{} fields, expected {}: {}", source.fields().size(),
                             format.columns.size(), fmt::join(format.columns, ", ")));
    } else {
      handle(row);
    }
    malformed = !row.ok();
    if (row.ok()) {
      log.AddRow();
    } else {
      CODBAND_RETURN_IF_ERROR(log.AddMalformed(source.line_number(), row.why()));
    }
  }
  CODBAND_RETURN_IF_ERROR(source.reader().status());
  CODBAND_RETURN_IF_ERROR(part.Report(1));
  CODBAND_RETURN_IF_ERROR(log.EndFile(
      fmt::format("lines of {}", fmt::join(format.columns, SeparatorText(format.separator))),
      may_be_empty));
  return source.reader().CheckEnd(malformed);
}

}  // namespace codband::data
