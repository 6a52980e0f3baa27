#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "codband/server/http/http_client.h"

namespace codband {

inline constexpr std::chrono::milliseconds kPatience{60'000};

// A `codband serve` of its own, on any free port; killed when it goes out of scope.
class ServerProcess {
 public:
  // `before`: a command of the shell that runs first, such as "ulimit -n 1024". `flags`: more of
  // them.
  ServerProcess(const std::filesystem::path& data, const std::vector<std::string>& settings,
                const std::string& before = "true", const std::vector<std::string>& flags = {}) {
    int output[2];
    EXPECT_EQ(::pipe2(output, O_CLOEXEC), 0);
    std::vector<std::string> arguments = {
        "/bin/sh",       "-c",       before + " && exec \"$0\" \"$@\"",
        CODBAND_PROGRAM, "serve",    "--data",
        data.string(),   "--listen", "127.0.0.1:0"};
    for (const std::string& setting : settings) {
      arguments.push_back("--set");
      arguments.push_back(setting);
    }
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
    EXPECT_EQ(::posix_spawn(&pid_, "/bin/sh", &actions, nullptr, pointers.data(), environ), 0);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(output[1]);
    output_ = output[0];
    ReadPort();
  }
  ~ServerProcess() {
    if (pid_ > 0) Stop(SIGKILL);
    ::close(output_);
  }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  // Whether it came up.
  bool listens() const { return port_ != 0; }
  std::uint16_t port() const { return port_; }

  // A connection, or nullptr if the server is gone.
  std::unique_ptr<server::HttpClient> Connect() const {
    auto client = server::HttpClient::Connect({.host = "127.0.0.1", .port = port_}, kPatience);
    return client.ok() ? std::move(client).value() : nullptr;
  }

  void Signal(int signal) const { ::kill(pid_, signal); }
  // Sends the signal and waits for the end; the exit code, or minus the signal that ended it.
  int Stop(int signal) {
    ::kill(pid_, signal);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  void ReadPort() {
    std::string text;
    char buffer[1024];
    for (ssize_t got = 0; (got = ::read(output_, buffer, sizeof(buffer))) > 0;) {
      text.append(buffer, static_cast<std::size_t>(got));
      const std::size_t start = text.find("://127.0.0.1:");  // of http or https
      if (start == text.npos || text.find('\n', start) == text.npos) continue;
      port_ = static_cast<std::uint16_t>(std::stoi(text.substr(start + 13)));
      return;
    }
    ADD_FAILURE() << "codband serve did not start: " << text;
  }

  pid_t pid_ = 0;
  int output_ = -1;
  std::uint16_t port_ = 0;
};

}  // namespace codband
