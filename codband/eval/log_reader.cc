#include "codband/eval/log_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "codband/base/text.h"

namespace codband::eval {
namespace {

constexpr int kMessageColumns = 300;

}  // namespace

Status LineCounter::Skip(const std::string& file, std::size_t line, std::string_view problem,
                         bool foreign) {
  // Files that are no text must not reach a terminal as they are.
  std::string text =
      fmt::format("{}:{}: {}", file, line, Truncate(OneLine(problem), kMessageColumns));
  if (leave_out_ == BadLines::kFail || (leave_out_ == BadLines::kForeign && !foreign)) {
    return Status::InvalidArgument(std::move(text));
  }
  if (summary_.skipped++ == 0) summary_.first_problem = std::move(text);
  return {};
}

Result<LogSummary> LineCounter::Finish(const LogSource& source, std::size_t events) {
  summary_.files = source.files.size();
  if (events > 0) return summary_;
  if (summary_.lines == 0) {
    return Status::InvalidArgument(
        fmt::format("{} has no lines, expected decisions", source.files.front()));
  }
  return Status::InvalidArgument(fmt::format("none of {} lines can be used; the first: {}",
                                             summary_.lines, summary_.first_problem));
}

Result<std::vector<std::string>> FindFiles(const LogSource& source) {
  std::vector<std::string> files;
  for (const std::string& name : source.files) {
    std::error_code error;
    if (!std::filesystem::is_directory(name, error)) {
      if (!std::filesystem::exists(name, error)) {
        return Status::NotFound(
            fmt::format("{} does not exist, expected a log of decisions", name));
      }
      files.push_back(name);
      continue;
    }
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(name, error)) {
      const std::string file = entry.path().filename().string();
      if (file.starts_with("decisions-") && file.ends_with(".json")) {
        found.push_back(entry.path().string());
      }
    }
    if (found.empty()) {
      return Status::NotFound(fmt::format("{} has no files decisions-*.json", name));
    }
    std::ranges::sort(found);
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

}  // namespace codband::eval
