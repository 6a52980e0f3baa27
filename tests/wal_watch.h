#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rocksdb/write_batch.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "codband/base/file.h"
#include "tests/crash_log.h"

namespace codband {

// Keeps every write-ahead file that RocksDB makes, by a hard link, and reads from it what was
// written to the log of what is to be learned: checkpoints delete that log, and RocksDB its files.
class WalWatch {
 public:
  WalWatch(std::filesystem::path data, std::filesystem::path links)
      : data_(std::move(data)), links_(std::move(links)) {
    std::filesystem::create_directories(links_);
    thread_ = std::thread([this] {
      while (!stop_) {
        Look();
        std::this_thread::sleep_for(std::chrono::microseconds(500));
      }
    });
  }
  ~WalWatch() {
    stop_ = true;
    thread_.join();
  }
  WalWatch(const WalWatch&) = delete;
  WalWatch& operator=(const WalWatch&) = delete;

  // The server is gone: adds what it has logged, and lets go of the files.
  void Collect(Log& log) {
    stop_ = true;
    thread_.join();
    thread_ = std::thread([] {});
    Look();
    for (const auto& [number, path] : kept_) {
      ReadWal(path, log);
      std::filesystem::remove(path);
    }
    kept_.clear();
  }

 private:
  void Look() {
    std::error_code error;
    for (std::filesystem::directory_iterator file(data_ / "rocksdb", error), end;
         !error && file != end; file.increment(error)) {
      const std::filesystem::path& path = file->path();
      if (path.extension() != ".log" || kept_.contains(path.stem())) continue;
      const std::filesystem::path link = links_ / path.filename();
      std::error_code gone;
      std::filesystem::create_hard_link(path, link, gone);
      if (!gone) kept_[path.stem()] = link;
    }
  }

  // The format is told in codband/store/rocksdb_log.h.
  static void ReadWal(const std::filesystem::path& path, Log& log) {
    const auto content = ReadFile(path);
    ASSERT_TRUE(content.ok()) << content.status().ToString();
    const std::string_view bytes = content.value();
    constexpr std::size_t kBlock = 32 << 10, kHeader = 7;
    std::string batch;
    for (std::size_t at = 0; at + kHeader <= bytes.size();) {
      if (kBlock - at % kBlock < kHeader) {
        at += kBlock - at % kBlock;
        continue;
      }
      const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(bytes[at + i]); };
      const std::size_t length = byte(4) | std::size_t{byte(5)} << 8;
      const int type = byte(6);  // 1: whole; 2, 3, 4: first, middle, last piece
      if (type == 0 || at + kHeader + length > bytes.size()) return;
      if (type <= 2) batch.clear();
      batch += bytes.substr(at + kHeader, length);
      at += kHeader + length;
      if (type == 1 || type == 4) ReadBatch(batch, log);
    }
  }

  static void ReadBatch(const std::string& bytes, Log& log) {
    struct Handler final : rocksdb::WriteBatch::Handler {
      explicit Handler(Log& to) : log(to) {}
      rocksdb::Status PutCF(std::uint32_t family, const rocksdb::Slice& key,
                            const rocksdb::Slice& value) override {
        constexpr std::uint32_t kLogFamily = 1 + static_cast<std::uint32_t>(store::Table::kLog);
        if (family == kLogFamily) {
          log.insert_or_assign(key.ToString(), DecodeEntry(value.ToStringView()));
        }
        return {};
      }
      rocksdb::Status DeleteCF(std::uint32_t, const rocksdb::Slice&) override { return {}; }
      rocksdb::Status DeleteRangeCF(std::uint32_t, const rocksdb::Slice&,
                                    const rocksdb::Slice&) override {
        return {};
      }
      void LogData(const rocksdb::Slice&) override {}
      Log& log;
    };
    Handler handler(log);
    EXPECT_TRUE(rocksdb::WriteBatch(bytes).Iterate(&handler).ok());
  }

  const std::filesystem::path data_, links_;
  std::map<std::string, std::filesystem::path> kept_;  // of the thread, until it has ended
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace codband
