// codband restore: a backup becomes a data directory.
#include "codband/server/admin/restore.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <memory>

#include "codband/cli/command.h"
#include "codband/cli/findings_text.h"

namespace codband::cli {
namespace {

struct RestoreFlags {
  std::string from;
  std::string data;
};

constexpr std::string_view kRestoreFooter = R"(
The backup is checked first, as 'codband doctor' does. The target must be new or empty: move a damaged
directory away, and keep it until the restored one works. The backup is not changed; a directory that
a server is running on is refused. If the command is interrupted, run it again.

Example:
  mv /var/lib/codband /var/lib/codband-damaged
  codband restore --from /backups/codband-2026-07-29 --data /var/lib/codband)";

Status RunRestore(const RestoreFlags& flags) {
  ::umask(S_IRWXG | S_IRWXO);
  const auto findings = server::RestoreBackup(flags.from, flags.data);
  if (!findings.ok()) return findings.status();
  fmt::print("Restored {} to {}:\n\n{}", flags.from, flags.data, FindingsText(findings.value()));
  return {};
}

}  // namespace

void AddRestoreCommand(CLI::App& app, Status& status) {
  auto flags = std::make_shared<RestoreFlags>();
  const Command command(app, "restore", "Restore a backup into a new data directory",
                        kRestoreFooter);
  command.Option("--from", flags->from, "DIR2", "What 'codband backup' made", Command::kRequired);
  command.Option("--data", flags->data, "DIR", "The data directory to create; new or empty",
                 Command::kRequired);
  command.Run(status, [flags] { return RunRestore(*flags); });
}

}  // namespace codband::cli
