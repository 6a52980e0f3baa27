#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codband/base/status.h"
#include "codband/cli/command.h"
#include "codband/experiments/setting_text.h"
#include "codband/report/progress.h"

// Flags that several subcommands share, and what they do with them.
namespace codband::cli {

using experiments::Assign;
using experiments::ParseReal;
using experiments::ParseWhole;
using experiments::ParseWord;

// --seed, --seeds and --threads, as typed; empty means not given.
struct RunFlags {
  std::string seed;
  std::string seeds;
  std::string threads;

  void Add(const Command& command, const char* seeds_help);
  // Overwrites what was given; `threads` becomes the number of cores if it was not.
  Status Parse(std::uint64_t& first_seed, std::size_t& seed_count, std::size_t& thread_count) const;
};

// The formats in which results are printed.
enum class OutputFormat { kTable, kJson, kCsv };

// --format and --out, as typed.
struct OutputFlags {
  std::string format = "table";
  std::string out;

  void AddFormat(const Command& command, const char* formats = "table|json|csv");
  void AddOut(const Command& command);
  Result<OutputFormat> ParseFormat() const;
  // Makes the directory of --out, if it was given.
  Status MakeDirectory() const;
};

// One flag for each setting of a list whose items have the members flag, value and help.
class SettingFlags {
 public:
  template <typename Settings>
  void Add(const Command& command, const Settings& settings) {
    for (const auto& setting : settings) AddOne(command, setting.flag, setting.value, setting.help);
  }

  // While the command runs: what was typed, none where the flag was not given; by place in the
  // list. The text of a switch is empty.
  std::vector<std::optional<std::string>> Texts(const Command& command) const;

 private:
  struct Flag {
    const char* name;
    std::string text = {};
    bool on = false;
  };

  void AddOne(const Command& command, const char* name, const char* value, const char* help);

  std::deque<Flag> flags_;  // the parser keeps their addresses
};

// A progress bar in percent: "% of 12 runs".
class PercentBar {
 public:
  PercentBar(std::size_t count, std::string_view what);

  // Takes the share of all work done since the last call, from any thread. Borrows the bar.
  std::function<void(double share)> Shares();
  void SetLabel(std::string label) { progress_.SetLabel(std::move(label)); }
  void Finish() { progress_.Finish(); }

 private:
  report::Progress progress_;
};

// The record in one of the formats, as its own ToText, ToJson or ToCsv writes it.
template <typename Record>
std::string Format(const Record& record, OutputFormat format) {
  switch (format) {
    case OutputFormat::kJson:
      return ToJson(record);
    case OutputFormat::kCsv:
      return ToCsv(record);
    case OutputFormat::kTable:
      break;
  }
  return ToText(record);
}

void Print(const std::string& text);
void TellReport(const std::string& directory);

// Prints the record and, if --out was given, writes its report there.
template <typename Record>
Status Deliver(const Record& record, OutputFormat format, const std::string& out) {
  Print(Format(record, format));
  if (out.empty()) return {};
  CODBAND_RETURN_IF_ERROR(WriteReport(record, out));
  TellReport(out);
  return {};
}

}  // namespace codband::cli
