#pragma once

#include <rocksdb/file_system.h>

#include <memory>
#include <string>
#include <string_view>

namespace codband::store {

// A file system that keeps a copy of RocksDB's list of files (MANIFEST-…) beside it, for a repair:
// nothing else says which files are in use and which of two records is newer. And its table files
// are durable with their names: the first sync of a new one syncs its directory, too. RocksDB (7.8)
// forgets that while it recovers: after a power cut its list of files may name one that is not
// there, unless the file system happens to keep names in order.
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

// What the name of the copy ends in.
inline constexpr const char* kTwinSuffix = ".twin";
// Whether it is a list of files, and not a copy of one.
bool IsListOfFiles(std::string_view path);

}  // namespace codband::store
