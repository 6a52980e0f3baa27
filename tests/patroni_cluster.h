#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "codband/server/http/http_client.h"
#include "tests/postgres_server.h"

namespace codband {

// Three PostgreSQL servers of which Patroni makes a primary, a synchronous standby and another
// standby, by an etcd: as three machines of a real cluster, on ports of the loopback interface,
// below one directory, as processes of this one. A failover is Patroni's business alone.
class PatroniCluster {
 public:
  static constexpr std::size_t kMachines = 3;

  PatroniCluster() {
    directory_ = std::filesystem::path("/dev/shm") / fmt::format("codband_patroni_{}", ::getpid());
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    const passwd* user = ::getpwnam("postgres");
    if (user == nullptr) throw std::runtime_error("there is no user 'postgres'");
    if (::geteuid() == 0) {
      user_ = user->pw_uid;
      group_ = user->pw_gid;
      if (::chown(directory_.c_str(), user_, group_) != 0) throw std::runtime_error("chown");
    }
    etcd_port_ = FreePort();
    const std::string peer = fmt::format("http://127.0.0.1:{}", FreePort());
    const std::string client = fmt::format("http://127.0.0.1:{}", etcd_port_);
    etcd_ = Spawn("etcd", {"etcd", "--name", "one", "--data-dir", (directory_ / "etcd").string(),
                           "--listen-client-urls", client, "--advertise-client-urls", client,
                           "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                           "--initial-cluster", "one=" + peer, "--unsafe-no-fsync"});
    for (std::size_t i = 0; i < kMachines; ++i) {
      machines_[i].port = FreePort();
      machines_[i].rest_port = FreePort();
      WriteConfiguration(i);
    }
    for (std::size_t i = 0; i < kMachines; ++i) Start(i);
    if (!AwaitPrimaryWithStandby()) {
      throw std::runtime_error("Patroni does not come up; see " + directory_.string());
    }
  }
  ~PatroniCluster() {
    for (std::size_t i = 0; i < kMachines; ++i) Kill(i);
    End(etcd_);
    std::filesystem::remove_all(directory_);
  }
  PatroniCluster(const PatroniCluster&) = delete;
  PatroniCluster& operator=(const PatroniCluster&) = delete;

  // Whether the programs are there: packages patroni and etcd-server.
  static bool IsInstalled() {
    return !FindProgram("patroni").empty() && !FindProgram("etcd").empty();
  }

  std::string Dsn(const std::string& database) const {
    std::string ports;
    std::string hosts;
    for (const Machine& machine : machines_) {
      ports += fmt::format("{}{}", ports.empty() ? "" : ",", machine.port);
      hosts += hosts.empty() ? "127.0.0.1" : ",127.0.0.1";
    }
    return fmt::format("host={} port={} user=codband dbname={}", hosts, ports, database);
  }

  void Start(std::size_t machine) {
    if (machines_[machine].patroni != 0) return;
    machines_[machine].patroni =
        Spawn(fmt::format("patroni{}", machine), {"patroni", Configuration(machine).string()});
  }
  // kill -9 of everything that runs on the machine.
  void Kill(std::size_t machine) {
    pid_t& patroni = machines_[machine].patroni;
    if (patroni == 0) return;
    std::vector<pid_t> all = {patroni};
    if (const auto postmaster = Postmaster(machine)) {
      all.push_back(*postmaster);
      AddChildren(*postmaster, all);
    }
    for (const pid_t each : all) ::kill(each, SIGKILL);
    ::waitpid(patroni, nullptr, 0);
    patroni = 0;
  }

  // The primary, if one can be written; and the synchronous standby that it has now.
  struct Roles {
    std::size_t primary = 0;
    std::optional<std::size_t> standby = {};
  };
  std::optional<Roles> FindRoles() const {
    for (std::size_t i = 0; i < kMachines; ++i) {
      const std::string answer =
          Ask(i,
              "SELECT coalesce((SELECT application_name FROM pg_stat_replication WHERE "
              "sync_state = 'sync' LIMIT 1), '') WHERE NOT pg_is_in_recovery()");
      if (answer == kNoAnswer) continue;
      Roles roles{.primary = i};
      for (std::size_t k = 0; k < kMachines; ++k) {
        if (answer == Name(k) && IsNotedAsStandby(k)) roles.standby = k;
      }
      return roles;
    }
    return std::nullopt;
  }
  bool AwaitPrimaryWithStandby() const {
    for (int i = 0; i < 1200; ++i) {
      const auto roles = FindRoles();
      if (roles && roles->standby) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return false;
  }
  // All machines are back: the primary has two standbys that stream.
  bool AwaitAllMachines() const {
    for (int i = 0; i < 1200; ++i) {
      const auto roles = FindRoles();
      if (roles && roles->standby &&
          Ask(roles->primary,
              "SELECT count(*) FROM pg_stat_replication WHERE "
              "state = 'streaming'") == "2") {
        return true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return false;
  }
  // Runs a statement on the primary.
  bool Run(const std::string& sql, const std::string& database = "postgres") const {
    const auto roles = FindRoles();
    return roles && Ask(roles->primary, sql, database) != kNoAnswer;
  }
  // Sessions of codband at the machine that has most of them.
  int CountSessions() const {
    int most = 0;
    for (std::size_t i = 0; i < kMachines; ++i) {
      const std::string answer =
          Ask(i, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'codband'");
      if (answer != kNoAnswer) most = std::max(most, std::stoi(answer));
    }
    return most;
  }
  const std::filesystem::path& directory() const { return directory_; }

 private:
  struct Machine {
    std::uint16_t port = 0;
    std::uint16_t rest_port = 0;
    pid_t patroni = 0;
  };
  static constexpr const char* kNoAnswer = "no answer";

  static std::string Name(std::size_t machine) { return fmt::format("pg{}", machine); }
  static std::filesystem::path FindProgram(const std::string& name) {
    for (const char* folder : {"/usr/bin", "/usr/local/bin"}) {
      const auto path = std::filesystem::path(folder) / name;
      if (std::filesystem::exists(path)) return path;
    }
    return {};
  }
  static std::uint16_t FreePort() {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    if (::bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      throw std::runtime_error("there is no free port");
    }
    ::close(fd);
    return ntohs(address.sin_port);
  }
  static void AddChildren(pid_t process, std::vector<pid_t>& all) {
    std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", process));
    for (pid_t child = 0; children >> child;) all.push_back(child);
  }
  std::filesystem::path Data(std::size_t machine) const { return directory_ / Name(machine); }
  std::filesystem::path Configuration(std::size_t machine) const {
    return directory_ / (Name(machine) + ".yml");
  }
  // If it runs.
  std::optional<pid_t> Postmaster(std::size_t machine) const {
    std::ifstream file(Data(machine) / "postmaster.pid");
    pid_t process = 0;
    if (!(file >> process)) return std::nullopt;
    std::ifstream command(fmt::format("/proc/{}/cmdline", process));
    const std::string text((std::istreambuf_iterator<char>(command)), {});
    // Not another process that has the number now.
    if (text.find(Data(machine).string()) == text.npos) return std::nullopt;
    return process;
  }

  // Short times, so that a failover takes seconds; strict: never without a synchronous standby.
  void WriteConfiguration(std::size_t machine) const {
    const Machine& here = machines_[machine];
    std::ofstream(Configuration(machine)) << fmt::format(
        R"(scope: drill
name: {name}
restapi: {{listen: '127.0.0.1:{rest}', connect_address: '127.0.0.1:{rest}'}}
etcd3: {{host: '127.0.0.1:{etcd}'}}
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 1
    retry_timeout: 3
    primary_start_timeout: 0
    synchronous_mode: true
    synchronous_mode_strict: true
    postgresql:
      use_pg_rewind: true
      parameters:
        fsync: 'off'
        wal_log_hints: 'on'
        max_connections: 60
        shared_buffers: 16MB
        autovacuum: 'off'
        log_min_messages: fatal
  initdb: [{{encoding: UTF8}}, {{locale: C}}, no-sync]
postgresql:
  listen: '127.0.0.1:{port}'
  connect_address: '127.0.0.1:{port}'
  data_dir: {data}
  bin_dir: {binaries}
  pgpass: {directory}/{name}.pgpass
  pg_hba: ['host all all 127.0.0.1/32 trust', 'host replication all 127.0.0.1/32 trust',
           'local all all trust']
  parameters: {{unix_socket_directories: '{directory}'}}
  authentication:
    superuser: {{username: codband}}
    replication: {{username: codband}}
    rewind: {{username: codband}}
)",
        fmt::arg("name", Name(machine)), fmt::arg("rest", here.rest_port),
        fmt::arg("etcd", etcd_port_), fmt::arg("port", here.port),
        fmt::arg("data", Data(machine).string()),
        fmt::arg("binaries", PostgresServer::FindBinaries().string()),
        fmt::arg("directory", directory_.string()));
  }

  pid_t Spawn(const std::string& output, std::vector<std::string> command) const {
    const std::string program = FindProgram(command[0]).string();
    const std::string to = (directory_ / (output + ".log")).string();
    std::vector<char*> arguments;
    for (std::string& word : command) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    std::fflush(stdout);  // else the child writes it again
    const pid_t child = ::fork();
    if (child != 0) return child;
    if (user_ != 0 && (::setgid(group_) != 0 || ::setuid(user_) != 0)) ::_exit(126);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    ::setsid();
    if (std::freopen(to.c_str(), "a", stdout) == nullptr) ::_exit(126);
    ::dup2(STDOUT_FILENO, STDERR_FILENO);
    if (::chdir("/") != 0) ::_exit(126);
    ::execv(program.c_str(), arguments.data());
    ::_exit(127);
  }
  static void End(pid_t& process) {
    if (process == 0) return;
    ::kill(process, SIGKILL);
    ::waitpid(process, nullptr, 0);
    process = 0;
  }

  // Whether Patroni would promote it. That is some moments after PostgreSQL waits for it; if the
  // primary dies in between, nobody is promoted before it is back.
  bool IsNotedAsStandby(std::size_t machine) const {
    constexpr std::chrono::seconds kPatience(2);
    auto client = server::HttpClient::Connect(
        {.host = "127.0.0.1", .port = machines_[machine].rest_port}, kPatience);
    if (!client.ok()) return false;
    const auto reply = client.value()->Send({.target = "/sync"}, kPatience);
    return reply.ok() && reply.value().status == 200;
  }

  // The first value of the answer; kNoAnswer if there is none.
  std::string Ask(std::size_t machine, const std::string& sql,
                  const std::string& database = "postgres") const {
    if (machines_[machine].patroni == 0) return kNoAnswer;
    const std::string dsn =
        fmt::format("host=127.0.0.1 port={} user=codband dbname={} connect_timeout=2",
                    machines_[machine].port, database);
    PGconn* connection = PQconnectdb(dsn.c_str());
    std::string answer = kNoAnswer;
    if (PQstatus(connection) == CONNECTION_OK) {
      PGresult* result = PQexec(connection, sql.c_str());
      const ExecStatusType status = PQresultStatus(result);
      if (status == PGRES_COMMAND_OK) answer.clear();
      if (status == PGRES_TUPLES_OK && PQntuples(result) > 0) answer = PQgetvalue(result, 0, 0);
      PQclear(result);
    }
    PQfinish(connection);
    return answer;
  }

  std::filesystem::path directory_;
  uid_t user_ = 0;
  gid_t group_ = 0;
  pid_t etcd_ = 0;
  std::uint16_t etcd_port_ = 0;
  std::array<Machine, kMachines> machines_;
};

}  // namespace codband
