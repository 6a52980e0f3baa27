#include "codband/store/named_files.h"

#include <utility>

namespace codband::store {
namespace {

using rocksdb::IOStatus;

class NamedFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  NamedFile(rocksdb::FileSystem& files, std::string directory,
            std::unique_ptr<rocksdb::FSWritableFile> file)
      : rocksdb::FSWritableFileOwnerWrapper(std::move(file)),
        files_(files),
        directory_(std::move(directory)) {}

  IOStatus Sync(const rocksdb::IOOptions& options, rocksdb::IODebugContext* context) override {
    const IOStatus synced = FSWritableFileOwnerWrapper::Sync(options, context);
    return synced.ok() ? SyncName(options, context) : synced;
  }
  IOStatus Fsync(const rocksdb::IOOptions& options, rocksdb::IODebugContext* context) override {
    const IOStatus synced = FSWritableFileOwnerWrapper::Fsync(options, context);
    return synced.ok() ? SyncName(options, context) : synced;
  }

 private:
  IOStatus SyncName(const rocksdb::IOOptions& options, rocksdb::IODebugContext* context) {
    if (named_) return IOStatus::OK();
    std::unique_ptr<rocksdb::FSDirectory> directory;
    IOStatus status = files_.NewDirectory(directory_, options, &directory, context);
    if (status.ok()) status = directory->Fsync(options, context);
    named_ = status.ok();
    return status;
  }

  rocksdb::FileSystem& files_;
  const std::string directory_;
  bool named_ = false;
};

}  // namespace

IOStatus NamedFiles::NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                     std::unique_ptr<rocksdb::FSWritableFile>* file,
                                     rocksdb::IODebugContext* context) {
  IOStatus made = target()->NewWritableFile(path, options, file, context);
  const auto slash = path.rfind('/');
  if (made.ok() && path.ends_with(".sst") && slash != path.npos) {
    *file = std::make_unique<NamedFile>(*target(), path.substr(0, slash), std::move(*file));
  }
  return made;
}

}  // namespace codband::store
