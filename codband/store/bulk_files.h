#pragma once

#include <rocksdb/env.h>

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace codband::store {

// Removes the directory it was given when it goes out of scope.
class Leftovers {
 public:
  explicit Leftovers(std::filesystem::path path) : path_(std::move(path)) {}
  ~Leftovers() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  Leftovers(const Leftovers&) = delete;
  Leftovers& operator=(const Leftovers&) = delete;

  void Keep() { path_.clear(); }

 private:
  std::filesystem::path path_;
};

// The files of a bulk write, until RocksDB has taken them over; those that are left are deleted
// when it goes out of scope.
class BulkFiles {
 public:
  explicit BulkFiles(rocksdb::Env& env) : env_(env) {}
  ~BulkFiles() {
    for (const std::filesystem::path& path : paths_) static_cast<void>(env_.DeleteFile(path));
  }
  BulkFiles(const BulkFiles&) = delete;
  BulkFiles& operator=(const BulkFiles&) = delete;

  void Add(std::filesystem::path path) { paths_.push_back(std::move(path)); }

 private:
  rocksdb::Env& env_;
  std::vector<std::filesystem::path> paths_;
};

// Deletes what a bulk write left that a crash interrupted.
inline void DeleteBulkDirectory(rocksdb::Env& env, const std::filesystem::path& directory) {
  std::vector<std::string> names;
  if (!env.GetChildren(directory, &names).ok()) return;
  for (const std::string& name : names) static_cast<void>(env.DeleteFile(directory / name));
  static_cast<void>(env.DeleteDir(directory));
}

}  // namespace codband::store
