#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "codband/base/log.h"

namespace codband::server {

enum class LogFormat { kText, kJson };

struct LoggerOptions {
  LogLevel level = LogLevel::kInfo;  // lines below it are dropped
  LogFormat format = LogFormat::kText;
  // Lines of one cause and level: so many at once, and one more after each interval. Those that are
  // left out are counted in the next line.
  std::uint32_t burst = 5;
  std::int64_t interval_ms = 10'000;
  std::function<std::int64_t()> now_ms = {};         // the time to print; the system's if not given
  std::function<std::int64_t()> steady_ms = {};      // for the limit; BootMillis if not given
  std::function<void(std::string_view)> write = {};  // one line; to standard error if not given
};

// Writes what an operator should know, one line each:
//
//   2026-11-16T19:20:00.000Z error quarantine log entry 24 cannot be learned …
//   {"time":"2026-11-16T19:20:00.000Z","level":"error","cause":"quarantine","message":"…"}
//
// Line breaks and other control characters in a message are escaped. Thread-safe.
class Logger {
 public:
  explicit Logger(LoggerOptions options);

  void Write(const LogLine& line);
  void Write(LogLevel level, std::string_view cause, std::string message) {
    Write({.level = level, .cause = cause, .message = std::move(message)});
  }
  // Says how many lines were left out, once there is room for it; all of them at the end.
  enum class Now { kIfDue, kAll };
  void Flush(Now now = Now::kIfDue);
  // The logger outlives the sink.
  LogSink sink() {
    return [this](const LogLine& line) { Write(line); };
  }

 private:
  struct Budget {
    double lines = 0;  // that may be written now
    std::int64_t seen_ms = 0;
    std::uint64_t left_out = 0;
    LogLine last = {};  // that was left out; the cause is a literal
  };
  // Whether there is room for a line.
  bool Admit(Budget& budget) const;
  std::string Render(const LogLine& line, std::uint64_t left_out) const;

  LoggerOptions options_;
  std::mutex mutex_;                       // guards what follows, and keeps lines whole
  std::map<std::string, Budget> budgets_;  // by level and cause
};

std::string_view LogLevelName(LogLevel level);  // "warning"

}  // namespace codband::server
