#pragma once

#include <rocksdb/env.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "codband/base/status.h"

namespace codband::store {

// RocksDB's list of its files (MANIFEST-…) and the copy of it that NamedFiles keeps. Nothing else
// says which files are in use and which of two records is newer, and RocksDB refuses to open a list
// with a torn end.

// What the name of the copy ends in.
inline constexpr const char* kTwinSuffix = ".twin";
// Whether it is a list of files, and not a copy of one.
bool IsListOfFiles(std::string_view path);

// Where the list that CURRENT names is damaged, puts the longer intact part of it and of its copy
// in its place. The copy is synced first: whatever the list had durably is in both, so that only a
// write which a power cut interrupted is lost, as long as not both have been damaged since. Without
// a copy the end is cut off, if nothing intact follows the damage. Returns what was done, for a
// person; empty if the list is intact. Leaves alone what it cannot mend: RocksDB then says what is
// wrong. Nobody may have the database open.
Result<std::string> MendListOfFiles(rocksdb::Env& env,
                                    const std::filesystem::path& rocksdb_directory);

}  // namespace codband::store
