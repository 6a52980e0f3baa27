#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace codband {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// One thing that an operator should know. The library never prints: it hands lines to a sink.
struct LogLine {
  LogLevel level = LogLevel::kInfo;
  std::string_view cause;  // a literal such as "quarantine": one word for each cause, for programs
  std::string message;     // what has happened, and what to do about it, in one line
};

// Called from any thread; must not block for long and must not throw. May be empty.
using LogSink = std::function<void(const LogLine&)>;

}  // namespace codband
