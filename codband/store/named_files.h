#pragma once

#include <rocksdb/file_system.h>

#include <memory>
#include <string>

namespace codband::store {

// A file system that keeps a copy of RocksDB's list of files beside it (list_of_files.h). And its
// table files are durable with their names: the first sync of a new one syncs its directory, too.
// RocksDB (7.8) forgets that while it recovers: after a power cut its list of files may name one
// that is not there, unless the file system happens to keep names in order.
class NamedFiles final : public rocksdb::FileSystemWrapper {
 public:
  explicit NamedFiles(const std::shared_ptr<rocksdb::FileSystem>& base)
      : rocksdb::FileSystemWrapper(base) {}

  const char* Name() const override { return "CodbandNamedFiles"; }
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus DeleteFile(const std::string& path, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* context) override;
};

}  // namespace codband::store
