// codband serve: the recommender as an HTTP service.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <ctime>
#include <memory>
#include <optional>

#include "codband/base/parse.h"
#include "codband/cli/command.h"
#include "codband/server/admin/logger.h"
#include "codband/server/admin/serving.h"
#include "codband/server/config/config.h"

namespace codband::cli {
namespace {

struct ServeFlags {
  std::string data;
  std::string listen;
  std::string config;
  std::vector<std::string> settings;  // section.key=value
  bool print_config = false;
  bool insecure = false;
  bool demo = false;
  std::string partitions;
  server::ClusterOptions cluster;
};

constexpr std::string_view kServeFooter = R"(
Everything that was acknowledged survives a crash: rewards, the catalogue, decisions that wait for
their reward. Start it again on the same directory and it goes on.

The command line overrides the environment, the environment overrides the file. The setting
wait_seconds in the section [rewards] of the file is the environment variable
CODBAND_REWARDS_WAIT_SECONDS and the flag --set rewards.wait_seconds=60.

To serve other machines it needs keys, which requests send in the header X-API-Key: 'codband keys'
makes a file of them for the setting keys.file. One key that may do everything can also come from the
environment variable CODBAND_API_KEY or from the file that server.api_key_file names. Changes of
keys.file count within a second, or at once after SIGHUP, which also reads tls.certificate and
tls.key again.

Examples:
  codband serve --demo                                   a demonstration, on port 8080
  codband serve --data my-data
  codband serve --print-config >config.toml              every setting, explained
  codband serve --config config.toml --data /var/lib/codband --listen 0.0.0.0:8080
  codband serve --data local --cluster 'host=db1,db2 dbname=codband' --name a

Stop it with Ctrl-C or SIGTERM: it answers the requests it has read, writes a checkpoint and exits.

Exit code: 0 stopped cleanly, 2 wrong flags or settings, 3 the data directory cannot be used (in use,
not writable, damaged), 4 the address cannot be listened on, 5 stopped while the data could not be
written (nothing that was acknowledged is lost), 6 the database of the cluster does not answer or does
not let it in, 1 any other failure. Lines for the operator go to standard error: see the settings
log.format and log.level.)";

// The signals that the program waits for, blocked in all threads that are started after it. SIGINT
// and SIGTERM stop it; SIGHUP makes it read its keys and its certificate again, except on a
// terminal, which sends it when it is closed: there it stops the program.
class Signals {
 public:
  enum class Came { kNone, kReload, kStop };

  Signals() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    // Under nohup SIGHUP is ignored, and stays so.
    struct sigaction hangup {};
    if (sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN) {
      sigaddset(&signals_, SIGHUP);
    }
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
    std::signal(SIGPIPE, SIG_IGN);
  }
  // From now on a second signal ends the program at once.
  ~Signals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // Waits at most `ms` for a signal.
  Came Wait(std::int64_t ms) const {
    const timespec timeout{.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1'000'000};
    const int signal = sigtimedwait(&signals_, nullptr, &timeout);
    if (signal <= 0) return Came::kNone;
    return signal == SIGHUP && isatty(STDIN_FILENO) == 0 ? Came::kReload : Came::kStop;
  }

 private:
  sigset_t signals_{};
  sigset_t before_{};
};

Result<server::ServeConfig> ReadConfig(const ServeFlags& flags) {
  server::ConfigSources sources{.file = flags.config, .environment = server::ProcessEnvironment()};
  if (!flags.data.empty()) sources.flags.push_back({"--data", "server.data", flags.data});
  if (!flags.listen.empty()) sources.flags.push_back({"--listen", "server.listen", flags.listen});
  if (flags.insecure) sources.flags.push_back({"--insecure", "server.insecure", "true"});
  for (const std::string& setting : flags.settings) {
    const std::size_t equals = setting.find('=');
    if (equals == setting.npos) {
      return Status::InvalidArgument(
          fmt::format("--set = '{}', expected section.key=value", setting));
    }
    sources.flags.push_back({"--set", setting.substr(0, equals), setting.substr(equals + 1)});
  }
  return server::ReadServeConfig(sources);
}

