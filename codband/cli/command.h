#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codband/base/status.h"

namespace CLI {  // NOLINT(readability-identifier-naming): not ours
class App;
}  // namespace CLI

namespace codband::cli {

// Each adds its subcommand to the program. It runs if it is named on the command line, and leaves
// its outcome in `status`. Both arguments outlive the parsing.
void AddSimulateCommand(CLI::App& app, Status& status);
void AddPaperCommand(CLI::App& app, Status& status);
void AddStressCommand(CLI::App& app, Status& status);
void AddPrepareCommand(CLI::App& app, Status& status);
void AddReplayCommand(CLI::App& app, Status& status);
void AddEvaluateCommand(CLI::App& app, Status& status);
void AddPoliciesCommand(CLI::App& app, Status& status);
// If it fails it sets the exit code as well (server::ServeExit).
void AddServeCommand(CLI::App& app, Status& status, int& exit_code);
void AddKeysCommand(CLI::App& app, Status& status);
void AddImportCommand(CLI::App& app, Status& status);
void AddBackupCommand(CLI::App& app, Status& status);
void AddRestoreCommand(CLI::App& app, Status& status);
void AddExportCommand(CLI::App& app, Status& status);
void AddDoctorCommand(CLI::App& app, Status& status);
void AddClusterCommand(CLI::App& app, Status& status);

// Builds one subcommand; copies are handles of the same one. Targets outlive the parsing. Hides the
// parser, whose header takes long to compile.
class Command {
 public:
  Command(CLI::App& app, const char* name, const char* help, std::string_view footer = {});

  // A flag with a value or, without dashes, a positional argument; kept as text.
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

  // What the subcommand does, and where its outcome goes.
  void Run(Status& status, std::function<Status()> run) const;

  // While it runs: whether the flag was given.
  bool Given(const char* name) const;
  // The command as it could be typed again, without the flag `without`.
  std::string Typed(std::string_view without) const;

 private:
  CLI::App* command_;
};

// The places in `names` of the names of a comma-separated list, in its order, without duplicates;
// all of them for an empty list. kInvalidArgument for an unknown name lists the known ones.
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

}  // namespace codband::cli
