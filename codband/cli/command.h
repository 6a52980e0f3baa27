#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codband/base/status.h"

namespace CLI {  // NOLINT(readability-identifier-naming): not ours
class App;
}  // namespace CLI

namespace codband::cli {

// Each subcommand adds itself to the program; its work runs when it was named on the command line,
// and leaves its outcome in `status`. Both outlive the parsing.
void AddSimulateCommand(CLI::App& app, Status& status);
void AddPaperCommand(CLI::App& app, Status& status);
void AddStressCommand(CLI::App& app, Status& status);
void AddPrepareCommand(CLI::App& app, Status& status);
void AddReplayCommand(CLI::App& app, Status& status);
void AddEvaluateCommand(CLI::App& app, Status& status);
void AddPoliciesCommand(CLI::App& app, Status& status);
void AddServeCommand(CLI::App& app, Status& status);
void AddBackupCommand(CLI::App& app, Status& status);
void AddRestoreCommand(CLI::App& app, Status& status);
void AddExportCommand(CLI::App& app, Status& status);
void AddDoctorCommand(CLI::App& app, Status& status);

// A subcommand in the making; copies are handles of the same one. Targets outlive the parsing. The
// parser itself, which takes long to compile, stays behind it.
class Command {
 public:
  Command(CLI::App& app, const char* name, const char* help, std::string_view footer = {});

  // A flag with a value, or, without a dash, an argument; kept as text.
  enum class Need { kOptional, kRequired };
  static constexpr Need kRequired = Need::kRequired;
  void Option(const char* name, std::string& target, const char* value, const char* help,
              Need need = Need::kOptional) const;
  // A flag with several values, at least one: --log a b.
  void List(const char* name, std::vector<std::string>& target, const char* value,
            const char* help) const;
  // A flag that may be given several times: --set a --set b.
  void Repeated(const char* name, std::vector<std::string>& target, const char* value,
                const char* help) const;
  void Switch(const char* name, bool& target, const char* help) const;

  // What it does, and where its outcome goes.
  void Run(Status& status, std::function<Status()> run) const;

  // While it runs: whether the flag was given.
  bool Given(const char* name) const;
  // The command as it could be typed again, but for the flag `without`.
  std::string Typed(std::string_view without) const;

 private:
  CLI::App* command_;
};

// Flags are read as text and parsed here, so that every message names the flag, the value and what
// is allowed: "--users = 'many', expected a whole number from 1 to 10000000".
Result<std::size_t> ParseWhole(std::string_view flag, std::string_view text, std::size_t min,
                               std::size_t max);
Result<double> ParseReal(std::string_view flag, std::string_view text);

// Stores what was parsed, or passes on what was wrong.
template <typename T>
Status Assign(Result<T> parsed, T& target) {
  if (!parsed.ok()) return parsed.status();
  target = std::move(parsed).value();
  return {};
}

// Which of the names a comma-separated list holds, in its order and each once; all for an empty
// list. kInvalidArgument for an unknown name says which there are.
Result<std::vector<std::size_t>> SelectNames(std::string_view flag, std::string_view list,
                                             std::span<const std::string> names);

// The same for items that have a member `name`.
template <typename Item>
Result<std::vector<Item>> SelectByName(std::string_view flag, std::string_view list,
                                       const std::vector<Item>& items) {
  std::vector<std::string> names;
  for (const Item& item : items) names.push_back(item.name);
  const auto chosen = SelectNames(flag, list, names);
  if (!chosen.ok()) return chosen.status();
  std::vector<Item> selected;
  for (const std::size_t i : chosen.value()) selected.push_back(items[i]);
  return selected;
}

// The flags --seed, --seeds and --threads, as typed; empty means not given.
struct RunFlags {
  std::string seed;
  std::string seeds;
  std::string threads;

  // Overwrites what was given; `threads` becomes the number of cores if it was not.
  Status Parse(std::uint64_t& first_seed, std::size_t& seed_count, std::size_t& thread_count) const;
};

// The formats that results are printed in.
enum class OutputFormat { kTable, kJson, kCsv };
Result<OutputFormat> ParseFormat(std::string_view text);

// As the record's own ToText, ToJson or ToCsv writes it.
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

}  // namespace codband::cli
