// codband serve: the recommender as an HTTP service.
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <memory>
#include <system_error>

#include "codband/base/file.h"
#include "codband/base/version.h"
#include "codband/cli/command.h"
#include "codband/server/admin/data_directory.h"
#include "codband/server/admin/demo.h"
#include "codband/server/config/config.h"
#include "codband/server/http/server.h"

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
};

constexpr std::string_view kFooter = R"(
Everything that was acknowledged survives a crash: rewards, the catalogue, decisions that wait for
their reward. Start it again on the same directory and it goes on.

Settings come from the command line, else from the environment, else from the file, else they are
defaults. A setting such as wait_seconds in the section [rewards] of the file is the environment
variable CODBAND_REWARDS_WAIT_SECONDS and the flag --set rewards.wait_seconds=60. The API key that
requests must bring in the header X-API-Key is in the environment variable CODBAND_API_KEY or in the
file that server.api_key_file names.

Examples:
  codband serve --demo                                   something to look at, on port 8080
  codband serve --data my-data
  codband serve --print-config >config.toml              every setting, explained
  codband serve --config config.toml --data /var/lib/codband --listen 0.0.0.0:8080

Stop it with Ctrl-C or SIGTERM: it answers what it has read, then exits with 0.)";

// The signals that stop the program, kept from all threads from its construction on.
class StopSignals {
 public:
  StopSignals() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    // Under nohup the end of the terminal is no reason to stop.
    struct sigaction hangup {};
    if (sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN) {
      sigaddset(&signals_, SIGHUP);
    }
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
    std::signal(SIGPIPE, SIG_IGN);
  }
  // From now on a second signal ends the program at once.
  ~StopSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Waits for a signal for so long; whether one came.
  bool Wait(std::int64_t ms) const {
    const timespec timeout{.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1'000'000};
    return sigtimedwait(&signals_, nullptr, &timeout) > 0;
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

// Where a demo keeps its data if nothing is said: below the current directory, or where everybody
// may write.
std::filesystem::path DemoDirectory() {
  std::filesystem::path directory = "out/demo";
  if (EnsureDirectory(directory).ok()) return directory;
  return std::filesystem::temp_directory_path() / fmt::format("codband-demo-{}", getuid());
}

std::string ReachableUrl(const server::ServerOptions& options, std::uint16_t port) {
  std::string host = options.host;
  if (host == "0.0.0.0") host = "127.0.0.1";
  if (host == "::") host = "::1";
  return "http://" + server::FormatListenAddress({std::move(host), port});
}

Result<std::unique_ptr<engine::Engine>> OpenEngine(const server::ServeConfig& config,
                                                   server::DecisionLog* log) {
  CODBAND_RETURN_IF_ERROR(EnsureDirectory(config.data));
  auto store = server::OpenDataStore(config.data, config.store);
  if (!store.ok()) return store.status();
  std::function<void(const engine::FinishedDecision&)> on_finished;
  if (log != nullptr) {
    on_finished = [log](const engine::FinishedDecision& decision) { log->Append(decision); };
  }
  auto engine =
      engine::Engine::Open(std::move(store).value(), config.engine, std::move(on_finished));
  if (engine.ok() || config.engine.dim == 0) return engine;
  return Status(engine.status().code(),
                fmt::format("{} (features.dimension is {}; 0 takes what the directory has)",
                            engine.status().message(), config.engine.dim));
}

// A demo that was told no port takes another one if its own is taken.
Result<std::unique_ptr<server::Server>> StartServer(engine::Engine& engine,
                                                    server::ServerOptions options, bool any_port) {
  auto server = server::Server::Start(engine, options);
  if (!server.ok() && server.status().code() == StatusCode::kUnavailable && any_port) {
    options.port = 0;
    server = server::Server::Start(engine, options);
  }
  if (server.ok() || server.status().code() != StatusCode::kUnavailable) return server;
  return Status(
      StatusCode::kUnavailable,
      fmt::format("{}; choose another with --listen HOST:PORT, port 0 for any that is free",
                  server.status().message()));
}

void PrintDemoHints(const std::string& url, const server::DemoWorld& world) {
  const std::string& user = world.user(0);
  fmt::print(
      "\n{} artists, {} listeners who change their minds now and then. Try it:\n\n"
      "  curl -s '{}/v1/rank?explain=true' -d '{{\"userId\": \"{}\", \"topK\": 3}}'\n"
      "  curl -s {}/v1/events/EVENT_ID/reward -d '{{\"value\": 1}}'  # EVENT_ID of the reply "
      "above\n"
      "  curl -s {}/v1/users/{}\n\n",
      world.items().size(), server::DemoOptions{}.users, url, user, url, url, user);
}

// Says once when the decision log gets into trouble, and once when it is out of it.
void ReportLog(const server::DecisionLog& log, bool& in_trouble) {
  const server::DecisionLogStats stats = log.Stats();
  if (stats.last_error.ok() == !in_trouble) return;
  in_trouble = !in_trouble;
  if (in_trouble) {
    fmt::print(stderr, "codband serve: decision log: {}\n", stats.last_error.message());
  } else {
    fmt::print(stderr, "codband serve: decision log: writes again; {} decisions were lost\n",
               stats.failed);
  }
}

Status Serve(const server::ServeConfig& config, const ServeFlags& flags) {
  std::optional<StopSignals> signals(std::in_place);
  std::unique_ptr<server::DecisionLog> log;
  if (!config.decision_log.directory.empty()) {
    auto opened = server::DecisionLog::Open(config.decision_log);
    if (!opened.ok()) return opened.status();
    log = std::move(opened).value();
  }
  auto engine = OpenEngine(config, log.get());
  if (!engine.ok()) return engine.status();
  server::ServerOptions options = config.server;
  options.decision_log = log.get();
  auto server = StartServer(*engine.value(), options, flags.demo && flags.listen.empty());
  if (!server.ok()) return server.status();
  const std::string url = ReachableUrl(config.server, server.value()->port());
  CODBAND_RETURN_IF_ERROR(server::WriteServerNote(config.data, {.url = url, .pid = getpid()}));

  std::unique_ptr<server::Demo> demo;
  bool stop = false;
  if (flags.demo) {
    auto started = server::Demo::Start(*engine.value(), {.seed = config.engine.seed});
    if (!started.ok()) return started.status();
    demo = std::move(started).value();
    while (!demo->warm() && !stop) stop = signals->Wait(20);
  }
  fmt::print("codband {} listens on {}\nData in {}, policy {}, {} features{}\n", kVersion, url,
             config.data.string(), config.engine.policy, engine.value()->dim(),
             config.server.api_key.empty() ? "" : ", API key asked for");
  if (demo != nullptr) PrintDemoHints(url, demo->world());
  fmt::print("Stop it with Ctrl-C or: kill {}\n", getpid());
  std::fflush(stdout);

  bool in_trouble = false;
  while (!stop) {
    stop = signals->Wait(1000);
    if (log != nullptr) ReportLog(*log, in_trouble);
  }
  signals.reset();
  fmt::print(stderr, "codband serve: stopping\n");
  server.value()->Stop();
  server::RemoveServerNote(config.data);
  demo.reset();
  server.value().reset();
  engine.value().reset();
  if (log != nullptr) {
    log->Stop();
    ReportLog(*log, in_trouble);
  }
  return {};
}

Status RunServe(const ServeFlags& flags) {
  auto config = ReadConfig(flags);
  if (!config.ok()) return config.status();
  if (flags.print_config) {
    fmt::print("{}", server::PrintServeConfig(config.value()));
    return {};
  }
  CODBAND_RETURN_IF_ERROR(server::CheckExposure(config.value()));
  if (config.value().data.empty() && flags.demo) config.value().data = DemoDirectory();
  if (config.value().data.empty()) {
    return Status::InvalidArgument(
        "--data is missing: say which directory keeps the data, or --demo for a demonstration");
  }
  return Serve(config.value(), flags);
}

}  // namespace

void AddServeCommand(CLI::App& app, Status& status) {
  auto flags = std::make_shared<ServeFlags>();
  const Command command(app, "serve", "The recommender as an HTTP service", kFooter);
  command.Option("--data", flags->data, "DIR", "Where everything is kept; made if it is not there");
  command.Option("--listen", flags->listen, "HOST:PORT",
                 "Where to listen (default 127.0.0.1:8080; port 0: any that is free)");
  command.Option("--config", flags->config, "FILE", "Settings, as --print-config prints them");
  command.Repeated("--set", flags->settings, "SECTION.KEY=VALUE",
                   "One setting; may be given several times");
  command.Switch("--print-config", flags->print_config,
                 "Print the settings that would be used, with their defaults, and exit");
  command.Switch("--insecure", flags->insecure,
                 "Listen to other machines although there is no API key");
  command.Switch("--demo", flags->demo,
                 "With simulated listeners of a small world of music; the data is in out/demo "
                 "unless --data says otherwise");
  command.Run(status, [flags] { return RunServe(*flags); });
}

}  // namespace codband::cli
