#include "codband/store/rocksdb_messages.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <system_error>

#include "codband/base/clock.h"
#include "codband/base/time.h"

namespace codband::store {
namespace {

constexpr std::size_t kMaxBytes = 2 << 20;

class NoMessages final : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char*, std::va_list) override {}
};

}  // namespace

RocksDbMessages::RocksDbMessages(const std::filesystem::path& directory)
    : path_(directory / "LOG") {
  Open();
}

RocksDbMessages::~RocksDbMessages() {
  if (fd_ >= 0) ::close(fd_);
}

void RocksDbMessages::Open() {
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  struct stat file {};
  bytes_ = fd_ >= 0 && ::fstat(fd_, &file) == 0 ? static_cast<std::size_t>(file.st_size) : 0;
}

void RocksDbMessages::Logv(const char* format, std::va_list arguments) {
  std::array<char, 4096> message;
  const int length = std::vsnprintf(message.data(), message.size(), format, arguments);
  if (length < 0) return;
  const auto kept = std::min(static_cast<std::size_t>(length), message.size() - 1);
  const std::string line =
      fmt::format("{} {}\n", FormatRfc3339(UnixMillis()), std::string_view(message.data(), kept));

  const std::lock_guard lock(mutex_);
  if (bytes_ > kMaxBytes) {
    std::filesystem::path old = path_;
    old += ".old";
    std::error_code ignored;
    std::filesystem::rename(path_, old, ignored);
    if (fd_ >= 0) ::close(fd_);
    Open();
  }
  if (fd_ < 0) return;
  const ssize_t written = ::write(fd_, line.data(), line.size());
  if (written > 0) bytes_ += static_cast<std::size_t>(written);
}

std::shared_ptr<rocksdb::Logger> MakeMessages(bool system_files,
                                              const std::filesystem::path& directory) {
  if (!system_files) return std::make_shared<NoMessages>();
  return std::make_shared<RocksDbMessages>(directory);
}

}  // namespace codband::store
