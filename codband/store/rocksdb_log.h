#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>

#include "codband/base/status.h"

namespace codband::store {

// Looks at RocksDB's write-ahead logs from outside, because RocksDB takes damage in the middle of a
// log for its end (kPointInTimeRecovery), or a torn end for damage (kTolerateCorruptedTailRecords).
//
// The format: blocks of 32 KiB; in them records of a masked CRC-32C (4 bytes, of what follows the
// length), a length (2), a type (1: whole, 2 to 4: first, middle and last piece) and the bytes. A
// batch is one record or several pieces, and begins with its sequence number (8 bytes).

// kCorruption if bytes are damaged before a batch that is whole: then something is lost that had
// been acknowledged. Damage that only bytes of the same batch or none follow is a write that was
// cut off. May be called while another process writes. Changes nothing.
Status CheckLogs(const std::filesystem::path& rocksdb_directory);

// Cuts every log behind its last whole batch with a sequence number up to `last_sequence`, durably:
// what a failed write left behind must not come back. Nobody may be writing.
Status CutLogs(const std::filesystem::path& rocksdb_directory, std::uint64_t last_sequence);

// Bytes of all logs.
std::uint64_t LogBytes(const std::filesystem::path& rocksdb_directory);

}  // namespace codband::store
