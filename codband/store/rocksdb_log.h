#pragma once

#include <rocksdb/env.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

#include "codband/base/status.h"

namespace codband::store {

// Checks and truncates RocksDB's write-ahead logs from outside. RocksDB's own recovery either takes
// damage in the middle of a log for its end (kPointInTimeRecovery), or a torn end for damage
// (kTolerateCorruptedTailRecords).
//
// The format: blocks of 32 KiB, which hold records of a masked CRC-32C (4 bytes, over all that
// follows the length), a length (2), a type (1: whole; 2 to 4: first, middle and last fragment) and
// the payload. A batch is one record or several fragments, and begins with its sequence number (8
// bytes).

// The sequence number of a batch's first change; 0 of what is too short to have one.
std::uint64_t FirstSequence(std::string_view batch);

// kCorruption if damaged bytes precede an intact batch: then something acknowledged is lost. Damage
// followed by bytes of the same batch, or by nothing, is a write that was interrupted. May be
// called while another process writes. Changes nothing.
Status CheckLogs(rocksdb::Env& env, const std::filesystem::path& rocksdb_directory);

// Truncates every log after its last intact batch with a sequence number up to `last_sequence`, and
// syncs it: what a failed write left behind must not come back. Nobody may be writing.
Status CutLogs(rocksdb::Env& env, const std::filesystem::path& rocksdb_directory,
               std::uint64_t last_sequence);

// Calls visit(bytes) with every intact batch of all logs, in the order of writing; damaged ones are
// left out. Nobody may be writing.
Status VisitBatches(rocksdb::Env& env, const std::filesystem::path& directory,
                    const std::function<Status(const std::string& bytes)>& visit);

// The bytes of a file of this format up to its first damage. The list of files (MANIFEST-…) is one.
struct IntactPart {
  std::uint64_t bytes = 0;
  bool is_all = true;    // whether nothing follows
  bool is_torn = false;  // whether what follows is no intact record
};
Result<IntactPart> FindIntactPart(rocksdb::Env& env, const std::filesystem::path& file);

// Bytes of all logs.
Result<std::uint64_t> LogBytes(rocksdb::Env& env, const std::filesystem::path& rocksdb_directory);

}  // namespace codband::store
