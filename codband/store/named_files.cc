#include "codband/store/named_files.h"

#include <utility>

#include "codband/store/list_of_files.h"

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

// Writes to a file and to a copy of it.
class TwinFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  using Options = rocksdb::IOOptions;
  using Context = rocksdb::IODebugContext;

  TwinFile(std::unique_ptr<rocksdb::FSWritableFile> file,
           std::unique_ptr<rocksdb::FSWritableFile> twin)
      : rocksdb::FSWritableFileOwnerWrapper(std::move(file)), twin_(std::move(twin)) {}

  IOStatus Append(const rocksdb::Slice& bytes, const Options& options, Context* context) override {
    const IOStatus status = twin_->Append(bytes, options, context);
    return status.ok() ? FSWritableFileOwnerWrapper::Append(bytes, options, context) : status;
  }
  IOStatus Append(const rocksdb::Slice& bytes, const Options& options,
                  const rocksdb::DataVerificationInfo& sum, Context* context) override {
    const IOStatus status = twin_->Append(bytes, options, context);
    return status.ok() ? FSWritableFileOwnerWrapper::Append(bytes, options, sum, context) : status;
  }
  IOStatus Truncate(std::uint64_t size, const Options& options, Context* context) override {
    const IOStatus status = twin_->Truncate(size, options, context);
    return status.ok() ? FSWritableFileOwnerWrapper::Truncate(size, options, context) : status;
  }
  IOStatus Flush(const Options& options, Context* context) override {
    const IOStatus status = twin_->Flush(options, context);
    return status.ok() ? FSWritableFileOwnerWrapper::Flush(options, context) : status;
  }
  IOStatus Sync(const Options& options, Context* context) override {
    const IOStatus status = twin_->Sync(options, context);
    return status.ok() ? FSWritableFileOwnerWrapper::Sync(options, context) : status;
  }
  IOStatus Fsync(const Options& options, Context* context) override {
    const IOStatus status = twin_->Fsync(options, context);
    return status.ok() ? FSWritableFileOwnerWrapper::Fsync(options, context) : status;
  }
  IOStatus Close(const Options& options, Context* context) override {
    const IOStatus status = twin_->Close(options, context);
    return status.ok() ? FSWritableFileOwnerWrapper::Close(options, context) : status;
  }

 private:
  const std::unique_ptr<rocksdb::FSWritableFile> twin_;
};

}  // namespace

IOStatus NamedFiles::DeleteFile(const std::string& path, const rocksdb::IOOptions& options,
                                rocksdb::IODebugContext* context) {
  // Without the list its copy is of no use, and may be missing.
  if (IsListOfFiles(path)) {
    target()->DeleteFile(path + kTwinSuffix, options, context).PermitUncheckedError();
  }
  return target()->DeleteFile(path, options, context);
}

IOStatus NamedFiles::NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                     std::unique_ptr<rocksdb::FSWritableFile>* file,
                                     rocksdb::IODebugContext* context) {
  IOStatus made = target()->NewWritableFile(path, options, file, context);
  const auto slash = path.rfind('/');
  if (made.ok() && path.ends_with(".sst") && slash != path.npos) {
    *file = std::make_unique<NamedFile>(*target(), path.substr(0, slash), std::move(*file));
  }
  if (made.ok() && IsListOfFiles(path)) {
    std::unique_ptr<rocksdb::FSWritableFile> twin;
    made = target()->NewWritableFile(path + kTwinSuffix, options, &twin, context);
    if (made.ok()) *file = std::make_unique<TwinFile>(std::move(*file), std::move(twin));
  }
  return made;
}

}  // namespace codband::store
