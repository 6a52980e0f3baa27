#include "codband/server/admin/restore.h"

#include <fmt/format.h>

#include <system_error>

#include "codband/base/file.h"
#include "codband/store/rocksdb_store.h"

namespace codband::server {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStore = "rocksdb";  // the store within a data directory
constexpr const char* kUnfinished = "restore.unfinished";

Status CheckEmpty(const fs::path& data) {
  std::error_code error;
  for (fs::directory_iterator entry(data, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name == kUnfinished) continue;
    return Status::InvalidArgument(
        fmt::format("{} is not empty: it contains {}; give a new directory, or move this one away",
                    data.string(), name));
  }
  return {};
}

// The copy gets its final name in one rename. It is made inside the directory, which may be a mount
// point and so cannot be renamed itself.
Status CopyStore(const fs::path& from, const fs::path& data) {
  std::error_code error;
  const fs::path unfinished = data / kUnfinished;
  fs::remove_all(unfinished, error);
  if (!error) {
    CODBAND_RETURN_IF_ERROR(CopyTreeDurably(from / kStore, unfinished));
    if (const auto closed = MakePrivate(unfinished); !closed.ok()) return closed.status();
    fs::rename(unfinished, data / kStore, error);
  }
  if (error) {
    return Status::IoError(
        fmt::format("cannot restore into {}: {}", data.string(), error.message()));
  }
  CODBAND_RETURN_IF_ERROR(SyncDirectory(data));
  return SyncDirectory(fs::absolute(data, error).parent_path());
}

}  // namespace

Result<std::vector<Finding>> RestoreBackup(const fs::path& from, const fs::path& data) {
  CODBAND_RETURN_IF_ERROR(CheckEmpty(data));
  // Files of a database in use change while they are copied: the copy would be of no moment.
  if (store::IsRocksDbStoreInUse(from)) {
    return Status(StatusCode::kUnavailable,
                  fmt::format("{} is in use by another process: make a backup of it with 'codband "
                              "backup --data {} --out NEW', and restore that",
                              from.string(), from.string()));
  }
  auto findings = ExamineData(from);
  if (!findings.ok()) return findings.status();
  CODBAND_RETURN_IF_ERROR(CheckSound(from, findings.value()));
  CODBAND_RETURN_IF_ERROR(EnsurePrivateDirectory(data));
  if (const auto closed = MakePrivate(data, Reach::kOne); !closed.ok()) return closed.status();
  CODBAND_RETURN_IF_ERROR(CopyStore(from, data));
  return findings;
}

}  // namespace codband::server
