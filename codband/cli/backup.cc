// codband backup: a snapshot of a data directory.
#include <fmt/format.h>
#include <sys/stat.h>

#include <memory>

#include "codband/cli/command.h"
#include "codband/server/admin/data_directory.h"

namespace codband::cli {
namespace {

struct BackupFlags {
  std::string data;
  std::string out;
};

constexpr std::string_view kBackupFooter = R"(
Works whether a server is running on the data or not. A running server makes the copy itself, of one
moment, among its backups (its setting backup.root), while it goes on serving; from there the copy is
moved. If the server requires a key, put one with the role admin into the environment variable
CODBAND_API_KEY. Run the command on the server's machine, as its user or as root.

Group and others get no rights to the copy: directories have the mode 0700, files 0600.

The copy is a data directory: 'codband doctor --data COPY' checks it, 'codband restore' restores it.

Examples:
  codband backup --data /var/lib/codband --out /backups/codband-2026-07-29
  codband doctor --data /backups/codband-2026-07-29)";

Status RunBackup(const BackupFlags& flags) {
  ::umask(S_IRWXG | S_IRWXO);
  const auto how = server::BackUpData(flags.data, flags.out);
  if (!how.ok()) return how.status();
  fmt::print("Backed up {} to {}{}{}\n", flags.data, flags.out, how.value().empty() ? "" : " ",
             how.value());
  return {};
}

}  // namespace

void AddBackupCommand(CLI::App& app, Status& status) {
  auto flags = std::make_shared<BackupFlags>();
  const Command command(app, "backup", "Copy a data directory, with a server running on it or not",
                        kBackupFooter);
  command.Option("--data", flags->data, "DIR", "The data directory", Command::kRequired);
  command.Option("--out", flags->out, "DIR2", "The copy: a new directory", Command::kRequired);
  command.Run(status, [flags] { return RunBackup(*flags); });
}

}  // namespace codband::cli
