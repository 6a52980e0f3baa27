#include "codband/store/rocksdb_repair.h"

#include <fmt/format.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "codband/base/file.h"
#include "codband/store/list_of_files.h"
#include "codband/store/rocksdb_log.h"
#include "codband/store/rocksdb_open.h"
#include "codband/store/rocksdb_tables.h"
#include "codband/store/table_file.h"

namespace codband::store {
namespace {

namespace fs = std::filesystem;

// Links a table file, or copies and mends it where RocksDB could not open it.
Status CopyTableFile(const fs::path& from, const fs::path& to, std::vector<std::string>& notes) {
  rocksdb::FileSystem& files = *rocksdb::FileSystem::Default();
  const rocksdb::IOStatus checked = CheckTableFile(files, from.string());
  std::error_code error = std::make_error_code(std::errc::not_supported);
  if (checked.ok()) fs::create_hard_link(from, to, error);
  if (error) fs::copy_file(from, to, error);
  if (error) {
    return Status::IoError(
        fmt::format("cannot copy {} to {}: {}", from.string(), to.string(), error.message()));
  }
  if (checked.ok()) return {};
  notes.push_back(checked.ToString());
  return MendTableFile(files, to);
}

Status CopyForRepair(const fs::path& from, const fs::path& to, std::vector<std::string>& notes) {
  std::error_code error;
  fs::create_directories(to, error);
  for (fs::directory_iterator file(from, error), end; !error && file != end;
       file.increment(error)) {
    const std::string name = file->path().filename().string();
    if (!file->is_regular_file() || name == "LOCK" || name.starts_with("LOG")) continue;
    if (name.ends_with(".sst")) {
      CODBAND_RETURN_IF_ERROR(CopyTableFile(file->path(), to / name, notes));
    } else {
      fs::copy_file(file->path(), to / name, error);
    }
    if (error) break;
  }
  if (!error) return {};
  return Status::IoError(
      fmt::format("cannot copy {} to {}: {}", from.string(), to.string(), error.message()));
}

// The changes of a batch, for the tables as this program numbers them.
class Replayer final : public rocksdb::WriteBatch::Handler {
 public:
  explicit Replayer(RocksDbHandle& database) : database_(database) {}

  rocksdb::Status PutCF(std::uint32_t family, const rocksdb::Slice& key,
                        const rocksdb::Slice& value) override {
    auto* table = Table(family);
    return table == nullptr ? rocksdb::Status() : database_.db->Put({}, table, key, value);
  }
  rocksdb::Status DeleteCF(std::uint32_t family, const rocksdb::Slice& key) override {
    auto* table = Table(family);
    return table == nullptr ? rocksdb::Status() : database_.db->Delete({}, table, key);
  }
  rocksdb::Status DeleteRangeCF(std::uint32_t family, const rocksdb::Slice& from,
                                const rocksdb::Slice& to) override {
    auto* table = Table(family);
    return table == nullptr ? rocksdb::Status() : database_.db->DeleteRange({}, table, from, to);
  }
  void LogData(const rocksdb::Slice&) override {}

 private:
  // "default" is 0, the tables follow in their order.
  rocksdb::ColumnFamilyHandle* Table(std::uint32_t family) {
    return family >= 1 && family <= kTableCount ? database_.tables.at(family - 1) : nullptr;
  }

  RocksDbHandle& database_;
};

// Makes the list of files anew from the table files, and replays the write-ahead logs: RocksDB's
// own repair knows no table that has no file yet.
Result<RocksDbHandle> MakeListAnew(const fs::path& path, const RocksDbLayout& layout) {
  const fs::path logs = path.parent_path() / "logs";
  std::error_code error;
  fs::create_directories(logs, error);
  std::vector<fs::path> moved;
  for (fs::directory_iterator file(path, error), end; !error && file != end;
       file.increment(error)) {
    if (file->path().extension() == ".log") moved.push_back(file->path());
  }
  for (const fs::path& log : moved) fs::rename(log, logs / log.filename(), error);
  rocksdb::DBOptions options = layout.database;
  options.create_if_missing = true;
  const rocksdb::Status repaired = rocksdb::RepairDB(path, options, layout.families);
  if (!repaired.ok()) return FromRocksDb(repaired, "repair", path);
  auto database = OpenRocksDb(path, layout, {}, false);
  if (!database.ok()) return database;
  CODBAND_RETURN_IF_ERROR(VisitBatches(*layout.env, logs, [&](const std::string& bytes) {
    Replayer replayer(database.value());
    const rocksdb::WriteBatch batch(bytes);
    return FromRocksDb(batch.Iterate(&replayer), "replay", path);
  }));
  const rocksdb::Status flushed =
      database.value().db->Flush(rocksdb::FlushOptions(), database.value().handles);
  if (!flushed.ok()) return FromRocksDb(flushed, "write to", path);
  return database;
}

// The name of the newest list of files; empty if there is none.
std::string NewestList(const fs::path& path) {
  std::string newest;
  std::error_code error;
  for (fs::directory_iterator file(path, error), end; !error && file != end;
       file.increment(error)) {
    const std::string name = file->path().filename().string();
    if (IsListOfFiles(name)) newest = std::max(newest, name);
  }
  return newest;
}

// Sees to it that CURRENT names the newest list of files.
Status MendCurrent(const fs::path& path, std::vector<std::string>& notes) {
  const std::string expected = NewestList(path) + "\n";
  const auto current = ReadFile(path / "CURRENT");
  if (expected.size() == 1 || (current.ok() && current.value() == expected)) return {};
  notes.push_back("the file CURRENT is damaged, and made anew");
  return WriteFileDurably(path / "CURRENT", expected);
}

}  // namespace

Result<std::unique_ptr<Store>> OpenDamagedStore(const fs::path& directory, const fs::path& work,
                                                std::vector<std::string>& notes,
                                                bool& list_made_anew) {
  const fs::path original = directory / "rocksdb";
  const fs::path path = work / "rocksdb";
  RocksDbLayout layout = MakeRocksDbLayout({});
  if (!fs::is_directory(original)) {
    return Status::NotFound(fmt::format("there is no data in {}", original.string()));
  }
  CODBAND_RETURN_IF_ERROR(CheckLock(*layout.env, original));
  CODBAND_RETURN_IF_ERROR(CopyForRepair(original, path, notes));
  CODBAND_RETURN_IF_ERROR(MendCurrent(path, notes));
  const auto mended = MendListOfFiles(*layout.env, path);
  if (!mended.ok()) return mended.status();
  if (!mended.value().empty()) notes.push_back(mended.value());
  const Status logs = CheckLogs(*layout.env, path);
  if (logs.code() == StatusCode::kCorruption) notes.push_back(logs.message());
  if (!logs.ok() && logs.code() != StatusCode::kCorruption) return logs;

  layout.database.wal_recovery_mode = rocksdb::WALRecoveryMode::kSkipAnyCorruptedRecords;
  layout.database.paranoid_checks = false;
  for (auto& family : layout.families) family.options.disable_auto_compactions = true;
  auto database = OpenRocksDb(path, layout, {}, false);
  list_made_anew = !database.ok();
  if (!database.ok()) {
    notes.push_back(
        fmt::format("the list of files is damaged, and made anew: {}; some records may "
                    "be older than they were: if there is a backup, rather restore it",
                    database.status().message()));
    database = MakeListAnew(path, layout);
  }
  if (!database.ok()) return database.status();
  return MakeRocksDbStore(path, std::move(layout), false, std::move(database).value());
}

}  // namespace codband::store
