#pragma once

#include <rocksdb/env.h>

#include <cstdarg>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <mutex>

namespace codband::store {

// RocksDB's messages to those who look for the reason of something: in `directory`/LOG, and once
// that has 2 MB, in LOG.old. What cannot be written is left out: RocksDB's own logger ends the
// process at its second message on a full disk, because Debian's library has its assertions on. All
// functions may be called from any thread.
class RocksDbMessages final : public rocksdb::Logger {
 public:
  explicit RocksDbMessages(const std::filesystem::path& directory);
  ~RocksDbMessages() override;

  using rocksdb::Logger::Logv;
  void Logv(const char* format, std::va_list arguments) override;

 private:
  void Open();

  const std::filesystem::path path_;
  std::mutex mutex_;
  int fd_ = -1;
  std::size_t bytes_ = 0;
};

}  // namespace codband::store
