#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codband/base/status.h"

namespace codband::data {

// A new file with buffered writes. The first error is kept and returned by Close. Not thread-safe.
class OutputFile {
 public:
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  template <typename... Args>
  void Print(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(buffer_), format, std::forward<Args>(args)...);
    if (buffer_.size() >= kFlushBytes) Flush();
  }
  void Write(std::string_view text);

  // Flushes and syncs (fsync). kIoError has the path and the reason.
  Status Close();

 private:
  friend class OutputDirectory;
  static constexpr std::size_t kFlushBytes = std::size_t{1} << 18;

  OutputFile(std::filesystem::path path, int fd) : path_(std::move(path)), fd_(fd) {}
  void Flush();

  std::filesystem::path path_;
  int fd_;
  fmt::memory_buffer buffer_;
  Status status_;
};

// A directory that is created atomically: files are written into a hidden sibling, which Commit
// renames. Without Commit the destructor removes it, along with the parent directories that were
// created for it. Not thread-safe.
class OutputDirectory {
 public:
  // The directory may exist if it is empty. With `overwrite` it is replaced if it holds nothing but
  // `known_files`. kInvalidArgument otherwise, kIoError if the system refuses.
  static Result<OutputDirectory> Create(std::filesystem::path path, bool overwrite,
                                        const std::vector<std::string>& known_files);

  OutputDirectory(OutputDirectory&& other) noexcept;
  OutputDirectory& operator=(OutputDirectory&&) = delete;
  ~OutputDirectory();

  Result<OutputFile> Open(const std::string& name) const;

  // Preconditions: every file is closed; called once.
  Status Commit();

 private:
  OutputDirectory(std::filesystem::path path, std::filesystem::path temporary,
                  std::vector<std::filesystem::path> made)
      : path_(std::move(path)), temporary_(std::move(temporary)), made_(std::move(made)) {}

  std::filesystem::path path_;
  std::filesystem::path temporary_;          // empty once it is renamed
  std::vector<std::filesystem::path> made_;  // parents created for it, the innermost first
};

}  // namespace codband::data
