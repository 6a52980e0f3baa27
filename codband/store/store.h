#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codband/base/status.h"

namespace codband::store {

// The tables of a data directory. Keys are bytes and ordered bytewise. Numbers are part of the
// format: append, never renumber.
enum class Table : std::uint8_t {
  kMeta = 0,            // what the directory is, who was forgotten lately
  kLog = 1,             // what is to be learned, in order
  kUsers = 2,           // what the policy knows of each user, as of the last checkpoint
  kPending = 3,         // decisions that wait for their reward, by event id
  kDeadlines = 4,       // when their wait is over, by time
  kItems = 5,           // the catalogue
  kPeople = 6,          // name and history of each user, as of the last checkpoint
  kCheckpoint = 7,      // what all users share, as of the last checkpoint
  kCheckpointCopy = 8,  // the same once more, in files of its own
  kImported = 9,        // events of the past that were learned, for good
};
inline constexpr std::size_t kTableCount = 10;

// An atomic batch of changes. Later entries win over earlier ones.
class StoreBatch {
 public:
  enum class Kind : std::uint8_t { kPut, kDelete, kDeleteRange };
  struct Entry {
    Kind kind;
    Table table;
    std::string key;
    std::string value;  // kDeleteRange: the end, exclusive
  };

  void Put(Table table, std::string key, std::string value) {
    entries_.push_back({Kind::kPut, table, std::move(key), std::move(value)});
  }
  void Delete(Table table, std::string key) {
    entries_.push_back({Kind::kDelete, table, std::move(key), {}});
  }
  // All keys in [from, to).
  void DeleteRange(Table table, std::string from, std::string to) {
    entries_.push_back({Kind::kDeleteRange, table, std::move(from), std::move(to)});
  }

  const std::vector<Entry>& entries() const { return entries_; }
  bool empty() const { return entries_.empty(); }
  void Clear() { entries_.clear(); }

 private:
  std::vector<Entry> entries_;
};

struct StoreStats {
  std::uint64_t disk_bytes = 0;
  std::uint64_t memory_bytes = 0;  // write buffers and caches
};

// Durable, ordered tables of key and value in one directory, which one process at a time may have
// open. All functions may be called from any thread. After an error the tables are as they were
// before the call.
class Store {
 public:
  virtual ~Store() = default;

  // Applies the batch atomically. On return it survives a loss of power (`sync`: the write-ahead
  // log has been fsynced), or a crash of this process (not `sync`). kIoError names the path and the
  // reason, such as a full disk; reads go on, and once there is room the next write succeeds. A
  // batch that failed does not appear later.
  virtual Status Write(const StoreBatch& batch, bool sync) = 0;

  // The same for what every copy of a replicated store does for itself: deleting what its own
  // checkpoint contains, or the mark of what it has done. Replicated, it would delete what another
  // copy still needs.
  virtual Status Tidy(const StoreBatch& batch, bool sync) { return Write(batch, sync); }

  // Like Write, for many megabytes, without blocking other writers meanwhile. Durable on return,
  // with all that was written before. Only for tables that Write never touches, and without
  // kDeleteRange. The store sorts the batch.
  virtual Status WriteBulk(StoreBatch batch) = 0;

  // kNotFound if there is none.
  virtual Status Get(Table table, std::string_view key, std::string& value) const = 0;

  // Calls visit(key, value) for the keys in [from, to) of a snapshot, in order, until visit returns
  // false. An empty `to` means the end of the table. Tombstones in the range are walked over, those
  // before `from` cost nothing. The visitor may call the store; a write that fails there is not
  // retried.
  using Visit = std::function<bool(std::string_view key, std::string_view value)>;
  virtual Status Scan(Table table, std::string_view from, std::string_view to,
                      const Visit& visit) const = 0;

  // Where bytes on disk are not what was written: the records from one key up to another cannot be
  // read, as far as they were not found elsewhere.
  struct Lost {
    std::string from;
    std::string up_to;                   // inclusive
    std::vector<std::string> keys = {};  // those of them that are known
    std::string reason;
  };
  // Visits the whole table in no particular order, past what is damaged, which is added to `lost`.
  virtual Status ScanPastDamage(Table table, const Visit& visit, std::vector<Lost>&) const {
    return Scan(table, {}, {}, visit);
  }
  // What was found to be damaged since the start: which table, which record or file. Nothing else
  // is affected: other records are read, writes and the compaction of other tables go on.
  virtual std::vector<std::string> Damage() const { return {}; }

  // Copies a snapshot into `directory`, which must not exist yet, while others write (bulk writes
  // wait). The copy can be opened like the original. Files are hard-linked where the file system
  // allows it, and copied otherwise. Until it is complete its name ends in ".partial". Group and
  // others get no rights to it.
  virtual Status Backup(const std::filesystem::path& directory) = 0;

  // Rewrites files until none of them holds anything of records that were deleted or replaced
  // before the call: of these keys, and of all records of these tables. The write-ahead log starts
  // anew. Others read and write meanwhile; the cost is that of the files that hold such keys.
  struct Traces {
    std::vector<std::pair<Table, std::string>> keys = {};
    std::vector<Table> tables = {};
  };
  virtual Status Scrub(const Traces& traces) = 0;

  // Reads everything and checks it against its checksums.
  virtual Status Verify() const = 0;

  virtual StoreStats Stats() const = 0;
};

}  // namespace codband::store
