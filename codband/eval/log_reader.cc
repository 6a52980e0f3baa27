#include "codband/eval/log_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>

#include "codband/base/parse.h"
#include "codband/base/text.h"

namespace codband::eval {
namespace {

constexpr double kMillisFrom = 1e11;
constexpr double kLatestMillis = 4e15;

// Takes `digits` digits from the front.
std::optional<int> TakeDigits(std::string_view& text, std::size_t digits) {
  if (text.size() < digits) return std::nullopt;
  const auto value = ParseNumber<unsigned>(text.substr(0, digits));
  text.remove_prefix(digits);
  if (!value) return std::nullopt;
  return static_cast<int>(*value);
}

bool TakeOne(std::string_view& text, std::string_view allowed) {
  if (text.empty() || allowed.find(text.front()) == allowed.npos) return false;
  text.remove_prefix(1);
  return true;
}

// What follows the seconds: "", "Z", "+09:00", "-0330". In seconds east of Greenwich.
std::optional<int> ParseZone(std::string_view text) {
  if (text.empty() || text == "Z" || text == "z") return 0;
  const int sign = text.front() == '-' ? -1 : 1;
  if (!TakeOne(text, "+-")) return std::nullopt;
  const auto hours = TakeDigits(text, 2);
  TakeOne(text, ":");
  const auto minutes = text.empty() ? std::optional(0) : TakeDigits(text, 2);
  if (!hours || !minutes || !text.empty()) return std::nullopt;
  return sign * (*hours * 3600 + *minutes * 60);
}

}  // namespace

std::optional<std::int64_t> ParseTime(std::string_view text) {
  if (const auto number = ParseNumber<double>(text)) {
    const double ms = std::abs(*number) < kMillisFrom ? 1000 * *number : *number;
    if (!(std::abs(ms) <= kLatestMillis)) return std::nullopt;
    return std::llround(ms);
  }
  const auto year = TakeDigits(text, 4);
  if (!year || !TakeOne(text, "-")) return std::nullopt;
  const auto month = TakeDigits(text, 2);
  if (!month || !TakeOne(text, "-")) return std::nullopt;
  const auto day = TakeDigits(text, 2);
  if (!day || !TakeOne(text, "T ")) return std::nullopt;
  const auto hour = TakeDigits(text, 2);
  if (!hour || !TakeOne(text, ":")) return std::nullopt;
  const auto minute = TakeDigits(text, 2);
  if (!minute || !TakeOne(text, ":")) return std::nullopt;
  const auto second = TakeDigits(text, 2);
  if (!second) return std::nullopt;
  double fraction = 0;
  if (TakeOne(text, ".")) {
    for (double place = 0.1; !text.empty() && text.front() >= '0' && text.front() <= '9';
         place /= 10) {
      fraction += place * (text.front() - '0');
      text.remove_prefix(1);
    }
  }
  const auto zone = ParseZone(text);
  if (!zone || *month < 1 || *month > 12 || *day < 1 || *day > 31 || *hour > 23 || *minute > 59 ||
      *second > 60) {
    return std::nullopt;
  }
  std::tm utc{};
  utc.tm_year = *year - 1900;
  utc.tm_mon = *month - 1;
  utc.tm_mday = *day;
  utc.tm_hour = *hour;
  utc.tm_min = *minute;
  utc.tm_sec = *second;
  return (std::int64_t{timegm(&utc)} - *zone) * 1000 +
         static_cast<std::int64_t>(std::floor(1000 * fraction));
}

std::string PrintableText(std::string_view text, int columns) {
  std::string printable;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t begin = i;
    const char32_t c = DecodeUtf8(text, &i);
    if (c == 0xFFFD) {
      printable += "\uFFFD";
    } else if (c < 0x20 || (c >= 0x7F && c < 0xA0)) {
      printable += ' ';
    } else {
      printable += text.substr(begin, i - begin);
    }
  }
  return Truncate(printable, columns);
}

Status LineCounter::Skip(const std::string& file, std::size_t line, std::string_view problem,
                         bool foreign) {
  // Files that are no text must not reach a terminal as they are.
  std::string text = fmt::format("{}:{}: {}", file, line, PrintableText(problem));
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
