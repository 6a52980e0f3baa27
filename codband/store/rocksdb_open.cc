#include "codband/store/rocksdb_open.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "codband/base/file.h"
#include "codband/store/list_of_files.h"
#include "codband/store/rocksdb_log.h"
#include "codband/store/rocksdb_messages.h"

namespace codband::store {
namespace {

namespace fs = std::filesystem;

// kUnavailable if the status says that a process has the database open.
std::optional<Status> HeldByAnother(const rocksdb::Status& status, const fs::path& path) {
  const std::string reason = status.ToString();
  const fs::path lock = path / "LOCK";
  if (!status.IsIOError() || reason.find(lock.string()) == std::string::npos) return std::nullopt;
  std::string holder;
  if (reason.find("lock hold by current process") != std::string::npos) {
    // The lock file must not be opened here: closing it again would release the lock.
    holder = "this process has it open already";
  } else if (reason.find("While lock file") != std::string::npos) {
    holder = "another process has it open";
    const int fd = ::open(lock.c_str(), O_RDONLY | O_CLOEXEC);
    struct flock probe {};
    probe.l_type = F_WRLCK;
    probe.l_whence = SEEK_SET;
    if (fd >= 0 && ::fcntl(fd, F_GETLK, &probe) == 0 && probe.l_type != F_UNLCK) {
      holder = fmt::format("process {} has it open", probe.l_pid);
    }
    if (fd >= 0) ::close(fd);
  } else {
    return std::nullopt;
  }
  return Status(StatusCode::kUnavailable, fmt::format("cannot open {}: {} (it holds the lock {})",
                                                      path.string(), holder, lock.string()));
}

Status OpenStatus(const rocksdb::Status& status, const fs::path& path) {
  if (auto held = HeldByAnother(status, path)) return *held;
  if (status.IsPathNotFound()) {
    return Status::Corruption(
        fmt::format("cannot open {}: a file is missing: {}", path.string(), status.ToString()));
  }
  return FromRocksDb(status, "open", path);
}

// Without CURRENT there is no database. Then only files that RocksDB leaves when its creation is
// interrupted may be there.
Status CheckNothingElseThere(rocksdb::Env& env, const fs::path& path) {
  std::string database_file, other_file;
  std::vector<std::string> names;
  const rocksdb::Status listed = env.GetChildren(path, &names);
  if (!listed.ok()) return FromRocksDb(listed, "list", path);
  for (const std::string& name : names) {
    if (name == "." || name == "..") continue;
    if (name == "LOCK" || name == "IDENTITY" || name == "LOG" || name == "LOG.old" ||
        name.starts_with("MANIFEST-000001") || name.ends_with(".dbtmp")) {
      continue;
    }
    const bool of_database = name.ends_with(".sst") || name.ends_with(".log") ||
                             name.starts_with("MANIFEST-") || name.starts_with("OPTIONS-");
    (of_database ? database_file : other_file) = name;
  }
  if (!database_file.empty()) {
    return Status::Corruption(fmt::format("cannot open {}: {} is there, but CURRENT is missing",
                                          path.string(), database_file));
  }
  if (!other_file.empty()) {
    return Status::InvalidArgument(
        fmt::format("cannot open {}: it holds {}, which is not a file of a database", path.string(),
                    other_file));
  }
  return {};
}

// Checks that the column families are ours; some may be missing if the creation was interrupted.
Status CheckFamilies(const fs::path& path, const RocksDbLayout& layout,
                     const std::vector<std::string>& existing) {
  for (const std::string& name : existing) {
    if (std::ranges::none_of(layout.families, [&](const auto& f) { return f.name == name; })) {
      return Status::InvalidArgument(
          fmt::format("cannot open {}: it has the column family '{}', so it is of another program "
                      "or of a newer version",
                      path.string(), name));
    }
  }
  if (existing.size() > 1) return {};
  // RocksDB creates "default" first, and we leave it empty.
  auto database = OpenRocksDb(path, layout, existing, true);
  if (!database.ok()) return database.status();
  const std::unique_ptr<rocksdb::Iterator> it(database.value().db->NewIterator({}));
  it->SeekToFirst();
  CODBAND_RETURN_IF_ERROR(FromRocksDb(it->status(), "read from", path));
  if (it->Valid()) {
    return Status::InvalidArgument(
        fmt::format("cannot open {}: it is a RocksDB database of another program", path.string()));
  }
  return {};
}

Result<RocksDbHandle> OpenExisting(const fs::path& path, const RocksDbLayout& layout,
                                   const RocksDbOptions& options) {
  std::vector<std::string> existing;
  const rocksdb::Status listed = rocksdb::DB::ListColumnFamilies(layout.database, path, &existing);
  if (!listed.ok()) return OpenStatus(listed, path);
  CODBAND_RETURN_IF_ERROR(CheckFamilies(path, layout, existing));
  if (!options.create && !options.read_only && existing.size() < layout.families.size()) {
    return Status::NotFound(
        fmt::format("cannot open {}: some tables are missing: it is of an older version, or its "
                    "making was cut off",
                    path.string()));
  }
  return OpenRocksDb(path, layout, existing, options.read_only);
}

// The list of files in use and its length: RocksDB adds to it whenever its files change.
std::string ListVersion(rocksdb::Env& env, const fs::path& path) {
  std::string name;
  std::uint64_t bytes = 0;
  rocksdb::ReadFileToString(&env, path / "CURRENT", &name).PermitUncheckedError();
  if (name.ends_with('\n')) name.pop_back();
  env.GetFileSize(path / name, &bytes).PermitUncheckedError();
  return fmt::format("{} {}", name, bytes);
}

// Opens for reading while another process may write: a file that it deletes meanwhile is missing,
// or its content is not seen at all. Then once more.
Result<RocksDbHandle> OpenStill(const fs::path& path, const RocksDbLayout& layout,
                                const RocksDbOptions& options) {
  constexpr int kTries = 20, kTriesAtDamage = 5;
  for (int i = 1;; ++i) {
    const std::string before = ListVersion(*layout.env, path);
    auto database = OpenExisting(path, layout, options);
    const bool is_odd = !database.ok() && (database.status().code() == StatusCode::kCorruption ||
                                           database.status().code() == StatusCode::kIoError);
    const bool still = ListVersion(*layout.env, path) == before;
    if (i == kTries || (still && (!is_odd || i >= kTriesAtDamage))) return database;
  }
}

// Whether there is a database in `path`.
Result<bool> IsThere(rocksdb::Env& env, const fs::path& path) {
  std::uint64_t bytes = 0;
  const rocksdb::Status status = env.GetFileSize(path / "CURRENT", &bytes);
  if (status.ok()) return true;
  const bool no_directory = status.ToString().find("Not a directory") != std::string::npos;
  if (status.IsPathNotFound() || status.IsNotFound() || no_directory) return false;
  return FromRocksDb(status, "open", path);
}

// Makes the directory and its parent, so that a power cut leaves them.
Status MakeDirectories(const RocksDbLayout& layout, const fs::path& path) {
  rocksdb::Env& env = *layout.env;
  const fs::path parent = path.parent_path();
  if (layout.system_files) {
    CODBAND_RETURN_IF_ERROR(EnsureDirectory(parent));
    CODBAND_RETURN_IF_ERROR(EnsureDirectory(path));
  }
  for (const fs::path& made : {parent, path}) {
    CODBAND_RETURN_IF_ERROR(FromRocksDb(env.CreateDirIfMissing(made), "create", made));
    const fs::path above = made.has_parent_path() ? made.parent_path() : fs::path(".");
    std::unique_ptr<rocksdb::Directory> directory;
    CODBAND_RETURN_IF_ERROR(FromRocksDb(env.NewDirectory(above, &directory), "open", above));
    CODBAND_RETURN_IF_ERROR(FromRocksDb(directory->Fsync(), "sync", above));
  }
  return {};
}

}  // namespace

Status CheckLock(rocksdb::Env& env, const fs::path& path) {
  rocksdb::FileLock* lock = nullptr;
  const rocksdb::Status status = env.LockFile(path / "LOCK", &lock);
  if (!status.ok()) return OpenStatus(status, path);
  return FromRocksDb(env.UnlockFile(lock), "unlock", path);
}

std::string KeyText(std::string_view key) {
  const auto printable = [](char c) { return c >= ' ' && c <= '~'; };
  if (std::ranges::all_of(key, printable)) return std::string(key);
  constexpr std::size_t kShown = 16;
  std::string text = "0x";
  for (const char c : key.substr(0, kShown)) {
    text += fmt::format("{:02x}", static_cast<std::uint8_t>(c));
  }
  return key.size() > kShown ? text + "…" : text;
}

std::string LostText(Table table, const Store::Lost& lost) {
  return fmt::format("table '{}' is damaged from '{}' to '{}': {}", TableName(table),
                     KeyText(lost.from), KeyText(lost.up_to), lost.reason);
}

Status FromRocksDb(const rocksdb::Status& status, std::string_view action, const fs::path& path) {
  if (status.ok()) return {};
  StatusCode code = StatusCode::kIoError;
  if (status.IsCorruption()) code = StatusCode::kCorruption;
  if (status.IsInvalidArgument()) code = StatusCode::kInvalidArgument;
  return {code, fmt::format("cannot {} {}: {}", action, path.string(), status.ToString())};
}

Result<RocksDbHandle> OpenRocksDb(const fs::path& path, const RocksDbLayout& layout,
                                  const std::vector<std::string>& existing, bool read_only) {
  rocksdb::DBOptions options = layout.database;
  RocksDbHandle database;
  database.listener = std::make_shared<ErrorListener>();
  options.listeners.push_back(database.listener);
  options.create_if_missing = !read_only;
  options.create_missing_column_families = !read_only;
  if (read_only) {
    options.max_open_files = -1;  // a running process may delete a file that is not open yet
  } else {
    options.info_log = MakeMessages(layout.system_files, path);
  }
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (const auto& family : layout.families) {
    if (!read_only || std::ranges::find(existing, family.name) != existing.end()) {
      families.push_back(family);
    }
  }
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status =
      read_only ? rocksdb::DB::OpenForReadOnly(options, path, families, &database.handles, &db)
                : rocksdb::DB::Open(options, path, families, &database.handles, &db);
  if (!status.ok()) return OpenStatus(status, path);
  database.db.reset(db);
  for (auto* handle : database.handles) {
    for (std::size_t i = 0; i < kTableCount; ++i) {
      if (handle->GetName() == TableName(static_cast<Table>(i))) database.tables[i] = handle;
    }
  }
  return database;
}

Result<RocksDbHandle> CheckAndOpenRocksDb(const fs::path& path, const RocksDbLayout& layout,
                                          const RocksDbOptions& options) {
  rocksdb::Env& env = *layout.env;
  const auto exists = IsThere(env, path);
  if (!exists.ok()) return exists.status();
  if (!exists.value()) {
    bool is_directory = false;
    if (env.IsDirectory(path, &is_directory).ok() && is_directory) {
      CODBAND_RETURN_IF_ERROR(CheckNothingElseThere(env, path));
    }
    if (!options.create || options.read_only) {
      return Status::NotFound(fmt::format("there is no data in {}", path.string()));
    }
    CODBAND_RETURN_IF_ERROR(MakeDirectories(layout, path));
    return OpenRocksDb(path, layout, {}, false);
  }
  std::string note;
  // The lock first: while another process has the database open its files change.
  if (!options.read_only) {
    CODBAND_RETURN_IF_ERROR(CheckLock(env, path));
    const auto mended = MendListOfFiles(env, path);
    if (!mended.ok()) return mended.status();
    note = mended.value();
  }
  CODBAND_RETURN_IF_ERROR(CheckLogs(env, path));
  auto database =
      options.read_only ? OpenStill(path, layout, options) : OpenExisting(path, layout, options);
  if (database.ok() && !note.empty()) {
    rocksdb::Warn(database.value().db->GetDBOptions().info_log, "%s", note.c_str());
  }
  return database;
}

}  // namespace codband::store
