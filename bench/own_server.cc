#include "bench/own_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <stdexcept>
#include <string_view>
#include <system_error>

namespace codband {
namespace {

std::atomic<pid_t> server_pid = 0;  // for the signal handler

void StopServer(int /*signal*/) {
  const pid_t pid = server_pid.load();
  if (pid > 0) kill(pid, SIGTERM);
}

// In the child, between fork and exec: only async-signal-safe calls.
[[noreturn]] void RunServer(const std::vector<char*>& arguments, int output, pid_t parent) {
  // The server gets SIGTERM when the parent dies, however it dies.
  if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || getppid() != parent) _exit(127);
  if (dup2(output, STDOUT_FILENO) >= 0) execv(arguments[0], arguments.data());
  _exit(127);
}

}  // namespace

OwnServer::OwnServer(const std::string& program, const std::vector<std::string>& settings)
    : directory_(std::filesystem::temp_directory_path() / fmt::format("codband-{}", getpid())) {
  std::vector<std::string> arguments = {program,    "serve",      "--data", directory_.string(),
                                        "--listen", "127.0.0.1:0"};
  for (const std::string& setting : settings) {
    arguments.insert(arguments.end(), {"--set", setting});
  }
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  int output[2];
  if (pipe2(output, O_CLOEXEC) != 0) throw std::runtime_error("cannot create a pipe");
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) RunServer(pointers, output[1], parent);
  close(output[1]);
  output_ = output[0];
  if (pid_ < 0) {
    close(output_);
    throw std::runtime_error("cannot start " + program);
  }
  server_pid = pid_;
  std::signal(SIGINT, StopServer);
  std::signal(SIGTERM, StopServer);
  try {
    ReadPort();
  } catch (...) {
    Stop();
    throw;
  }
}

OwnServer::~OwnServer() { Stop(); }

void OwnServer::ReadPort() {
  constexpr std::string_view kHost = "127.0.0.1:";
  std::string text;
  char buffer[512];
  for (ssize_t got = 0; (got = read(output_, buffer, sizeof(buffer))) > 0;) {
    text.append(buffer, static_cast<std::size_t>(got));
    const std::size_t at = text.find(kHost);
    if (at == text.npos || text.find('\n', at) == text.npos) continue;
    port_ = static_cast<std::uint16_t>(std::stoi(text.substr(at + kHost.size())));
    return;
  }
  throw std::runtime_error("the server did not start: " + text);
}

void OwnServer::Stop() {
  kill(pid_, SIGTERM);
  waitpid(pid_, nullptr, 0);
  server_pid = 0;
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  close(output_);
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

}  // namespace codband
