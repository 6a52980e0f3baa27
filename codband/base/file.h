#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "codband/base/status.h"

namespace codband {

// The whole file. kNotFound if it does not exist, kIoError otherwise; the message has the path.
Result<std::string> ReadFile(const std::filesystem::path& path);

// Who may read a new file.
enum class FileAccess {
  kShared,   // whom the umask allows
  kPrivate,  // its owner alone: 0600
};

// Replaces the file atomically: writes a temporary file, syncs it (fsync) and renames it, so that a
// crash leaves the old content or the new, never a mixture. kIoError has the path and the reason.
Status WriteFileDurably(const std::filesystem::path& path, std::string_view content,
                        FileAccess access = FileAccess::kShared);

// Ensures that `path` is a directory in which files can be created; creates parents too.
// kInvalidArgument if the name is empty or taken by something else, kIoError if the system refuses.
Status EnsureDirectory(const std::filesystem::path& path);

// The same for its owner alone: directories that it creates have the mode 0700. One that exists
// keeps its mode.
Status EnsurePrivateDirectory(const std::filesystem::path& path);

// Takes the rights of group and others away from a file or a directory, and from all that is
// in it if `reach` is kTree. `path` itself may be a symbolic link; those below it are left alone.
// Returns how many were changed; what does not exist is passed over. kIoError if the system
// refuses.
enum class Reach { kOne, kTree };
Result<std::size_t> MakePrivate(const std::filesystem::path& path, Reach reach = Reach::kTree);

// Syncs the directory (fsync), so that the names in it survive a power failure.
Status SyncDirectory(const std::filesystem::path& directory);

// Copies a directory tree, synced to disk on return. `to` must not exist yet, its parent must.
// Anything but files and directories is refused.
Status CopyTreeDurably(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace codband
