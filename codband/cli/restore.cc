// codband restore: a backup becomes a data directory.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <system_error>

#include "codband/base/file.h"
#include "codband/cli/command.h"
#include "codband/cli/findings_text.h"
#include "codband/server/admin/findings.h"

namespace codband::cli {
namespace {

namespace fs = std::filesystem;

struct RestoreFlags {
  std::string from;
  std::string data;
};

constexpr std::string_view kFooter = R"(
The backup is checked first, as 'codband doctor' does. The target must be new or empty: move a damaged
directory out of the way, do not delete it before the restored one works. The backup is not changed,
and can be restored again. If it is cut off, run it again.

Example:
  mv /var/lib/codband /var/lib/codband-damaged
  codband restore --from /backups/codband-2026-07-29 --data /var/lib/codband)";

// What all of a store is in, below a data directory.
constexpr const char* kStore = "rocksdb";
constexpr const char* kUnfinished = "restore.unfinished";

Status CheckEmpty(const fs::path& data) {
  std::error_code error;
  for (fs::directory_iterator entry(data, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name == kUnfinished) continue;
    return Status::InvalidArgument(fmt::format(
        "{} is not empty: it holds {}; name a new directory, or move this one out of the way",
        data.string(), name));
  }
  return {};
}

// Copied under another name inside the directory, which may be a mount point and then cannot be
// renamed itself; one rename makes it the data.
Status CopyBackup(const fs::path& from, const fs::path& data) {
  std::error_code error;
  const fs::path unfinished = data / kUnfinished;
  fs::remove_all(unfinished, error);
  if (!error) {
    CODBAND_RETURN_IF_ERROR(CopyTreeDurably(from / kStore, unfinished));
    fs::rename(unfinished, data / kStore, error);
  }
  if (error) {
    return Status::IoError(
        fmt::format("cannot restore into {}: {}", data.string(), error.message()));
  }
  CODBAND_RETURN_IF_ERROR(SyncDirectory(data));
  return SyncDirectory(fs::absolute(data, error).parent_path());
}

Status RunRestore(const RestoreFlags& flags) {
  CODBAND_RETURN_IF_ERROR(CheckEmpty(flags.data));
  const auto findings = server::ExamineData(flags.from);
  if (!findings.ok()) return findings.status();
  CODBAND_RETURN_IF_ERROR(server::CheckSound(flags.from, findings.value()));
  CODBAND_RETURN_IF_ERROR(EnsureDirectory(flags.data));
  CODBAND_RETURN_IF_ERROR(CopyBackup(flags.from, flags.data));
  fmt::print("Restored {} to {}:\n\n{}", flags.from, flags.data, FindingsText(findings.value()));
  return {};
}

}  // namespace

void AddRestoreCommand(CLI::App& app, Status& status) {
  auto flags = std::make_shared<RestoreFlags>();
  const Command command(app, "restore", "Bring a backup back", kFooter);
  command.Option("--from", flags->from, "DIR2", "What 'codband backup' made", Command::kRequired);
  command.Option("--data", flags->data, "DIR", "The data directory to be: new or empty",
                 Command::kRequired);
  command.Run(status, [flags] { return RunRestore(*flags); });
}

}  // namespace codband::cli
