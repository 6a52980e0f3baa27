#pragma once

#include <rocksdb/file_system.h>

#include <atomic>
#include <memory>
#include <string>

namespace codband::store {

// What is known of the list of files.
struct ListState {
  std::atomic<bool> in_doubt = false;  // a write to it has failed
  std::atomic<bool> renamed = false;   // another one is in use, as soon as the directory is synced
};

// A file system that keeps a copy of RocksDB's list of files beside it (list_of_files.h). And its
// table files are durable with their names: the first sync of a new one syncs its directory, too.
// RocksDB (7.8) forgets that while it recovers: after a power cut its list of files may name one
// that is not there, unless the file system happens to keep names in order.
//
// After a failed write to the list nobody knows what a power cut would leave of it, and RocksDB
// (7.8) deletes the file of a bulk write that failed so, although the list may name it. Until the
// next list is in use, durably, no table file is deleted: RocksDB finds those left over when it
// opens.
//
// A table file whose damage would run into an assertion is refused (table_file.h).
class NamedFiles final : public rocksdb::FileSystemWrapper {
 public:
  explicit NamedFiles(const std::shared_ptr<rocksdb::FileSystem>& base)
      : rocksdb::FileSystemWrapper(base) {}

  const char* Name() const override { return "CodbandNamedFiles"; }
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus NewRandomAccessFile(const std::string& path,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                        rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus DeleteFile(const std::string& path, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus NewDirectory(const std::string& path, const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* directory,
                                 rocksdb::IODebugContext* context) override;

 private:
  const std::shared_ptr<ListState> state_ = std::make_shared<ListState>();
};

}  // namespace codband::store
