#include "codband/base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace codband {
namespace {

Status FromErrno(std::string_view action, const std::filesystem::path& path) {
  const int error = errno;
  const std::string message =
      fmt::format("cannot {} {}: {}", action, path.string(), std::strerror(error));
  return error == ENOENT ? Status::NotFound(message) : Status::IoError(message);
}

// Closes the descriptor on destruction.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() { Close(); }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int get() const { return fd_; }
  int Close() { return fd_ < 0 ? 0 : ::close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

Status WriteAll(int fd, std::string_view content, const std::filesystem::path& path) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FromErrno("write", path);
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

// Creates what is missing of the directory and its parents.
Status MakeDirectories(const std::filesystem::path& path, mode_t mode) {
  std::error_code error;
  if (std::filesystem::exists(path, error)) return {};
  const std::filesystem::path parent = path.parent_path();
  if (!parent.empty() && parent != path) CODBAND_RETURN_IF_ERROR(MakeDirectories(parent, mode));
  if (::mkdir(path.c_str(), mode) != 0 && errno != EEXIST) {
    return Status::IoError(
        fmt::format("cannot create directory {}: {}", path.string(), std::strerror(errno)));
  }
  return {};
}

Status EnsureDirectoryWithMode(const std::filesystem::path& path, mode_t mode) {
  if (path.empty()) return Status::InvalidArgument("the name of the directory is empty");
  std::error_code error;
  const std::filesystem::file_status existing = std::filesystem::status(path, error);
  if (std::filesystem::exists(existing) && !std::filesystem::is_directory(existing)) {
    return Status::InvalidArgument(fmt::format("{} exists and is not a directory", path.string()));
  }
  CODBAND_RETURN_IF_ERROR(MakeDirectories(path, mode));
  if (access(path.c_str(), W_OK | X_OK) != 0) {
    return Status::IoError(
        fmt::format("cannot write into directory {}: {}", path.string(), std::strerror(errno)));
  }
  return {};
}

// Leaves the file to its owner alone; counts it if others had rights.
Status TakeRights(const std::filesystem::path& path, std::size_t& changed) {
  struct stat file {};
  if (::stat(path.c_str(), &file) != 0) {
    return errno == ENOENT ? Status() : FromErrno("look at", path);
  }
  constexpr mode_t kOthers = S_IRWXG | S_IRWXO;
  if ((file.st_mode & kOthers) == 0) return {};
  if (::chmod(path.c_str(), file.st_mode & 07777 & ~kOthers) != 0) {
    return errno == ENOENT ? Status() : FromErrno("make private", path);
  }
  ++changed;
  return {};
}

}  // namespace

Status SyncDirectory(const std::filesystem::path& directory) {
  FileDescriptor fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0 || ::fsync(fd.get()) != 0) return FromErrno("sync directory", directory);
  return {};
}

Result<std::string> ReadFile(const std::filesystem::path& path) {
  FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return FromErrno("open", path);
  std::string content;
  char buffer[1 << 16];
  while (true) {
    const ssize_t got = ::read(fd.get(), buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FromErrno("read", path);
    if (got == 0) return content;
    content.append(buffer, static_cast<std::size_t>(got));
  }
}

Status WriteFileDurably(const std::filesystem::path& path, std::string_view content,
                        FileAccess access) {
  std::filesystem::path temporary = path;
  // Unique among concurrent calls of this process and others.
  static std::atomic<unsigned> counter = 0;
  temporary += fmt::format(".tmp{}.{}", ::getpid(), counter++);
  const auto write = [&]() -> Status {
    FileDescriptor fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
                             access == FileAccess::kPrivate ? 0600 : 0644));
    if (fd.get() < 0) return FromErrno("create", temporary);
    CODBAND_RETURN_IF_ERROR(WriteAll(fd.get(), content, temporary));
    if (::fsync(fd.get()) != 0) return FromErrno("sync", temporary);
    if (fd.Close() != 0) return FromErrno("close", temporary);
    if (::rename(temporary.c_str(), path.c_str()) != 0) return FromErrno("replace", path);
    return SyncDirectory(path.has_parent_path() ? path.parent_path() : ".");
  };
  Status status = write();
  if (!status.ok()) ::unlink(temporary.c_str());
  return status;
}

Status EnsureDirectory(const std::filesystem::path& path) {
  return EnsureDirectoryWithMode(path, 0777);
}

Status EnsurePrivateDirectory(const std::filesystem::path& path) {
  return EnsureDirectoryWithMode(path, 0700);
}

Result<std::size_t> MakePrivate(const std::filesystem::path& path, Reach reach) {
  std::size_t changed = 0;
  CODBAND_RETURN_IF_ERROR(TakeRights(path, changed));
  std::error_code error;
  if (reach == Reach::kOne || !std::filesystem::is_directory(path, error)) return changed;
  std::filesystem::recursive_directory_iterator entry(path, error);
  for (const std::filesystem::recursive_directory_iterator end; !error && entry != end;
       entry.increment(error)) {
    if (!entry->is_symlink(error)) CODBAND_RETURN_IF_ERROR(TakeRights(entry->path(), changed));
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return Status::IoError(fmt::format("cannot list {}: {}", path.string(), error.message()));
  }
  return changed;
}

Status CopyTreeDurably(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::error_code error;
  const auto failed = [&](const std::filesystem::path& path) {
    return Status::IoError(
        fmt::format("cannot copy {} to {}: {}", path.string(), to.string(), error.message()));
  };
  std::filesystem::create_directory(to, from, error);
  if (error) return failed(from);
  std::filesystem::directory_iterator entry(from, error);
  for (const std::filesystem::directory_iterator end; !error && entry != end;
       entry.increment(error)) {
    const std::filesystem::path& source = entry->path();
    const std::filesystem::path target = to / source.filename();
    const std::filesystem::file_status kind = entry->symlink_status();
    if (std::filesystem::is_directory(kind)) {
      CODBAND_RETURN_IF_ERROR(CopyTreeDurably(source, target));
      continue;
    }
    if (!std::filesystem::is_regular_file(kind)) {
      return Status::InvalidArgument(
          fmt::format("{} is neither a file nor a directory", source.string()));
    }
    if (!std::filesystem::copy_file(source, target, error)) return failed(source);
    FileDescriptor fd(::open(target.c_str(), O_RDONLY | O_CLOEXEC));
    if (fd.get() < 0 || ::fsync(fd.get()) != 0) return FromErrno("sync", target);
  }
  if (error) return failed(from);
  return SyncDirectory(to);
}

}  // namespace codband
