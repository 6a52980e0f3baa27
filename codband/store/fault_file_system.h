#pragma once

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "codband/base/random.h"

namespace codband::store {

// What goes wrong, each with a chance for each call.
struct Faults {
  double write_error = 0;  // fails; as often as not some of the bytes were written before that
  double sync_error = 0;   // fails; nothing more than before is certain to be durable
  double read_error = 0;
  double slow_sync = 0;  // takes slow_sync_time longer
  std::chrono::microseconds slow_sync_time{1000};
};

// A disk in memory, for tests of the store and of all above it: below RocksDB, in the place of the
// operating system. It fails as it is told to, and knows what a power cut would leave of it.
//
// What is durable is what POSIX promises and no more: the bytes of a file as of its last sync;
// names (files made, linked, renamed, deleted; directories made) as of the last sync of their
// directory. Everything else a power cut takes away or leaves, in parts, as the seed decides.
//
// Thread-safe.
class FaultFileSystem final : public rocksdb::FileSystem {
 public:
  explicit FaultFileSystem(std::uint64_t seed);

  void SetFaults(const Faults& faults);
  // Writes that would need more fail as on a full disk. No limit at first.
  void SetCapacity(std::uint64_t bytes);
  std::uint64_t UsedBytes() const;
  // Failures that were injected since the start, those of a full disk included.
  std::uint64_t failures() const;

  // The disk as a power cut at this moment might leave it. This one goes on as if nothing had
  // happened, so that those who use it can end in peace.
  std::shared_ptr<FaultFileSystem> CutPower(std::uint64_t seed) const;

  const char* Name() const override { return "CodbandFaultFileSystem"; }

  using Options = rocksdb::IOOptions;
  using FileOptions = rocksdb::FileOptions;
  using Context = rocksdb::IODebugContext;
  using IOStatus = rocksdb::IOStatus;

  IOStatus NewSequentialFile(const std::string& path, const FileOptions& options,
                             std::unique_ptr<rocksdb::FSSequentialFile>* file,
                             Context* context) override;
  IOStatus NewRandomAccessFile(const std::string& path, const FileOptions& options,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                               Context* context) override;
  IOStatus NewWritableFile(const std::string& path, const FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* file,
                           Context* context) override;
  IOStatus ReopenWritableFile(const std::string& path, const FileOptions& options,
                              std::unique_ptr<rocksdb::FSWritableFile>* file,
                              Context* context) override;
  IOStatus NewRandomRWFile(const std::string& path, const FileOptions& options,
                           std::unique_ptr<rocksdb::FSRandomRWFile>* file,
                           Context* context) override;
  IOStatus NewDirectory(const std::string& path, const Options& options,
                        std::unique_ptr<rocksdb::FSDirectory>* directory,
                        Context* context) override;
  IOStatus FileExists(const std::string& path, const Options& options, Context* context) override;
  IOStatus GetChildren(const std::string& path, const Options& options,
                       std::vector<std::string>* names, Context* context) override;
  IOStatus DeleteFile(const std::string& path, const Options& options, Context* context) override;
  IOStatus CreateDir(const std::string& path, const Options& options, Context* context) override;
  IOStatus CreateDirIfMissing(const std::string& path, const Options& options,
                              Context* context) override;
  IOStatus DeleteDir(const std::string& path, const Options& options, Context* context) override;
  IOStatus GetFileSize(const std::string& path, const Options& options, std::uint64_t* bytes,
                       Context* context) override;
  IOStatus GetFileModificationTime(const std::string& path, const Options& options,
                                   std::uint64_t* time, Context* context) override;
  IOStatus RenameFile(const std::string& from, const std::string& to, const Options& options,
                      Context* context) override;
  IOStatus NumFileLinks(const std::string& path, const Options& options, std::uint64_t* count,
                        Context* context) override;
  IOStatus LinkFile(const std::string& from, const std::string& to, const Options& options,
                    Context* context) override;
  IOStatus LockFile(const std::string& path, const Options& options, rocksdb::FileLock** lock,
                    Context* context) override;
  IOStatus UnlockFile(rocksdb::FileLock* lock, const Options& options, Context* context) override;
  IOStatus GetTestDirectory(const Options& options, std::string* path, Context* context) override;
  IOStatus GetAbsolutePath(const std::string& path, const Options& options, std::string* absolute,
                           Context* context) override;
  IOStatus GetFreeSpace(const std::string& path, const Options& options, std::uint64_t* bytes,
                        Context* context) override;
  IOStatus IsDirectory(const std::string& path, const Options& options, bool* is,
                       Context* context) override;

 private:
  friend class FaultFile;
  friend class FaultRandomFile;
  friend class FaultDirectory;

  // A file or a directory; it may have several names, or none any more.
  struct Node {
    bool directory = false;
    std::string data;
    std::size_t synced = 0;          // so many of the first bytes are durable
    std::optional<std::string> old;  // what is durable instead, if those bytes were cut off
  };
  using NodePtr = std::shared_ptr<Node>;  // shared by its names and by those who have it open
  using Names = std::map<std::string, NodePtr>;
  // What became of some names, at once; null: gone.
  using NameChange = std::vector<std::pair<std::string, NodePtr>>;

  // These expect the mutex to be held.
  bool Happens(double chance);
  IOStatus Fail(const std::string& path, const char* what);
  IOStatus Find(const std::string& path, NodePtr& node) const;
  void Change(NameChange change);
  static void Apply(const NameChange& change, Names& names);
  std::uint64_t CountBytes() const;
  static std::string WhatIsLeft(const Node& node, RandomStream& random);
  Names NamesLeft(RandomStream& random) const;

  IOStatus Append(const std::string& path, Node& node, std::string_view bytes);
  IOStatus Overwrite(const std::string& path, Node& node, std::uint64_t offset,
                     std::string_view bytes);
  IOStatus Truncate(Node& node, std::size_t size);
  IOStatus Sync(const std::string& path, Node& node);
  IOStatus SyncDirectory(const std::string& path);
  IOStatus Read(const std::string& path, const Node& node, std::uint64_t offset, std::size_t count,
                rocksdb::Slice* result, char* scratch);

  mutable std::mutex mutex_;  // guards what follows
  RandomStream random_;
  Faults faults_;
  std::uint64_t capacity_;
  std::uint64_t failures_ = 0;
  Names names_;                      // by path
  Names durable_;                    // those that a power cut leaves
  std::vector<NameChange> changes_;  // from `durable_` to `names_`, in order
  std::set<std::string> locks_;
};

}  // namespace codband::store
