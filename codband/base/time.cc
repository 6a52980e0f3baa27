#include "codband/base/time.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>

#include "codband/base/parse.h"

namespace codband {
namespace {

namespace chrono = std::chrono;

constexpr std::int64_t kFirst = -62'167'219'200'000;  // 0000-01-01
constexpr std::int64_t kLast = 253'402'300'799'999;   // the last millisecond of 9999
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

// "2021-07-29".
std::optional<chrono::sys_days> TakeDate(std::string_view& text) {
  const auto year = TakeDigits(text, 4);
  if (!year || !TakeOne(text, "-")) return std::nullopt;
  const auto month = TakeDigits(text, 2);
  if (!month || !TakeOne(text, "-")) return std::nullopt;
  const auto day = TakeDigits(text, 2);
  if (!day || *month < 1 || *month > 12 || *day < 1 || *day > 31) return std::nullopt;
  // Days past the end of the month run over into the next one.
  return chrono::sys_days(chrono::year(*year) / *month / 1) + chrono::days(*day - 1);
}

// "10:00:00.999".
std::optional<chrono::milliseconds> TakeTimeOfDay(std::string_view& text) {
  const auto hour = TakeDigits(text, 2);
  if (!hour || !TakeOne(text, ":")) return std::nullopt;
  const auto minute = TakeDigits(text, 2);
  if (!minute || !TakeOne(text, ":")) return std::nullopt;
  const auto second = TakeDigits(text, 2);
  if (!second || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  int ms = 0;
  if (TakeOne(text, ".")) {
    for (int place = 100; !text.empty() && text.front() >= '0' && text.front() <= '9';
         place /= 10) {
      ms += place * (text.front() - '0');
      text.remove_prefix(1);
    }
  }
  return chrono::hours(*hour) + chrono::minutes(*minute) + chrono::seconds(*second) +
         chrono::milliseconds(ms);
}

// What follows the seconds: "", "Z", "+09:00", "-0330". East of Greenwich is positive.
std::optional<chrono::minutes> ParseZone(std::string_view text) {
  if (text.empty() || text == "Z" || text == "z") return chrono::minutes(0);
  const int sign = text.front() == '-' ? -1 : 1;
  if (!TakeOne(text, "+-")) return std::nullopt;
  const auto hours = TakeDigits(text, 2);
  TakeOne(text, ":");
  const auto minutes = text.empty() ? std::optional(0) : TakeDigits(text, 2);
  if (!hours || !minutes || !text.empty()) return std::nullopt;
  return sign * (chrono::hours(*hours) + chrono::minutes(*minutes));
}

}  // namespace

void AppendRfc3339(std::string& out, std::int64_t time_ms) {
  const chrono::sys_time<chrono::milliseconds> time{
      chrono::milliseconds(std::clamp(time_ms, kFirst, kLast))};
  const auto day = chrono::floor<chrono::days>(time);
  const chrono::year_month_day date{day};
  const chrono::hh_mm_ss clock{time - day};
  fmt::format_to(std::back_inserter(out), FMT_COMPILE("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z"),
                 static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                 static_cast<unsigned>(date.day()), clock.hours().count(), clock.minutes().count(),
                 clock.seconds().count(), clock.subseconds().count());
}

std::string FormatRfc3339(std::int64_t time_ms) {
  std::string text;
  AppendRfc3339(text, time_ms);
  return text;
}

std::optional<std::int64_t> ParseRfc3339(std::string_view text) {
  const auto date = TakeDate(text);
  if (!date || !TakeOne(text, "T ")) return std::nullopt;
  const auto time_of_day = TakeTimeOfDay(text);
  if (!time_of_day) return std::nullopt;
  const auto zone = ParseZone(text);
  if (!zone) return std::nullopt;
  return (*date + *time_of_day - *zone).time_since_epoch().count();
}

std::optional<std::int64_t> ParseTime(std::string_view text) {
  const auto number = ParseNumber<double>(text);
  if (!number) return ParseRfc3339(text);
  const double ms = std::abs(*number) < kMillisFrom ? 1000 * *number : *number;
  if (!(std::abs(ms) <= kLatestMillis)) return std::nullopt;
  return std::llround(ms);
}

}  // namespace codband
