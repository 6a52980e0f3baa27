#include "codband/server/admin/logger.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "codband/base/clock.h"
#include "codband/base/time.h"
#include "codband/server/api/json_writer.h"

namespace codband::server {
namespace {

void ToStandardError(std::string_view line) {
  static_cast<void>(std::fwrite(line.data(), 1, line.size(), stderr));
  std::fflush(stderr);
}

// On one line, whatever it contains.
std::string OneLine(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", byte);
    } else {
      out.push_back(c);
    }
  }
  return out;
}

}  // namespace

std::string_view LogLevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "unknown";
}

Logger::Logger(LoggerOptions options) : options_(std::move(options)) {
  if (!options_.now_ms) options_.now_ms = UnixMillis;
  if (!options_.steady_ms) options_.steady_ms = BootMillis;
  if (!options_.write) options_.write = ToStandardError;
}

// A token bucket.
bool Logger::Admit(Budget& budget) const {
  const std::int64_t now_ms = options_.steady_ms();
  const double earned =
      static_cast<double>(now_ms - budget.seen_ms) / static_cast<double>(options_.interval_ms);
  budget.seen_ms = now_ms;
  budget.lines = std::min<double>(options_.burst, budget.lines + std::max(0.0, earned));
  if (budget.lines < 1) return false;
  budget.lines -= 1;
  return true;
}

void Logger::Write(const LogLine& line) {
  if (line.level < options_.level) return;
  const std::lock_guard lock(mutex_);
  const auto [found, is_new] = budgets_.try_emplace(
      fmt::format("{} {}", LogLevelName(line.level), line.cause),
      Budget{.lines = static_cast<double>(options_.burst), .seen_ms = options_.steady_ms()});
  Budget& budget = found->second;
  if (!Admit(budget)) {
    ++budget.left_out;
    budget.last = line;
    return;
  }
  options_.write(Render(line, std::exchange(budget.left_out, 0)));
}

void Logger::Flush(Now now) {
  const std::lock_guard lock(mutex_);
  for (auto& [name, budget] : budgets_) {
    if (budget.left_out == 0 || (now == Now::kIfDue && !Admit(budget))) continue;
    options_.write(Render(budget.last, std::exchange(budget.left_out, 0) - 1));
  }
}

std::string Logger::Render(const LogLine& line, std::uint64_t left_out) const {
  std::string message = OneLine(line.message);
  if (left_out > 0) message += fmt::format(" ({} more of this cause were left out)", left_out);
  const std::string time = FormatRfc3339(options_.now_ms());
  if (options_.format == LogFormat::kText) {
    return fmt::format("{} {} {} {}\n", time, LogLevelName(line.level), line.cause, message);
  }
  std::string out = fmt::format(R"({{"time":"{}","level":"{}","cause":"{}","message":)", time,
                                LogLevelName(line.level), line.cause);
  AppendJsonString(out, message);
  out += "}\n";
  return out;
}

}  // namespace codband::server
