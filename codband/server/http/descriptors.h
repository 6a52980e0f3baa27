#pragma once

#include <cstddef>

namespace codband::server {

// File descriptors that connections must leave to the rest of the process: the files of the store,
// which keeps 256 of them open, its logs, checkpoints and backups, the decision log, and
// connections that are being refused.
inline constexpr std::size_t kReservedDescriptors = 512;

// Raises the process's soft limit of open files to its hard one; without effect if that is refused.
void RaiseDescriptorLimit();

// How many connections fit into the process's limit of open files. Of a small limit the half is
// reserved.
std::size_t ConnectionsThatFit();

}  // namespace codband::server
