#include "codband/cli/run_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <thread>

#include "codband/base/file.h"

namespace codband::cli {

void RunFlags::Add(const Command& command, const char* seeds_help) {
  command.Option("--seed", seed, "S", "First seed (default 1)");
  command.Option("--seeds", seeds, "n", seeds_help);
  command.Option("--threads", threads, "n", "Number of runs at a time (default: one per core)");
}

Status RunFlags::Parse(std::uint64_t& first_seed, std::size_t& seed_count,
                       std::size_t& thread_count) const {
  if (!seed.empty()) {
    CODBAND_RETURN_IF_ERROR(Assign(
        ParseWhole("--seed", seed, 0, std::numeric_limits<std::uint32_t>::max()), first_seed));
  }
  if (!seeds.empty()) {
    CODBAND_RETURN_IF_ERROR(Assign(ParseWhole("--seeds", seeds, 1, 100'000), seed_count));
  }
  thread_count = std::max(1U, std::thread::hardware_concurrency());
  if (threads.empty()) return {};
  return Assign(ParseWhole("--threads", threads, 1, 1024), thread_count);
}

void OutputFlags::AddFormat(const Command& command, const char* formats) {
  command.Option("--format", format, formats, "Format of what is printed (default table)");
}

void OutputFlags::AddOut(const Command& command) {
  command.Option("--out", out, "DIR", "Also write a report with figures to this directory");
}

Result<OutputFormat> OutputFlags::ParseFormat() const {
  constexpr std::string_view kFormats[] = {"table", "json", "csv"};  // by OutputFormat
  const auto place = ParseWord("--format", format, kFormats);
  if (!place.ok()) return place.status();
  return static_cast<OutputFormat>(place.value());
}

Status OutputFlags::MakeDirectory() const { return out.empty() ? Status() : EnsureDirectory(out); }

void SettingFlags::AddOne(const Command& command, const char* name, const char* value,
                          const char* help) {
  Flag& flag = flags_.emplace_back(Flag{.name = name});
  if (*value == '\0') {
    command.Switch(name, flag.on, help);
  } else {
    command.Option(name, flag.text, value, help);
  }
}

std::vector<std::optional<std::string>> SettingFlags::Texts(const Command& command) const {
  std::vector<std::optional<std::string>> texts;
  for (const Flag& flag : flags_) {
    texts.push_back(command.Given(flag.name) ? std::optional(flag.text) : std::nullopt);
  }
  return texts;
}

PercentBar::PercentBar(std::size_t count, std::string_view what) : progress_({.total = 100}) {
  progress_.SetLabel(fmt::format("% of {} {}", count, what));
}

std::function<void(double)> PercentBar::Shares() {
  return [this](double share) { progress_.Advance(100 * share); };
}

void Print(const std::string& text) { fmt::print("{}", text); }

void TellReport(const std::string& directory) {
  fmt::print(stderr, "Report: {}/report.html\n", directory);
}

}  // namespace codband::cli
