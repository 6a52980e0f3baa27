#pragma once

#include <fmt/format.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace codband {

// A PostgreSQL of the tests' own: made in a directory in memory, reached by a socket in it, by no
// network, and gone at the end. PostgreSQL refuses to run as root: there it runs as `postgres`.
class PostgresServer {
 public:
  struct Options {
    std::filesystem::path parent = "/dev/shm";          // of its directory
    std::vector<std::string> settings = {"fsync=off"};  // as postgresql.conf has them
    std::vector<std::string> initdb = {};               // more flags
    std::string preload = {};                           // a library that is loaded first
  };

  // One for all tests of this process; it ends with it.
  static PostgresServer& Shared() {
    static PostgresServer server;
    return server;
  }

  PostgresServer() : PostgresServer(Options{}) {}
  explicit PostgresServer(Options options) : options_(std::move(options)) {
    MakeDirectory();
    std::vector<std::string> command = {"initdb",  "-D",         data(),      "-U",
                                        "codband", "-A",         "trust",     "-E",
                                        "UTF8",    "--locale=C", "--no-sync", "--no-instructions"};
    command.insert(command.end(), options_.initdb.begin(), options_.initdb.end());
    Run(std::move(command));
    Start();
  }
  // A standby of another one, which it calls itself `name` to; not synchronous before the primary
  // is told so.
  PostgresServer(const PostgresServer& primary, const std::string& name)
      : options_(primary.options_) {
    MakeDirectory();
    Run({"pg_basebackup", "-D", data(), "-R", "-c", "fast", "--no-sync", "-d",
         fmt::format("{} application_name={}", primary.Dsn("replication"), name)});
    Start();
  }
  ~PostgresServer() {
    Stop(SIGQUIT);
    std::filesystem::remove_all(directory_);
  }
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  // Of a list of servers: the one that can be written is used.
  static std::string Dsn(const std::vector<const PostgresServer*>& servers,
                         const std::string& database) {
    std::string hosts;
    for (const PostgresServer* server : servers) {
      hosts += (hosts.empty() ? "" : ",") + server->directory_.string();
    }
    return fmt::format("host={} user=codband dbname={}", hosts, database);
  }
  std::string Dsn(const std::string& database = "postgres") const {
    return fmt::format("host={} user=codband dbname={}", directory_.string(), database);
  }

  // Returns when it accepts connections.
  void Start() {
    std::vector<std::string> command = {"postgres", "-D", data(), "-k", directory_.string()};
    std::vector<std::string> settings = {"listen_addresses=", "max_connections=100",
                                         "shared_buffers=32MB", "log_min_messages=fatal",
                                         "autovacuum=off"};
    settings.insert(settings.end(), options_.settings.begin(), options_.settings.end());
    for (const std::string& setting : settings) command.insert(command.end(), {"-c", setting});
    process_ = Spawn(std::move(command));
    for (int i = 0; i < 1000; ++i) {
      if (PQping(Dsn().c_str()) == PQPING_OK) return;
      if (!Lives()) break;
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
  // kill -9 of all its processes at once, as if the machine had died.
  void Kill() {
    if (process_ == 0) return;
    SignalAll(SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = 0;
  }
  // All its processes stop, as if the machine were cut off: it accepts connections and says
  // nothing.
  void Freeze() const { SignalAll(SIGSTOP); }
  // Whether it still runs; it may have ended by itself.
  bool Lives() {
    if (process_ != 0 && ::waitpid(process_, nullptr, WNOHANG) == process_) process_ = 0;
    return process_ != 0;
  }
  // A standby becomes the primary.
  void Promote() { Run({"pg_ctl", "-D", data(), "-w", "promote"}); }
  const std::filesystem::path& directory() const { return directory_; }
  // Of the newest that is installed.
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

 private:
  void MakeDirectory() {
    static int count = 0;
    binaries_ = FindBinaries();
    directory_ = options_.parent / fmt::format("codband_postgres_{}_{}", ::getpid(), ++count);
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    if (::geteuid() != 0) return;
    const passwd* user = ::getpwnam("postgres");
    if (user == nullptr) throw std::runtime_error("there is no user 'postgres'");
    user_ = user->pw_uid;
    group_ = user->pw_gid;
    if (::chown(directory_.c_str(), user_, group_) != 0) throw std::runtime_error("chown");
  }
  void SignalAll(int signal) const {
    // What stands still forks no process that would be missed.
    ::kill(process_, SIGSTOP);
    for (int i = 0; i < 1000 && Runs(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::vector<pid_t> all = {process_};
    std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", process_));
    for (pid_t child = 0; children >> child;) all.push_back(child);
    for (const pid_t each : all) ::kill(each, signal);
  }
  // Neither stopped nor ended.
  bool Runs() const {
    std::ifstream status(fmt::format("/proc/{}/stat", process_));
    std::string text;
    std::getline(status, text);
    const std::size_t state = text.rfind(')') + 2;
    return state < text.size() && text[state] != 'T' && text[state] != 'Z';
  }
  void Run(std::vector<std::string> command) const {
    const std::string program = command[0];
    int code = 0;
    ::waitpid(Spawn(std::move(command)), &code, 0);
    if (code != 0) throw std::runtime_error(program + " failed; see " + output());
  }

  std::string data() const { return (directory_ / "data").string(); }
  std::string output() const { return (directory_ / "output").string(); }

  pid_t Spawn(std::vector<std::string> command) const {
    const std::string program = (binaries_ / command[0]).string();
    std::vector<char*> arguments;
    for (std::string& word : command) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const std::string to = output();
    std::fflush(stdout);  // else the child writes it again
    const pid_t child = ::fork();
    if (child != 0) return child;
    if (user_ != 0 && (::setgid(group_) != 0 || ::setuid(user_) != 0)) ::_exit(126);
    ::prctl(PR_SET_PDEATHSIG, SIGQUIT);
    ::setsid();
    if (std::freopen(to.c_str(), "a", stdout) == nullptr) ::_exit(126);
    ::dup2(STDOUT_FILENO, STDERR_FILENO);
    if (::chdir("/") != 0) ::_exit(126);
    if (!options_.preload.empty()) ::setenv("LD_PRELOAD", options_.preload.c_str(), 1);
    ::execv(program.c_str(), arguments.data());
    ::_exit(127);
  }

  const Options options_;
  std::filesystem::path binaries_;
  std::filesystem::path directory_;
  uid_t user_ = 0;
  gid_t group_ = 0;
  pid_t process_ = 0;
};

}  // namespace codband
