#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "codband/base/status.h"

namespace codband {

// The whole file. kNotFound if it does not exist, kIoError otherwise; the message has the path.
Result<std::string> ReadFile(const std::filesystem::path& path);

// Replaces the file atomically: writes a temporary file, syncs it (fsync) and renames it, so that a
// crash leaves the old content or the new, never a mixture. kIoError has the path and the reason.
Status WriteFileDurably(const std::filesystem::path& path, std::string_view content);

// Ensures that `path` is a directory in which files can be created; creates parents too.
// kInvalidArgument if the name is empty or taken by something else, kIoError if the system refuses.
Status EnsureDirectory(const std::filesystem::path& path);

// Syncs the directory (fsync), so that the names in it survive a power failure.
Status SyncDirectory(const std::filesystem::path& directory);

// Copies a directory tree, synced to disk on return. `to` must not exist yet, its parent must.
// Anything but files and directories is refused.
Status CopyTreeDurably(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace codband
