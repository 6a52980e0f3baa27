#pragma once

#include <filesystem>
#include <string_view>

#include "codband/base/status.h"
#include "codband/engine/engine.h"

namespace codband::server {

// kInvalidArgument ("name: …") unless it can name a backup: 1 to 100 letters, digits, '-', '_' and
// '.', no dot at the start, and not ending in ".partial", which marks unfinished copies. Such a
// name is one plain entry of a directory whatever it is appended to.
Status CheckBackupName(std::string_view name);

// Copies the engine's data to `root`/`name`, for the owner of the process alone; makes the root if
// it is missing. Whoever asks chooses a name, never a place. kConflict if the name is taken, by a
// symbolic link too: none is followed out of the root. An unfinished copy of that name, left by a
// crash, is removed. Messages about the name do not show the root. One call at a time.
Status MakeBackup(engine::Engine& engine, const std::filesystem::path& root, std::string_view name);

}  // namespace codband::server
