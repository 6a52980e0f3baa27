#include "codband/store/rocksdb_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/utilities/checkpoint.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "codband/base/file.h"
#include "codband/store/bulk_files.h"
#include "codband/store/read_write_lock.h"
#include "codband/store/rocksdb_log.h"
#include "codband/store/rocksdb_open.h"
#include "codband/store/rocksdb_salvage.h"
#include "codband/store/rocksdb_tables.h"

namespace codband::store {
namespace {

namespace fs = std::filesystem;
using Entry = StoreBatch::Entry;

constexpr const char* kBulkDirectory = "bulk";

rocksdb::Slice ToSlice(std::string_view bytes) { return {bytes.data(), bytes.size()}; }
std::string_view ToView(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

class RocksDbStore final : public Store {
 public:
  RocksDbStore(fs::path path, RocksDbLayout layout, bool read_only, RocksDbHandle database)
      : path_(std::move(path)),
        layout_(std::move(layout)),
        read_only_(read_only),
        database_(std::move(database)),
        acknowledged_sequence_(database_.db->GetLatestSequenceNumber()) {}

  Status Write(const StoreBatch& batch, bool sync) override;
  Status WriteBulk(StoreBatch batch) override;
  Status Get(Table table, std::string_view key, std::string& value) const override;
  Status Scan(Table table, std::string_view from, std::string_view to,
              const Visit& visit) const override;
  Status ScanPastDamage(Table table, const Visit& visit, std::vector<Lost>& lost) const override;
  std::vector<std::string> Damage() const override;
  Status Backup(const fs::path& directory) override;
  Status Scrub(const Traces& traces) override;
  Status Verify() const override;
  StoreStats Stats() const override;

 private:
  rocksdb::Env& env() const { return *layout_.env; }
  rocksdb::ColumnFamilyHandle* Handle(Table table) const {
    return database_.tables.at(static_cast<std::size_t>(table));
  }
  rocksdb::Options OptionsOf(Table table) const {
    return {layout_.database, layout_.families.at(1 + static_cast<std::size_t>(table)).options};
  }
  void SpareDamagedTables();
  template <typename Operation>
  Status Change(const Operation& operation);
  void NoteAcknowledged(const rocksdb::WriteBatch& batch);
  bool Recover(std::uint64_t generation);
  bool HasRoom() const;
  bool Reopen();
  rocksdb::Status MakeTableFile(std::span<const Entry* const> entries, const fs::path& file) const;
  rocksdb::Status Ingest(std::span<const Entry* const> sorted);
  void FillBottomLevel(Table table);
  rocksdb::Status GetUnfiltered(Table table, std::string_view key, rocksdb::PinnableSlice& found,
                                const rocksdb::Status& status) const;
  Status CopyTo(const fs::path& directory);

  const fs::path path_;
  const RocksDbLayout layout_;
  const bool read_only_;

  ReadWriteLock lock_;  // for writing: to close and reopen the database, which changes what follows
  RocksDbHandle database_;
  std::uint64_t generation_ = 0;  // counts the recoveries
  Status trouble_;                // why it is closed, or read-only
  // RocksDB's number of the last change in a batch that was acknowledged. Its own count (7.8)
  // includes a batch whose sync failed.
  std::atomic<std::uint64_t> acknowledged_sequence_;

  std::mutex bulk_mutex_;  // a backup contains a bulk write completely or not at all
  std::atomic<std::uint64_t> next_bulk_ = 0;
};

// Runs a write. If RocksDB has stopped because of a disk error, recovers where that is possible and
// retries once.
template <typename Operation>
Status RocksDbStore::Change(const Operation& operation) {
  if (read_only_) {
    return Status::InvalidArgument(fmt::format("{} is open for reading only", path_.string()));
  }
  std::uint64_t generation = 0;
  const auto attempt = [&]() -> Status {
    const ReadWriteLock::ReadGuard open(lock_);
    generation = generation_;
    if (!trouble_.ok()) return trouble_;
    // After a background error RocksDB may accept writes for a while, without flushing.
    const bool failed = database_.listener->failed();
    SpareDamagedTables();
    return FromRocksDb(failed ? database_.listener->status() : operation(), "write to", path_);
  };
  Status status = attempt();
  if (status.code() == StatusCode::kIoError && Recover(generation)) status = attempt();
  return status;
}

// Gets RocksDB going again after a disk error; returns whether a retry makes sense.
bool RocksDbStore::Recover(std::uint64_t generation) {
  // The scan whose visitor this is needs the database as it is.
  if (lock_.IsInCallback()) return false;
  const ReadWriteLock::WriteGuard alone(lock_);
  if (generation_ != generation) return true;
  if (trouble_.ok()) {
    if (!database_.listener->failed()) return false;  // RocksDB works, and the operation failed
    // Truncate now, not when there is room again: the process may be stopped before that.
    if (database_.listener->log_failed() && !CutLogs(env(), path_, acknowledged_sequence_).ok()) {
      return false;
    }
  }
  // Not DB::Resume: it appends what is left of the failed batch to the log, and it leaves a flag
  // behind (7.8) by which the next bulk write runs into an assertion.
  if (!HasRoom() || !Reopen()) return false;
  ++generation_;
  return true;
}

// Whether there is room to flush what is only in the write-ahead logs and in memory.
bool RocksDbStore::HasRoom() const {
  constexpr std::uint64_t kMarginBytes = 1 << 20;
  std::uint64_t free_bytes = 0;
  const auto log_bytes = LogBytes(env(), path_);
  return log_bytes.ok() && env().GetFreeSpace(path_, &free_bytes).ok() &&
         free_bytes > log_bytes.value() + kMarginBytes;
}

// Closes and opens the database; read-only if it cannot be opened for writing. Returns whether it
// can be written to.
bool RocksDbStore::Reopen() {
  database_.Close();
  // Truncate again: closing sets the length of the log to what RocksDB believes it has written.
  trouble_ = CutLogs(env(), path_, acknowledged_sequence_);
  if (!trouble_.ok()) return false;
  std::vector<std::string> families;
  for (const auto& family : layout_.families) families.push_back(family.name);
  auto database = OpenRocksDb(path_, layout_, families, false);
  if (!database.ok()) {
    trouble_ = database.status();
    database = OpenRocksDb(path_, layout_, families, true);
  }
  if (database.ok()) database_ = std::move(database).value();
  if (trouble_.ok()) acknowledged_sequence_ = database_.db->GetLatestSequenceNumber();
  return trouble_.ok();
}

Status RocksDbStore::Write(const StoreBatch& batch, bool sync) {
  if (batch.empty()) return {};
  return Change([&] {
    std::size_t bytes = 0;
    for (const Entry& entry : batch.entries()) bytes += entry.key.size() + entry.value.size() + 16;
    rocksdb::WriteBatch changes(bytes);
    rocksdb::Status status;
    for (const Entry& entry : batch.entries()) {
      switch (entry.kind) {
        case StoreBatch::Kind::kPut:
          status = changes.Put(Handle(entry.table), entry.key, entry.value);
          break;
        case StoreBatch::Kind::kDelete:
          status = changes.Delete(Handle(entry.table), entry.key);
          break;
        case StoreBatch::Kind::kDeleteRange:
          // RocksDB takes an end before the start for an error; here it is an empty range.
          if (entry.key < entry.value) {
            status = changes.DeleteRange(Handle(entry.table), entry.key, entry.value);
          }
          break;
      }
      if (!status.ok()) return status;
    }
    rocksdb::WriteOptions options;
    options.sync = sync;
    status = database_.db->Write(options, &changes);
    if (status.ok()) NoteAcknowledged(changes);
    return status;
  });
}

void RocksDbStore::NoteAcknowledged(const rocksdb::WriteBatch& batch) {
  const std::uint64_t last = FirstSequence(batch.Data()) + batch.Count() - 1;
  std::uint64_t before = acknowledged_sequence_;
  while (before < last && !acknowledged_sequence_.compare_exchange_weak(before, last)) continue;
}

Status RocksDbStore::WriteBulk(StoreBatch batch) {
  std::vector<const Entry*> sorted;
  sorted.reserve(batch.entries().size());
  for (const Entry& entry : batch.entries()) {
    if (entry.kind == StoreBatch::Kind::kDeleteRange) {
      return Status::InvalidArgument("[Store::WriteBulk] kDeleteRange is for Write alone");
    }
    sorted.push_back(&entry);
  }
  if (sorted.empty()) return {};
  const auto place = [](const Entry* entry) { return std::tie(entry->table, entry->key); };
  std::ranges::stable_sort(sorted, {}, place);
  // The last of equal keys stays: the sort is stable.
  const auto kept =
      std::unique(sorted.rbegin(), sorted.rend(),
                  [&](const Entry* a, const Entry* b) { return place(a) == place(b); });
  sorted.erase(sorted.begin(), kept.base());
  const Status status = Change([&] { return Ingest(sorted); });
  // To find a place for its files RocksDB reads those that are there. A plain write needs none of
  // them.
  return status.code() == StatusCode::kCorruption ? Write(batch, true) : status;
}

rocksdb::Status RocksDbStore::MakeTableFile(std::span<const Entry* const> entries,
                                            const fs::path& file) const {
  const Table table = entries.front()->table;
  rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), OptionsOf(table), Handle(table));
  rocksdb::Status status = writer.Open(file);
  for (const Entry* entry : entries) {
    if (!status.ok()) return status;
    status = entry->kind == StoreBatch::Kind::kPut ? writer.Put(entry->key, entry->value)
                                                   : writer.Delete(entry->key);
  }
  return status.ok() ? writer.Finish() : status;
}

// Compacts a table with files, but none at the bottom level, as after a repair. To find a place for
// a file, RocksDB 7.8 takes the levels of the newest version and looks into the one before it: if a
// compaction has just filled the bottom level for the first time, an assertion fails there. A
// failure changes nothing.
void RocksDbStore::FillBottomLevel(Table table) {
  rocksdb::ColumnFamilyMetaData files;
  database_.db->GetColumnFamilyMetaData(Handle(table), &files);
  if (files.file_count == 0 || !files.levels.back().files.empty()) return;
  if (database_.db->GetOptions(Handle(table)).disable_auto_compactions) return;
  database_.db->CompactRange({}, Handle(table), nullptr, nullptr).PermitUncheckedError();
}

rocksdb::Status RocksDbStore::Ingest(std::span<const Entry* const> sorted) {
  BulkFiles files(env());
  const fs::path directory = path_ / kBulkDirectory;
  const rocksdb::Status made = env().CreateDirIfMissing(directory);
  if (!made.ok()) return made;
  const std::uint64_t number = next_bulk_++;
  std::vector<rocksdb::IngestExternalFileArg> arguments;
  while (!sorted.empty()) {
    const Table table = sorted.front()->table;
    const auto end =
        std::ranges::find_if(sorted, [&](const Entry* e) { return e->table != table; });
    const auto count = static_cast<std::size_t>(end - sorted.begin());
    const fs::path file = directory / fmt::format("{}-{}.sst", number, TableName(table));
    files.Add(file);
    const rocksdb::Status status = MakeTableFile(sorted.first(count), file);
    if (!status.ok()) return status;
    sorted = sorted.subspan(count);

    FillBottomLevel(table);
    auto& argument = arguments.emplace_back();
    argument.column_family = Handle(table);
    argument.external_files = {file};
    argument.options.move_files = true;
    argument.options.failed_move_fall_back_to_copy = true;
    // In the file, not in RocksDB's list of files alone: from the files the list can be made anew.
    argument.options.write_global_seqno = true;
  }
  const std::lock_guard no_backup(bulk_mutex_);
  // An ingested file survives a crash; the writes before it must survive too, so sync the
  // write-ahead log first. Not by SyncWAL: if the log fails meanwhile, that runs into an assertion.
  rocksdb::WriteBatch nothing;
  rocksdb::WriteOptions sync;
  sync.sync = true;
  const rocksdb::Status synced = database_.db->Write(sync, &nothing);
  return synced.ok() ? database_.db->IngestExternalFiles(arguments) : synced;
}

Status RocksDbStore::Get(Table table, std::string_view key, std::string& value) const {
  const ReadWriteLock::ReadGuard open(lock_);
  if (!database_.db) return trouble_;
  rocksdb::Status status = rocksdb::Status::NotFound();
  rocksdb::PinnableSlice found;
  if (Handle(table) != nullptr) {
    status = database_.db->Get(rocksdb::ReadOptions(), Handle(table), ToSlice(key), &found);
    if (IsDamage(status) && !status.IsNotFound()) status = GetUnfiltered(table, key, found, status);
  }
  if (status.IsNotFound()) {
    return Status::NotFound(fmt::format("no such key in {}", TableName(table)));
  }
  if (status.ok()) value.assign(found.data(), found.size());
  if (!IsDamage(status)) return FromRocksDb(status, "read from", path_);
  const std::string damage = fmt::format("record '{}' of table '{}' is damaged: {}", KeyText(key),
                                         TableName(table), status.ToString());
  database_.listener->NoteDamage(damage);
  return Status::Corruption(damage);
}

// A damaged filter hides nothing: an iterator does without. `status` is what Get said.
rocksdb::Status RocksDbStore::GetUnfiltered(Table table, std::string_view key,
                                            rocksdb::PinnableSlice& found,
                                            const rocksdb::Status& status) const {
  const std::unique_ptr<rocksdb::Iterator> it(
      database_.db->NewIterator(rocksdb::ReadOptions(), Handle(table)));
  it->Seek(ToSlice(key));
  if (!it->status().ok()) return status;
  database_.listener->NoteDamage(
      fmt::format("table '{}': {}", TableName(table), status.ToString()));
  if (!it->Valid() || it->key() != ToSlice(key)) return rocksdb::Status::NotFound();
  found.Reset();
  found.PinSelf(it->value());
  return {};
}

// A table with a damaged file is no longer compacted, so that the file stays as it is for a repair,
// and RocksDB does not try in vain.
void RocksDbStore::SpareDamagedTables() {
  if (!database_.listener->has_damaged_tables()) return;
  for (const std::string& name : database_.listener->TakeDamagedTables()) {
    const auto handle = std::ranges::find_if(
        database_.handles, [&](const auto* family) { return family->GetName() == name; });
    if (handle == database_.handles.end()) continue;
    static_cast<void>(database_.db->SetOptions(*handle, {{"disable_auto_compactions", "true"}}));
  }
}

Status RocksDbStore::ScanPastDamage(Table table, const Visit& visit,
                                    std::vector<Lost>& lost) const {
  const ReadWriteLock::CallbackGuard open(lock_);
  if (!database_.db) return trouble_;
  if (Handle(table) == nullptr) return {};
  const std::size_t before = lost.size();
  Status status =
      store::ScanPastDamage(*database_.db, *Handle(table), OptionsOf(table), visit, lost);
  for (std::size_t i = before; i < lost.size(); ++i) {
    database_.listener->NoteDamage(LostText(table, lost[i]));
  }
  return status;
}

std::vector<std::string> RocksDbStore::Damage() const {
  const ReadWriteLock::ReadGuard open(lock_);
  return database_.listener ? database_.listener->damage() : std::vector<std::string>();
}

Status RocksDbStore::Scan(Table table, std::string_view from, std::string_view to,
                          const Visit& visit) const {
  const ReadWriteLock::CallbackGuard open(lock_);
  if (!database_.db) return trouble_;
  if (Handle(table) == nullptr || (!to.empty() && to <= from)) return {};
  rocksdb::ReadOptions options;
  const rocksdb::Slice bound = ToSlice(to);
  if (!to.empty()) options.iterate_upper_bound = &bound;
  const std::unique_ptr<rocksdb::Iterator> it(database_.db->NewIterator(options, Handle(table)));
  for (it->Seek(ToSlice(from)); it->Valid(); it->Next()) {
    if (!visit(ToView(it->key()), ToView(it->value()))) return {};
  }
  return FromRocksDb(it->status(), "read from", path_);
}

Status RocksDbStore::Backup(const fs::path& directory) {
  const auto taken = [](const fs::path& path) {
    return Status::InvalidArgument(fmt::format("cannot back up to {}: it exists", path.string()));
  };
  std::error_code error;
  if (fs::exists(fs::symlink_status(directory, error))) return taken(directory);
  // Under another name until it is complete: a partial copy must not be taken for a backup.
  const fs::path target = directory.has_filename() ? directory : directory.parent_path();
  fs::path partial = target;
  partial += ".partial";
  const fs::path parent = fs::absolute(target, error).parent_path();
  fs::create_directories(parent, error);
  if (!error && !fs::create_directory(partial, error) && !error) return taken(partial);
  if (error) {
    return Status::IoError(
        fmt::format("cannot create directory {}: {}", partial.string(), error.message()));
  }
  Leftovers leftovers(partial);
  // Twice: nobody may look into it while it grows, and its files are not for others either.
  if (const auto empty = MakePrivate(partial); !empty.ok()) return empty.status();
  CODBAND_RETURN_IF_ERROR(CopyTo(partial));
  if (const auto full = MakePrivate(partial); !full.ok()) return full.status();
  CODBAND_RETURN_IF_ERROR(SyncDirectory(partial));
  if (::rename(partial.c_str(), target.c_str()) != 0) {
    return Status::IoError(fmt::format("cannot rename {} to {}: {}", partial.string(),
                                       target.string(), std::strerror(errno)));
  }
  leftovers.Keep();
  return SyncDirectory(parent);
}

Status RocksDbStore::CopyTo(const fs::path& directory) {
  const ReadWriteLock::ReadGuard open(lock_);
  if (!database_.db) return trouble_;
  rocksdb::Checkpoint* checkpoint = nullptr;
  rocksdb::Status status = rocksdb::Checkpoint::Create(database_.db.get(), &checkpoint);
  const std::unique_ptr<rocksdb::Checkpoint> owned(checkpoint);
  if (status.ok()) {
    const std::lock_guard no_bulk(bulk_mutex_);
    // No flush first: the copy contains the write-ahead logs.
    constexpr std::uint64_t kNeverFlush = std::numeric_limits<std::uint64_t>::max();
    status = checkpoint->CreateCheckpoint(directory / path_.filename(), kNeverFlush);
  }
  return FromRocksDb(status, fmt::format("back up {} to", path_.string()), directory);
}

Status RocksDbStore::Scrub(const Traces& traces) {
  return Change([&] {
    // The write-ahead log is deleted once all tables are in files.
    rocksdb::Status status = database_.db->Flush(rocksdb::FlushOptions(), database_.handles);
    rocksdb::CompactRangeOptions options;
    options.exclusive_manual_compaction = false;
    options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForceOptimized;
    for (const auto& [table, key] : traces.keys) {
      if (!status.ok()) return status;
      const rocksdb::Slice slice = ToSlice(key);
      status = database_.db->CompactRange(options, Handle(table), &slice, &slice);
    }
    for (const Table table : traces.tables) {
      if (!status.ok()) return status;
      status = database_.db->CompactRange(options, Handle(table), nullptr, nullptr);
    }
    return status;
  });
}

Status RocksDbStore::Verify() const {
  const ReadWriteLock::ReadGuard open(lock_);
  if (!database_.db) return trouble_;
  CODBAND_RETURN_IF_ERROR(CheckLogs(env(), path_));
  rocksdb::ReadOptions options;
  options.verify_checksums = true;
  options.fill_cache = false;
  CODBAND_RETURN_IF_ERROR(FromRocksDb(database_.db->VerifyChecksum(options), "verify", path_));
  for (auto* table : database_.tables) {
    if (table == nullptr) continue;
    const std::unique_ptr<rocksdb::Iterator> it(database_.db->NewIterator(options, table));
    for (it->SeekToFirst(); it->Valid(); it->Next()) continue;
    CODBAND_RETURN_IF_ERROR(FromRocksDb(it->status(), "verify", path_));
  }
  return {};
}

StoreStats RocksDbStore::Stats() const {
  const ReadWriteLock::ReadGuard open(lock_);
  StoreStats stats;
  std::error_code error;
  for (fs::recursive_directory_iterator it(path_, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code gone;
    const auto size = it->is_regular_file(gone) ? it->file_size(gone) : 0;
    if (!gone) stats.disk_bytes += size;
  }
  stats.memory_bytes = layout_.cache->GetUsage();
  return stats;
}

}  // namespace

bool IsRocksDbStoreInUse(const fs::path& directory) {
  // The lock that RocksDB takes. Asking for it needs no right to write, and creates no file.
  const int fd = ::open((directory / "rocksdb" / "LOCK").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  const bool in_use = ::fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  ::close(fd);
  return in_use;
}

Result<std::unique_ptr<Store>> OpenRocksDbStore(const fs::path& directory,
                                                const RocksDbOptions& options) {
  const fs::path path = directory / "rocksdb";
  RocksDbLayout layout = MakeRocksDbLayout(options);
  auto database = CheckAndOpenRocksDb(path, layout, options);
  if (!database.ok()) return database.status();
  if (!options.read_only) DeleteBulkDirectory(*layout.env, path / kBulkDirectory);
  return MakeRocksDbStore(path, std::move(layout), options.read_only, std::move(database).value());
}

std::unique_ptr<Store> MakeRocksDbStore(const fs::path& path, RocksDbLayout layout, bool read_only,
                                        RocksDbHandle database) {
  return std::make_unique<RocksDbStore>(path, std::move(layout), read_only, std::move(database));
}

}  // namespace codband::store
