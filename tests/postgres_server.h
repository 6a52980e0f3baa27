#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace codband {

// A PostgreSQL of the tests' own: made in a directory in memory, reached by a socket in it, by no
// network, and gone at the end. PostgreSQL refuses to run as root: there it runs as `postgres`.
class PostgresServer {
 public:
  // One for all tests of this process; it ends with it.
  static PostgresServer& Shared() {
    static PostgresServer server;
    return server;
  }

  PostgresServer() {
    binaries_ = FindBinaries();
    directory_ = std::filesystem::path("/dev/shm") / fmt::format("codband_postgres_{}", ::getpid());
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    if (::geteuid() == 0) {
      const passwd* user = ::getpwnam("postgres");
      if (user == nullptr) throw std::runtime_error("there is no user 'postgres'");
      user_ = user->pw_uid;
      group_ = user->pw_gid;
      if (::chown(directory_.c_str(), user_, group_) != 0) throw std::runtime_error("chown");
    }
    const pid_t made = Spawn({"initdb", "-D", data(), "-U", "codband", "-A", "trust", "-E", "UTF8",
                              "--locale=C", "--no-sync", "--no-instructions"});
    int code = 0;
    ::waitpid(made, &code, 0);
    if (code != 0) throw std::runtime_error("initdb failed; see " + output());
    Start();
  }
  ~PostgresServer() {
    Stop(SIGQUIT);
    std::filesystem::remove_all(directory_);
  }
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  std::string Dsn(const std::string& database = "postgres") const {
    return fmt::format("host={} user=codband dbname={}", directory_.string(), database);
  }

  // Returns when it accepts connections.
  void Start() {
    process_ =
        Spawn({"postgres", "-D", data(), "-k", directory_.string(), "-c", "listen_addresses=", "-c",
               "fsync=off", "-c", "max_connections=100", "-c", "shared_buffers=32MB", "-c",
               "log_min_messages=fatal", "-c", "autovacuum=off"});
    for (int i = 0; i < 1000; ++i) {
      if (PQping(Dsn().c_str()) == PQPING_OK) return;
      if (::waitpid(process_, nullptr, WNOHANG) == process_) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    throw std::runtime_error("PostgreSQL does not start; see " + output());
  }
  // SIGQUIT: as after a crash. SIGSTOP and SIGCONT do what they say.
  void Stop(int signal) {
    if (process_ == 0) return;
    ::kill(process_, signal);
    ::waitpid(process_, nullptr, 0);
    process_ = 0;
  }

 private:
  static std::filesystem::path FindBinaries() {
    std::vector<std::filesystem::path> found;
    const std::filesystem::path all = "/usr/lib/postgresql";
    if (std::filesystem::exists(all)) {
      for (const auto& version : std::filesystem::directory_iterator(all)) {
        if (std::filesystem::exists(version.path() / "bin/initdb")) {
          found.push_back(version.path() / "bin");
        }
      }
    }
    if (found.empty()) {
      throw std::runtime_error("PostgreSQL is not installed: run scripts/setup.sh --test");
    }
    return *std::ranges::max_element(found);
  }
  std::string data() const { return (directory_ / "data").string(); }
  std::string output() const { return (directory_ / "output").string(); }

  pid_t Spawn(std::vector<std::string> command) const {
    const std::string program = (binaries_ / command[0]).string();
    std::vector<char*> arguments;
    for (std::string& word : command) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const std::string to = output();
    const pid_t child = ::fork();
    if (child != 0) return child;
    if (user_ != 0 && (::setgid(group_) != 0 || ::setuid(user_) != 0)) ::_exit(126);
    ::prctl(PR_SET_PDEATHSIG, SIGQUIT);
    ::setsid();
    if (std::freopen(to.c_str(), "a", stdout) == nullptr) ::_exit(126);
    ::dup2(STDOUT_FILENO, STDERR_FILENO);
    if (::chdir("/") != 0) ::_exit(126);
    ::execv(program.c_str(), arguments.data());
    ::_exit(127);
  }

  std::filesystem::path binaries_;
  std::filesystem::path directory_;
  uid_t user_ = 0;
  gid_t group_ = 0;
  pid_t process_ = 0;
};

}  // namespace codband
