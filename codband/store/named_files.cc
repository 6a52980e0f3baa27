#include "codband/store/named_files.h"

#include <cstdint>
#include <filesystem>
#include <utility>

#include "codband/base/parse.h"
#include "codband/store/list_of_files.h"
#include "codband/store/table_file.h"

namespace codband::store {
namespace {

using rocksdb::IOStatus;

// Whether RocksDB has named it: a number and ".sst".
bool IsTableFile(const std::string& path) {
  const std::filesystem::path name(path);
  return name.extension() == ".sst" && ParseNumber<std::uint64_t>(name.stem().string()).has_value();
}

IOStatus SyncDirectoryOf(rocksdb::FileSystem& files, const std::string& path,
                         const rocksdb::IOOptions& options, rocksdb::IODebugContext* context) {
  std::unique_ptr<rocksdb::FSDirectory> directory;
  const std::string parent = std::filesystem::path(path).parent_path();
  IOStatus status = files.NewDirectory(parent, options, &directory, context);
  if (status.ok()) status = directory->Fsync(options, context);
  return status;
}

class NamedFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  NamedFile(rocksdb::FileSystem& files, std::string path,
            std::unique_ptr<rocksdb::FSWritableFile> file)
      : rocksdb::FSWritableFileOwnerWrapper(std::move(file)),
        files_(files),
        path_(std::move(path)) {}

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
    const IOStatus status = SyncDirectoryOf(files_, path_, options, context);
    named_ = status.ok();
    return status;
  }

  rocksdb::FileSystem& files_;
  const std::string path_;
  bool named_ = false;
};

// Writes to the list of files and to its copy.
class TwinFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  using Options = rocksdb::IOOptions;
  using Context = rocksdb::IODebugContext;

  TwinFile(std::unique_ptr<rocksdb::FSWritableFile> file,
           std::unique_ptr<rocksdb::FSWritableFile> twin, std::shared_ptr<ListState> state)
      : rocksdb::FSWritableFileOwnerWrapper(std::move(file)),
        twin_(std::move(twin)),
        state_(std::move(state)) {}

  IOStatus Append(const rocksdb::Slice& bytes, const Options& options, Context* context) override {
    return Both([&](auto& file) { return file.Append(bytes, options, context); });
  }
  IOStatus Append(const rocksdb::Slice& bytes, const Options& options,
                  const rocksdb::DataVerificationInfo& sum, Context* context) override {
    return Both([&](auto& file) { return file.Append(bytes, options, sum, context); });
  }
  IOStatus Truncate(std::uint64_t size, const Options& options, Context* context) override {
    return Both([&](auto& file) { return file.Truncate(size, options, context); });
  }
  IOStatus Flush(const Options& options, Context* context) override {
    return Both([&](auto& file) { return file.Flush(options, context); });
  }
  IOStatus Sync(const Options& options, Context* context) override {
    return Both([&](auto& file) { return file.Sync(options, context); });
  }
  IOStatus Fsync(const Options& options, Context* context) override {
    return Both([&](auto& file) { return file.Fsync(options, context); });
  }
  IOStatus Close(const Options& options, Context* context) override {
    return Both([&](auto& file) { return file.Close(options, context); });
  }

 private:
  template <typename Operation>
  IOStatus Both(const Operation& operation) {
    IOStatus status = operation(*twin_);
    if (status.ok()) status = operation(*target());
    if (!status.ok()) state_->in_doubt = true;
    return status;
  }

  const std::unique_ptr<rocksdb::FSWritableFile> twin_;
  const std::shared_ptr<ListState> state_;
};

// Notes that a list has become the one in use, durably.
class DirectoryOfList final : public rocksdb::FSDirectoryWrapper {
 public:
  DirectoryOfList(std::unique_ptr<rocksdb::FSDirectory> directory, std::shared_ptr<ListState> state)
      : rocksdb::FSDirectoryWrapper(std::move(directory)), state_(std::move(state)) {}

  IOStatus Fsync(const rocksdb::IOOptions& options, rocksdb::IODebugContext* context) override {
    return Synced(FSDirectoryWrapper::Fsync(options, context));
  }
  IOStatus FsyncWithDirOptions(const rocksdb::IOOptions& options, rocksdb::IODebugContext* context,
                               const rocksdb::DirFsyncOptions& what) override {
    return Synced(FSDirectoryWrapper::FsyncWithDirOptions(options, context, what));
  }

