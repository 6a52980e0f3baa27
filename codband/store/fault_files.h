#pragma once

#include <mutex>
#include <string>
#include <utility>

#include "codband/store/fault_file_system.h"

namespace codband::store {

// What a FaultFileSystem hands out; it does the work.

// An open file, for whatever it is open.
class FaultFile final : public rocksdb::FSSequentialFile,
                        public rocksdb::FSRandomAccessFile,
                        public rocksdb::FSWritableFile {
 public:
  using Options = rocksdb::IOOptions;
  using Context = rocksdb::IODebugContext;

  FaultFile(FaultFileSystem& disk, std::string path, FaultFileSystem::NodePtr node)
      : disk_(disk), path_(std::move(path)), node_(std::move(node)) {}

  // As FSSequentialFile.
  rocksdb::IOStatus Read(std::size_t count, const Options&, rocksdb::Slice* result, char* scratch,
                         Context*) override {
    const rocksdb::IOStatus status = disk_.Read(path_, *node_, position_, count, result, scratch);
    if (status.ok()) position_ += result->size();
    return status;
  }
  rocksdb::IOStatus Skip(std::uint64_t count) override {
    position_ += count;
    return rocksdb::IOStatus::OK();
  }
  // As FSRandomAccessFile.
  rocksdb::IOStatus Read(std::uint64_t offset, std::size_t count, const Options&,
                         rocksdb::Slice* result, char* scratch, Context*) const override {
    return disk_.Read(path_, *node_, offset, count, result, scratch);
  }
  // As FSWritableFile.
  using FSWritableFile::Append;
  rocksdb::IOStatus Append(const rocksdb::Slice& bytes, const Options&, Context*) override {
    return disk_.Append(path_, *node_, {bytes.data(), bytes.size()});
  }
  rocksdb::IOStatus Truncate(std::uint64_t size, const Options&, Context*) override {
    return disk_.Truncate(*node_, size);
  }
  rocksdb::IOStatus Close(const Options&, Context*) override { return rocksdb::IOStatus::OK(); }
  rocksdb::IOStatus Flush(const Options&, Context*) override { return rocksdb::IOStatus::OK(); }
  rocksdb::IOStatus Sync(const Options&, Context*) override { return disk_.Sync(path_, *node_); }
  bool IsSyncThreadSafe() const override { return true; }
  std::uint64_t GetFileSize(const Options&, Context*) override {
    const std::lock_guard lock(disk_.mutex_);
    return node_->data.size();
  }

  // Of all three.
  bool use_direct_io() const override { return false; }
  std::size_t GetRequiredBufferAlignment() const override { return 4096; }
  rocksdb::IOStatus InvalidateCache(std::size_t, std::size_t) override {
    return rocksdb::IOStatus::OK();
  }
  rocksdb::Temperature GetTemperature() const override { return rocksdb::Temperature::kUnknown; }
  std::size_t GetUniqueId(char*, std::size_t) const override { return 0; }

 private:
  FaultFileSystem& disk_;
  const std::string path_;
  const FaultFileSystem::NodePtr node_;
  std::uint64_t position_ = 0;
};

// A file that is open to be changed in place.
class FaultRandomFile final : public rocksdb::FSRandomRWFile {
 public:
  using Options = rocksdb::IOOptions;
  using Context = rocksdb::IODebugContext;

  FaultRandomFile(FaultFileSystem& disk, std::string path, FaultFileSystem::NodePtr node)
      : disk_(disk), path_(std::move(path)), node_(std::move(node)) {}

  rocksdb::IOStatus Write(std::uint64_t offset, const rocksdb::Slice& bytes, const Options&,
                          Context*) override {
    return disk_.Overwrite(path_, *node_, offset, {bytes.data(), bytes.size()});
  }
  rocksdb::IOStatus Read(std::uint64_t offset, std::size_t count, const Options&,
                         rocksdb::Slice* result, char* scratch, Context*) const override {
    return disk_.Read(path_, *node_, offset, count, result, scratch);
  }
  rocksdb::IOStatus Flush(const Options&, Context*) override { return rocksdb::IOStatus::OK(); }
  rocksdb::IOStatus Sync(const Options&, Context*) override { return disk_.Sync(path_, *node_); }
  rocksdb::IOStatus Close(const Options&, Context*) override { return rocksdb::IOStatus::OK(); }

 private:
  FaultFileSystem& disk_;
  const std::string path_;
  const FaultFileSystem::NodePtr node_;
};

class FaultDirectory final : public rocksdb::FSDirectory {
 public:
  FaultDirectory(FaultFileSystem& disk, std::string path) : disk_(disk), path_(std::move(path)) {}
  rocksdb::IOStatus Fsync(const rocksdb::IOOptions&, rocksdb::IODebugContext*) override {
    return disk_.SyncDirectory(path_);
  }

 private:
  FaultFileSystem& disk_;
  const std::string path_;
};

}  // namespace codband::store
