#include "codband/server/api/backups.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <system_error>

#include "codband/base/excerpt.h"
#include "codband/base/file.h"

namespace codband::server {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxNameLength = 100;
constexpr std::string_view kPartial = ".partial";  // as Store::Backup names a copy in the making

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

Status Taken(std::string_view name) {
  return {StatusCode::kConflict,
          fmt::format("name: there is a backup '{}' already; choose another name", name)};
}

}  // namespace

Status CheckBackupName(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameLength) {
    return Status::InvalidArgument(
        fmt::format("name: has {} bytes, expected 1 to {}", name.size(), kMaxNameLength));
  }
  if (name.front() == '.' || !std::ranges::all_of(name, IsNameCharacter)) {
    return Status::InvalidArgument(
        fmt::format("name: is '{}', expected letters, digits, '-', '_' and '.', the first not a "
                    "dot; it is a name, not a path",
                    Excerpt(name)));
  }
  if (name.ends_with(kPartial)) {
    return Status::InvalidArgument(
        fmt::format("name: ends in {}, which marks unfinished backups", kPartial));
  }
  return {};
}

Status MakeBackup(engine::Engine& engine, const fs::path& root, std::string_view name) {
  CODBAND_RETURN_IF_ERROR(CheckBackupName(name));
  if (root.empty()) {
    return {StatusCode::kUnavailable, "this server has no directory for backups"};
  }
  if (const Status made = EnsurePrivateDirectory(root); !made.ok()) {
    return Status::IoError(made.message());  // not a fault of the request
  }
  const fs::path target = root / name;
  std::error_code error;
  if (fs::exists(fs::symlink_status(target, error))) return Taken(name);
  fs::path partial = target;
  partial += kPartial;
  fs::remove_all(partial, error);  // what cannot be removed is reported when it is made again
  const Status status = engine.Backup(target);
  // The only argument is the target: another process has taken it meanwhile.
  return status.code() == StatusCode::kInvalidArgument ? Taken(name) : status;
}

}  // namespace codband::server