 private:
  IOStatus Synced(IOStatus status) {
    if (status.ok() && state_->renamed.exchange(false)) state_->in_doubt = false;
    return status;
  }

  const std::shared_ptr<ListState> state_;
};

IOStatus EmptyFile(rocksdb::FileSystem& files, const std::string& path,
                   const rocksdb::IOOptions& options, rocksdb::IODebugContext* context) {
  std::unique_ptr<rocksdb::FSWritableFile> file;
  IOStatus status = files.ReopenWritableFile(path, rocksdb::FileOptions(), &file, context);
  if (status.ok()) status = file->Truncate(0, options, context);
  if (status.ok()) status = file->Fsync(options, context);
  if (status.ok()) status = file->Close(options, context);
  return status;
}

// A power cut may bring a deleted name back, with bytes that were never synced: they would look
// like damage before the logs that follow. So the log is emptied first, durably, or is gone
// durably.
IOStatus DeleteLog(rocksdb::FileSystem& files, const std::string& path,
                   const rocksdb::IOOptions& options, rocksdb::IODebugContext* context) {
  constexpr int kTries = 3;
  bool is_empty = false;
  for (int i = 0; i < kTries && !is_empty; ++i) {
    is_empty = EmptyFile(files, path, options, context).ok();
  }
  IOStatus deleted = files.DeleteFile(path, options, context);
  bool is_gone = is_empty || !deleted.ok();
  for (int i = 0; i < kTries && !is_gone; ++i) {
    is_gone = SyncDirectoryOf(files, path, options, context).ok();
  }
  return deleted;
}

// Whether a file has another name: a backup's, whose bytes are the same.
bool IsLinked(rocksdb::FileSystem& files, const std::string& path,
              const rocksdb::IOOptions& options, rocksdb::IODebugContext* context) {
  std::uint64_t links = 0;
  return files.NumFileLinks(path, options, &links, context).ok() && links > 1;
}

}  // namespace

IOStatus NamedFiles::NewRandomAccessFile(const std::string& path,
                                         const rocksdb::FileOptions& options,
                                         std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                         rocksdb::IODebugContext* context) {
  if (path.ends_with(".sst")) {
    const IOStatus checked = CheckTableFile(*target(), path);
    if (!checked.ok()) return checked;
  }
  return FileSystemWrapper::NewRandomAccessFile(path, options, file, context);
}

IOStatus NamedFiles::DeleteFile(const std::string& path, const rocksdb::IOOptions& options,
                                rocksdb::IODebugContext* context) {
  if (IsTableFile(path) && state_->in_doubt) return IOStatus::OK();
  if (path.ends_with(".log") && !IsLinked(*target(), path, options, context)) {
    return DeleteLog(*target(), path, options, context);
  }
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
  if (made.ok() && path.ends_with(".sst")) {
    *file = std::make_unique<NamedFile>(*target(), path, std::move(*file));
  }
  if (made.ok() && IsListOfFiles(path)) {
    std::unique_ptr<rocksdb::FSWritableFile> twin;
    made = target()->NewWritableFile(path + kTwinSuffix, options, &twin, context);
    if (made.ok()) *file = std::make_unique<TwinFile>(std::move(*file), std::move(twin), state_);
  }
  return made;
}

IOStatus NamedFiles::RenameFile(const std::string& from, const std::string& to,
                                const rocksdb::IOOptions& options,
                                rocksdb::IODebugContext* context) {
  const bool list_changes = to.ends_with("/CURRENT");
  if (list_changes) state_->in_doubt = true;
  const IOStatus renamed = target()->RenameFile(from, to, options, context);
  if (list_changes && renamed.ok()) state_->renamed = true;
  return renamed;
}

IOStatus NamedFiles::NewDirectory(const std::string& path, const rocksdb::IOOptions& options,
                                  std::unique_ptr<rocksdb::FSDirectory>* directory,
                                  rocksdb::IODebugContext* context) {
  const IOStatus made = target()->NewDirectory(path, options, directory, context);
  if (made.ok()) *directory = std::make_unique<DirectoryOfList>(std::move(*directory), state_);
  return made;
}

}  // namespace codband::store
