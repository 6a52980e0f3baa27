// The program: reads the command line, runs a subcommand, and turns its outcome into an exit code:
// 0 done, 1 something failed that is not the input's fault, 2 the input is wrong.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "codband/base/text.h"
#include "codband/base/version.h"
#include "codband/cli/command.h"

namespace codband::cli {
namespace {

constexpr int kExitFailure = 1;
constexpr int kExitBadInput = 2;

constexpr const char* kAbout =
    "codband: an online recommender engine for users whose preferences change.\n\n"
    "Start here:\n"
    "  codband serve --demo            a server with simulated users\n"
    "  codband serve --data DIR        the server; see also import, keys, backup, restore, export, "
    "doctor,\n"
    "                                  cluster\n"
    "  codband policies                the policies and their parameters\n"
    "  codband simulate                compare policies on a simulated population\n"
    "  codband paper --quick           the paper's experiments at a small scale, about a minute\n"
    "  codband stress --quick          find where a policy loses to others\n"
    "  codband prepare SET             turn a public data set into recorded events\n"
    "  codband replay DIR              compare policies on recorded events\n"
    "  codband evaluate --log FILE     estimate from a log what other policies would have earned\n"
    "  codband simulate --help         every flag, with examples; likewise for the other commands";

int ExitCode(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
      return 0;
    case StatusCode::kInvalidArgument:
    case StatusCode::kNotFound:
    case StatusCode::kConflict:
      return kExitBadInput;
    default:
      return kExitFailure;
  }
}

void AddCommands(CLI::App& app, Status& status, int& exit_code) {
  AddSimulateCommand(app, status);
  AddPaperCommand(app, status);
  AddStressCommand(app, status);
  AddPrepareCommand(app, status);
  AddReplayCommand(app, status);
  AddEvaluateCommand(app, status);
  AddPoliciesCommand(app, status);
  AddServeCommand(app, status, exit_code);
  AddImportCommand(app, status);
  AddKeysCommand(app, status);
  AddBackupCommand(app, status);
  AddRestoreCommand(app, status);
  AddExportCommand(app, status);
  AddDoctorCommand(app, status);
  AddClusterCommand(app, status);
}

// The first argument that no command has a use for.
std::string UnknownArgument(const CLI::App& command, const std::vector<std::string>& unknown) {
  const auto flag = std::ranges::find_if(
      unknown, [](const std::string& argument) { return argument.starts_with("-"); });
  if (flag == unknown.end()) return fmt::format("'{}' is not expected here", unknown.front());
  const std::string name = flag->substr(0, flag->find('='));
  std::vector<std::string> known;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& each : option->get_lnames()) known.push_back("--" + each);
  }
  const auto nearest = NearestName(name, known);
  return fmt::format("{} is unknown{}", name,
                     nearest ? fmt::format("; did you mean {}?", *nearest) : "");
}

// What the parser itself found wrong.
std::string FailureMessage(const CLI::App* failed, const CLI::Error& error) {
  std::string name = "codband";
  const CLI::App* command = failed;
  for (const CLI::App* sub : failed->get_subcommands()) {
    name += " " + sub->get_name();
    command = sub;
  }
  const std::vector<std::string> unknown = failed->remaining(/*recurse=*/true);
  const bool is_unknown = dynamic_cast<const CLI::ExtrasError*>(&error) && !unknown.empty();
  return fmt::format("{}: {}\nTry '{} --help'.\n", name,
                     is_unknown ? UnknownArgument(*command, unknown) : error.what(), name);
}

// Messages quote what files say, which must not reach a terminal as it is.
std::string Showable(std::string_view message) {
  std::vector<std::string_view> lines;
  SplitText(message, "\n", lines);
  std::vector<std::string> shown;
  for (const std::string_view line : lines) shown.push_back(OneLine(line));
  return fmt::format("{}", fmt::join(shown, "\n"));
}

void TellFailure(const Status& status, const std::string& command) {
  fmt::print(stderr, "codband {}: {}\n", command, Showable(status.message()));
  if (ExitCode(status) == kExitBadInput) fmt::print(stderr, "Try 'codband {} --help'.\n", command);
}

int Main(int argc, char** argv) {
  CLI::App app(kAbout, "codband");
  app.set_version_flag("--version", fmt::format("codband {}", kVersion));
  app.require_subcommand(1);
  app.failure_message(FailureMessage);
  Status status;
  int exit_code = 0;  // if the command has one of its own
  AddCommands(app, status, exit_code);
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands({})) names.push_back(sub->get_name());
  if (argc > 1 && argv[1][0] != '-' && std::ranges::count(names, argv[1]) == 0) {
    const auto nearest = NearestName(argv[1], names);
    fmt::print(stderr, "codband: command '{}' is unknown; {}\nTry 'codband --help'.\n", argv[1],
               nearest ? fmt::format("did you mean {}?", *nearest)
                       : fmt::format("there are {}", fmt::join(names, ", ")));
    return kExitBadInput;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitBadInput;
  }
  if (status.ok() && (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)) {
    status = Status::IoError("standard output cannot be written");
  }
  if (!status.ok()) TellFailure(status, app.get_subcommands().front()->get_name());
  return !status.ok() && exit_code != 0 ? exit_code : ExitCode(status);
}

}  // namespace
}  // namespace codband::cli

int main(int argc, char** argv) {
  try {
    return codband::cli::Main(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "codband: internal error: {}\nPlease report it with the command above.\n",
               error.what());
    return 1;
  }
}
