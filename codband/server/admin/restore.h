#pragma once

#include <filesystem>
#include <vector>

#include "codband/base/status.h"
#include "codband/server/admin/findings.h"

namespace codband::server {

// Copies a backup into a data directory that is new or empty. The backup is examined first, as
// ExamineData does, and not changed; a damaged one is refused with kCheckFailed before anything is
// written, a directory that another process has open with kUnavailable. Interrupted at any point,
// it leaves no data directory that opens, and can be repeated. The copy is for its owner alone.
// Returns what was found in the backup.
Result<std::vector<Finding>> RestoreBackup(const std::filesystem::path& from,
                                           const std::filesystem::path& data);

}  // namespace codband::server
