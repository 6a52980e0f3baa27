#include "codband/server/api/decision_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <compare>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "codband/base/clock.h"
#include "codband/base/file.h"

namespace codband::server {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kSyncInterval = std::chrono::seconds(1);
constexpr std::size_t kWriteBytes = 1 << 20;  // collected before a write

// decisions-20260729-100000-007.json
struct FileName {
  std::int64_t second = 0;
  int number = 0;

  auto operator<=>(const FileName&) const = default;

  std::string ToString() const {
    const std::time_t time = second;
    std::tm utc{};
    gmtime_r(&time, &utc);
    return fmt::format("decisions-{:04}{:02}{:02}-{:02}{:02}{:02}-{:03}.json", utc.tm_year + 1900,
                       utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, number);
  }

  FileName Next() const {
    return number < 999 ? FileName{second, number + 1} : FileName{second + 1, 0};
  }
};

// The log's files in the directory, oldest first; other files are ignored.
std::vector<FileName> LogFiles(const std::filesystem::path& directory) {
  std::vector<FileName> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string text = entry->path().filename().string();
    std::tm utc{};
    FileName name;
    if (std::sscanf(text.c_str(), "decisions-%4d%2d%2d-%2d%2d%2d-%3d.json", &utc.tm_year,
                    &utc.tm_mon, &utc.tm_mday, &utc.tm_hour, &utc.tm_min, &utc.tm_sec,
                    &name.number) != 7) {
      continue;
    }
    utc.tm_year -= 1900;
    utc.tm_mon -= 1;
    name.second = timegm(&utc);
    if (name.ToString() == text) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

// The files: which one is open, its size, which are removed. Used by one thread.
class RotatingFile {
 public:
  explicit RotatingFile(const DecisionLogOptions& options) : options_(options) {}
  ~RotatingFile() {
    if (fd_ >= 0) Abandon();
  }
  RotatingFile(const RotatingFile&) = delete;
  RotatingFile& operator=(const RotatingFile&) = delete;

  // Whether `bytes` more need a new file.
  bool Full(std::size_t bytes) const {
    return size_ > 0 && size_ + bytes > options_.max_file_bytes;
  }

  // All of the lines or none: what a failed write has left is truncated.
  Status Write(std::string_view lines) {
    if (fd_ < 0) CODBAND_RETURN_IF_ERROR(Begin());
    std::uint64_t size = size_;
    while (!lines.empty()) {
      const ssize_t written = ::write(fd_, lines.data(), lines.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) {
        Status status = Failed("write");
        if (::ftruncate(fd_, static_cast<off_t>(size_)) != 0) Abandon();
        return status;
      }
      size += static_cast<std::size_t>(written);
      lines.remove_prefix(static_cast<std::size_t>(written));
    }
    size_ = size;
    return {};
  }

  Status Sync() { return fd_ < 0 || ::fdatasync(fd_) == 0 ? Status() : Failed("sync"); }

  Status Close() {
    if (fd_ < 0) return {};
    Status status = Sync();
    Abandon();
    return status;
  }

 private:
  Status Failed(const char* action) const {
    return Status::IoError(
        fmt::format("cannot {} {}: {}", action, path_.string(), std::strerror(errno)));
  }

  void Abandon() {
    ::close(std::exchange(fd_, -1));
    size_ = 0;
  }

  Status Begin() {
    std::vector<FileName> files = LogFiles(options_.directory);
    FileName name{.second = (options_.now_ms ? options_.now_ms() : UnixMillis()) / 1000};
    // After all existing files, even if the clock was set back: names must sort by age.
    if (!files.empty() && name <= files.back()) name = files.back().Next();
    path_ = options_.directory / name.ToString();
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
    if (fd_ < 0) return Failed("create");
    size_ = 0;
    files.push_back(name);
    const std::size_t keep = options_.max_files == 0 ? files.size() : options_.max_files;
    for (std::size_t i = 0; i + keep < files.size(); ++i) {
      // If this fails, the next rotation tries again.
      ::unlink((options_.directory / files[i].ToString()).c_str());
    }
    return {};
  }

  const DecisionLogOptions& options_;
  std::filesystem::path path_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
};

class ThreadedDecisionLog final : public DecisionLog {
 public:
  explicit ThreadedDecisionLog(const DecisionLogOptions& options)
      : options_(options), file_(options_), writer_([this] { Run(); }) {}
  ~ThreadedDecisionLog() override { Stop(); }

  void Append(engine::FinishedDecision decision) override {
    if (decision.chosen >= decision.candidates.size()) return;
    std::unique_lock lock(mutex_);
    if (!options_.drop_when_full) {
      room_.wait(lock, [&] { return queue_.size() < options_.queue || stopping_; });
    }
    if (queue_.size() >= options_.queue || stopping_) {
      ++stats_.dropped;
      return;
    }
    queue_.push_back(std::move(decision));
    work_.notify_one();
  }

  void Stop() override {
    {
      const std::scoped_lock lock(mutex_);
      stopping_ = true;
    }
    work_.notify_one();
    room_.notify_all();
    const std::scoped_lock lock(join_mutex_);
    if (writer_.joinable()) writer_.join();
  }

  DecisionLogStats Stats() const override {
    const std::scoped_lock lock(mutex_);
    DecisionLogStats stats = stats_;
    stats.queue = queue_.size();
    return stats;
  }

 private:
  void Run() {
    Clock::time_point synced = Clock::now();
    bool dirty = false;  // written and not synced
    while (true) {
      std::deque<engine::FinishedDecision> batch;
      bool stopping = false;
      {
        std::unique_lock lock(mutex_);
        const auto ready = [&] { return !queue_.empty() || stopping_; };
        if (dirty) {
          work_.wait_until(lock, synced + kSyncInterval, ready);
        } else {
          work_.wait(lock, ready);
        }
        batch.swap(queue_);
        stopping = stopping_;
      }
      room_.notify_all();
      if (!batch.empty()) {
        WriteBatch(batch);
        dirty = true;
      }
      if (dirty && Clock::now() - synced >= kSyncInterval) {
        Note(file_.Sync());
        synced = Clock::now();
        dirty = false;
      }
      // Nothing is appended once `stopping_` is set: the batch was the last.
      if (stopping) break;
    }
    Note(file_.Close());
  }

  void WriteBatch(const std::deque<engine::FinishedDecision>& batch) {
    std::string lines;
    std::uint64_t count = 0;
    const auto flush = [&] {
      if (count > 0) Note(file_.Write(lines), count, lines.size());
      lines.clear();
      count = 0;
    };
    for (const engine::FinishedDecision& decision : batch) {
      std::string line;
      try {
        line = ToDsJson(decision);
        lines.reserve(lines.size() + line.size() + 1);
      } catch (const std::exception& error) {  // want of memory: the server goes on without it
        Note(Status::IoError(error.what()), 1);
        continue;
      }
      if (file_.Full(lines.size() + line.size() + 1)) {
        flush();
        if (file_.Full(line.size() + 1)) Note(file_.Close());
      }
      lines += line;
      lines += '\n';
      ++count;
      if (lines.size() >= std::min<std::uint64_t>(kWriteBytes, options_.max_file_bytes)) flush();
    }
    flush();
  }

  void Note(const Status& status, std::uint64_t lines = 0, std::uint64_t bytes = 0) {
    const std::scoped_lock lock(mutex_);
    if (!status.ok() || lines > 0) stats_.last_error = status;
    if (status.ok()) {
      stats_.written += lines;
      stats_.bytes += bytes;
    } else {
      stats_.failed += lines;
    }
  }

  const DecisionLogOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable work_;  // there is something to write, or Stop was called
  std::condition_variable room_;
  std::deque<engine::FinishedDecision> queue_;
  bool stopping_ = false;
  DecisionLogStats stats_;
  RotatingFile file_;  // used by the writer only
  std::mutex join_mutex_;
  std::thread writer_;  // the last member: it uses all others
};

}  // namespace

Result<std::unique_ptr<DecisionLog>> DecisionLog::Open(const DecisionLogOptions& options) {
  CODBAND_RETURN_IF_ERROR(EnsurePrivateDirectory(options.directory));
  return std::unique_ptr<DecisionLog>(std::make_unique<ThreadedDecisionLog>(options));
}

}  // namespace codband::server
