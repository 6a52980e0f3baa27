#include "codband/report/png.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "codband/base/text.h"

namespace codband::report {
namespace {

std::string Reason(int error) { return std::generic_category().message(error); }

std::string ReadAll(int fd) {
  std::string out;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t count = read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return out;
    out.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

struct Child {
  int spawn_error = 0;  // not 0: the program was never started
  int wait_status = 0;
  std::string output;  // standard output and standard error together
};

// Runs argv[0], found on PATH, without a shell and waits for its end. `argv` ends in nullptr.
Child Run(const char* const* argv) {
  Child child;
  std::array<int, 2> pipe_fds{};
  if (pipe2(pipe_fds.data(), O_CLOEXEC) != 0) {
    child.spawn_error = errno;
    return child;
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], STDERR_FILENO);
  pid_t pid = 0;
  // posix_spawn takes char* for historical reasons; it does not change the arguments.
  child.spawn_error =
      posix_spawnp(&pid, argv[0], &actions, nullptr, const_cast<char* const*>(argv), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(pipe_fds[1]);
  if (child.spawn_error == 0) {
    child.output = ReadAll(pipe_fds[0]);
    while (waitpid(pid, &child.wait_status, 0) < 0 && errno == EINTR) {
    }
  }
  close(pipe_fds[0]);
  return child;
}

}  // namespace

Status WritePng(const std::string& svg_path, const std::string& png_path) {
  const std::string temporary = png_path + fmt::format(".tmp{}", getpid());
  const std::string output = "--output=" + temporary;
  const std::array<const char*, 6> argv = {"rsvg-convert", "--zoom=2",       output.c_str(),
                                           "--",           svg_path.c_str(), nullptr};
  const Child child = Run(argv.data());
  if (child.spawn_error == ENOENT) {
    return {StatusCode::kUnavailable,
            fmt::format("cannot draw {}: rsvg-convert is not installed; install librsvg2-bin",
                        png_path)};
  }
  if (child.spawn_error != 0) {
    return Status::IoError(fmt::format("cannot draw {}: rsvg-convert does not start: {}", png_path,
                                       Reason(child.spawn_error)));
  }
  if (!WIFEXITED(child.wait_status) || WEXITSTATUS(child.wait_status) != 0) {
    unlink(temporary.c_str());
    return Status::IoError(fmt::format("cannot draw {} as {}: rsvg-convert failed: {}", svg_path,
                                       png_path, Truncate(OneLine(child.output), 500)));
  }
  if (std::rename(temporary.c_str(), png_path.c_str()) != 0) {
    const int error = errno;
    unlink(temporary.c_str());
    return Status::IoError(fmt::format("cannot write {}: {}", png_path, Reason(error)));
  }
  return Status();
}

}  // namespace codband::report
