#include "codband/data/output_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "codband/base/file.h"

namespace codband::data {
namespace {

Status FromErrno(std::string_view action, const std::filesystem::path& path) {
  return Status::IoError(
      fmt::format("cannot {} {}: {}", action, path.string(), std::strerror(errno)));
}

std::filesystem::path ParentOf(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

// Whether an existing directory may be replaced.
Status CheckExisting(const std::filesystem::path& path, bool overwrite,
                     const std::vector<std::string>& known_files) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return {};
  if (!std::filesystem::is_directory(path, error)) {
    return Status::InvalidArgument(fmt::format("{} exists and is not a directory", path.string()));
  }
  for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
    const std::string name = entry.path().filename().string();
    if (std::ranges::find(known_files, name) == known_files.end()) {
      return Status::InvalidArgument(
          fmt::format("{} holds {}, expected a new or empty directory", path.string(), name));
    }
    if (!overwrite) {
      return Status::InvalidArgument(fmt::format(
          "{} holds an earlier result, expected a new or empty directory, or --overwrite",
          path.string()));
    }
  }
  if (error) {
    return Status::IoError(fmt::format("cannot list {}: {}", path.string(), error.message()));
  }
  return {};
}

}  // namespace

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      buffer_(std::move(other.buffer_)),
      status_(std::move(other.status_)) {}

OutputFile::~OutputFile() {
  if (fd_ >= 0) ::close(fd_);
}

void OutputFile::Write(std::string_view text) {
  buffer_.append(text.begin(), text.end());
  if (buffer_.size() >= kFlushBytes) Flush();
}

void OutputFile::Flush() {
  std::string_view rest(buffer_.data(), buffer_.size());
  while (!rest.empty() && status_.ok()) {
    const ssize_t written = ::write(fd_, rest.data(), rest.size());
    if (written >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      status_ = FromErrno("write", path_);
    }
  }
  buffer_.clear();
}

Status OutputFile::Close() {
  Flush();
  if (status_.ok() && ::fsync(fd_) != 0) status_ = FromErrno("sync", path_);
  if (::close(std::exchange(fd_, -1)) != 0 && status_.ok()) status_ = FromErrno("close", path_);
  return status_;
}

Result<OutputDirectory> OutputDirectory::Create(std::filesystem::path path, bool overwrite,
                                                const std::vector<std::string>& known_files) {
  if (path.empty()) return Status::InvalidArgument("the name of the output directory is empty");
  path = path.lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // "out/"
  if (path.filename() == "." || path.filename() == ".." || !path.has_filename()) {
    return Status::InvalidArgument(
        fmt::format("{} cannot be replaced, expected a new or empty directory", path.string()));
  }
  CODBAND_RETURN_IF_ERROR(CheckExisting(path, overwrite, known_files));
  const std::filesystem::path parent = ParentOf(path);
  std::vector<std::filesystem::path> made;
  std::error_code error;
  for (std::filesystem::path above = parent;
       !above.empty() && !std::filesystem::exists(above, error); above = above.parent_path()) {
    made.push_back(above);
  }
  CODBAND_RETURN_IF_ERROR(EnsureDirectory(parent));
  std::string name = (parent / fmt::format(".{}.XXXXXX", path.filename().string())).string();
  if (::mkdtemp(name.data()) == nullptr) return FromErrno("create a directory in", parent);
  if (::chmod(name.c_str(), 0755) != 0) return FromErrno("open to others", name);
  return OutputDirectory(std::move(path), std::move(name), std::move(made));
}

OutputDirectory::OutputDirectory(OutputDirectory&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      made_(std::exchange(other.made_, {})) {}

OutputDirectory::~OutputDirectory() {
  std::error_code ignored;
  if (!temporary_.empty()) std::filesystem::remove_all(temporary_, ignored);
  // Parents that are not empty, because they hold the result for instance, stay.
  for (const std::filesystem::path& directory : made_) std::filesystem::remove(directory, ignored);
}

Result<OutputFile> OutputDirectory::Open(const std::string& name) const {
  std::filesystem::path path = temporary_ / name;
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return FromErrno("create", path);
  return OutputFile(std::move(path), fd);
}

Status OutputDirectory::Commit() {
  CODBAND_RETURN_IF_ERROR(SyncDirectory(temporary_));
  // rename(2) replaces an empty directory too.
  if (::rename(temporary_.c_str(), path_.c_str()) == 0) {
    temporary_.clear();
    return SyncDirectory(ParentOf(path_));
  }
  if (errno != ENOTEMPTY && errno != EEXIST) return FromErrno("create", path_);
  // Swaps both atomically; the destructor then removes the old one.
  if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), RENAME_EXCHANGE) != 0) {
    return FromErrno("replace", path_);
  }
  return SyncDirectory(ParentOf(path_));
}

}  // namespace codband::data