// Serves until a signal comes.
Status Serve(const server::ServeConfig& config, const ServeFlags& flags, int& exit_code) {
  std::optional<Signals> signals(std::in_place);
  server::Logger log(config.log);
  log.Write(LogLevel::kInfo, "config",
            fmt::format("settings of {}the environment and the command line",
                        flags.config.empty() ? "" : flags.config + ", "));
  server::ServeExit exit = server::ServeExit::kFailed;
  const auto started = server::Serving::Start(config,
                                              {.demo = flags.demo,
                                               .any_port = flags.demo && flags.listen.empty(),
                                               .log = log.sink(),
                                               .cluster = flags.cluster},
                                              &exit);
  if (!started.ok()) {
    // Of other failures the status tells as much.
    if (exit != server::ServeExit::kFailed) exit_code = static_cast<int>(exit);
    return started.status();
  }
  server::Serving& serving = *started.value();
  log.Write(
      LogLevel::kInfo, "start",
      fmt::format("serves {} at {} as process {}", config.data.string(), serving.url(), getpid()));
  bool stop = false;
  while (!serving.warm() && !stop) stop = signals->Wait(20) == Signals::Came::kStop;
  fmt::print("{}Stop it with Ctrl-C or: kill {}\n", serving.Greeting(), getpid());
  std::fflush(stdout);
  for (const std::string& note : serving.notes()) log.Write(LogLevel::kWarning, "start", note);

  const auto report = [&log](std::string_view cause, const std::optional<std::string>& news) {
    if (news) log.Write(LogLevel::kWarning, cause, *news);
  };
  while (!stop) {
    const Signals::Came came = signals->Wait(1000);
    stop = came == Signals::Came::kStop;
    report("keys",
           serving.ReloadKeys(came == Signals::Came::kReload ? server::KeyGate::When::kNow
                                                             : server::KeyGate::When::kChanged));
    if (came == Signals::Came::kReload) report("tls", serving.ReloadTls());
    report("decision_log", serving.DecisionLogNews());
    log.Flush();
  }
  signals.reset();
  log.Write(LogLevel::kInfo, "stop", "stopping");
  const Status stopped = serving.Stop();
  report("decision_log", serving.DecisionLogNews());
  log.Flush(server::Logger::Now::kAll);
  if (stopped.ok()) {
    log.Write(LogLevel::kInfo, "stop", "stopped cleanly");
    return {};
  }
  exit_code = static_cast<int>(server::ServeExit::kTrouble);
  return {stopped.code(),
          fmt::format("stopped in trouble: {}; what was acknowledged is in the log, "
                      "and the next start learns it",
                      stopped.message())};
}

Status RunServe(ServeFlags flags, int& exit_code) {
  if (!flags.partitions.empty()) {
    const auto partitions = ParseNumber<std::uint32_t>(flags.partitions);
    if (!partitions || *partitions == 0) {
      return Status::InvalidArgument(fmt::format("--partitions = {}, expected 1 to {}",
                                                 flags.partitions, store::kMostPartitions));
    }
    flags.cluster.partitions = *partitions;
  }
  auto config = ReadConfig(flags);
  if (!config.ok()) return config.status();
  if (flags.print_config) {
    fmt::print("{}", server::PrintServeConfig(config.value()));
    return {};
  }
  CODBAND_RETURN_IF_ERROR(server::CheckExposure(config.value()));
  CODBAND_RETURN_IF_ERROR(server::CheckClusterOptions(flags.cluster));
  ::umask(S_IRWXG | S_IRWXO);  // RocksDB's files too are for their owner alone
  if (config.value().data.empty() && flags.demo) config.value().data = server::DemoDirectory();
  if (config.value().data.empty()) {
    return Status::InvalidArgument(
        "--data is missing: give a data directory, or --demo for a demonstration");
  }
  return Serve(config.value(), flags, exit_code);
}

}  // namespace

void AddServeCommand(CLI::App& app, Status& status, int& exit_code) {
  auto flags = std::make_shared<ServeFlags>();
  const Command command(app, "serve", "The recommender as an HTTP service", kServeFooter);
  command.Option("--data", flags->data, "DIR", "The data directory; created if it does not exist");
  command.Option("--listen", flags->listen, "HOST:PORT",
                 "Address to listen on (default 127.0.0.1:8080; port 0: any free port)");
  command.Option("--config", flags->config, "FILE", "Settings, as --print-config prints them");
  command.Repeated("--set", flags->settings, "SECTION.KEY=VALUE",
                   "One setting; may be given several times");
  command.Switch("--print-config", flags->print_config,
                 "Print the settings that would be used, with their defaults, and exit");
  command.Switch("--insecure", flags->insecure, "Serve other machines although there is no key");
  command.Switch("--demo", flags->demo,
                 "Serve simulated listeners of a small world of music (default data directory: "
                 "out/demo)");
  command.Repeated(
      "--cluster", flags->cluster.dsns, "DSN",
      "Be a node of a cluster that keeps its log in this PostgreSQL (docs/cluster.md); "
      "several of them share the partitions");
  command.Option("--name", flags->cluster.name, "NODE", "The node's name, unlike all others");
  command.Option("--partitions", flags->partitions, "P",
                 "Of a new cluster: how many slices its users are spread over, for good (default "
                 "1)");
  command.Option("--node-url", flags->cluster.url, "URL",
                 "Where other nodes reach this one (default: as it listens)");
  command.Switch(
      "--no-standby", flags->cluster.no_standby,
      "Follow no partition that other nodes serve: its takeovers begin with catching up");
  command.Run(status, [flags, &exit_code] { return RunServe(*flags, exit_code); });
}

}  // namespace codband::cli
