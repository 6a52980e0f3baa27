#pragma once

#include <rocksdb/env.h>

#include <cstdarg>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <mutex>

namespace codband::store {

// Writes RocksDB's info log to `directory`/LOG, which becomes LOG.old at 2 MB. A message that
// cannot be written is dropped: RocksDB's own logger ends the process at its second message on a
// full disk, because Debian's library is built with assertions. Thread-safe.
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

// The info log of a database in `directory`. Only the system's own file system keeps one: another
// is there for tests.
std::shared_ptr<rocksdb::Logger> MakeMessages(bool system_files,
                                              const std::filesystem::path& directory);

}  // namespace codband::store
