#include "codband/store/list_of_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "codband/store/rocksdb_log.h"
#include "codband/store/rocksdb_open.h"

namespace codband::store {
namespace {

namespace fs = std::filesystem;

// Replaces the list by the first bytes of `from`, so that a power cut leaves the old or the new
// one.
Status ReplaceList(rocksdb::Env& env, const fs::path& from, std::uint64_t bytes,
                   const fs::path& list) {
  std::string content;
  CODBAND_RETURN_IF_ERROR(
      FromRocksDb(rocksdb::ReadFileToString(&env, from, &content), "read", from));
  content.resize(std::min<std::uint64_t>(content.size(), bytes));
  const fs::path fresh = list.parent_path() / "000000.dbtmp";  // RocksDB deletes it if it stays
  CODBAND_RETURN_IF_ERROR(
      FromRocksDb(rocksdb::WriteStringToFile(&env, content, fresh, true), "write", fresh));
  CODBAND_RETURN_IF_ERROR(FromRocksDb(env.RenameFile(fresh, list), "rename", fresh));
  std::unique_ptr<rocksdb::Directory> directory;
  CODBAND_RETURN_IF_ERROR(
      FromRocksDb(env.NewDirectory(list.parent_path(), &directory), "open", list.parent_path()));
  return FromRocksDb(directory->Fsync(), "sync", list.parent_path());
}

// The list that is in use; empty if CURRENT does not say.
fs::path ListInUse(rocksdb::Env& env, const fs::path& directory) {
  std::string name;
  if (!rocksdb::ReadFileToString(&env, directory / "CURRENT", &name).ok()) return {};
  if (name.empty() || name.back() != '\n') return {};
  name.pop_back();
  return IsListOfFiles(name) ? directory / name : fs::path();
}

}  // namespace

bool IsListOfFiles(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with("MANIFEST-") && !name.ends_with(kTwinSuffix);
}

Result<std::string> MendListOfFiles(rocksdb::Env& env, const fs::path& rocksdb_directory) {
  const fs::path list = ListInUse(env, rocksdb_directory);
  const auto own = list.empty() ? Result<IntactPart>(IntactPart{}) : FindIntactPart(env, list);
  const bool missing = !own.ok() && own.status().code() == StatusCode::kNotFound;
  if (!own.ok() && !missing) return own.status();
  if (own.ok() && own.value().is_all) return std::string();

  const fs::path twin = list.string() + kTwinSuffix;
  const auto other = FindIntactPart(env, twin);
  const std::uint64_t bytes = own.ok() ? own.value().bytes : 0;
  const bool use_twin = other.ok() && other.value().bytes > bytes;
  const bool cut = own.ok() && bytes > 0 && (other.ok() || own.value().is_torn);
  if (!use_twin && !cut) return std::string();
  const fs::path& from = use_twin ? twin : list;
  const std::uint64_t kept = use_twin ? other.value().bytes : bytes;
  CODBAND_RETURN_IF_ERROR(ReplaceList(env, from, kept, list));
  return fmt::format("the list of files {} is damaged at byte {}: {}", list.string(), bytes,
                     use_twin ? fmt::format("its copy is used, {} bytes", kept)
                              : "what follows is an interrupted write, and cut off");
}

}  // namespace codband::store
