#include "codband/server/admin/serving.h"

#include <fmt/format.h>
#include <unistd.h>

#include <iterator>
#include <utility>

#include "codband/base/file.h"
#include "codband/base/version.h"
#include "codband/server/admin/data_directory.h"
#include "codband/server/api/api.h"
#include "codband/server/config/listen_address.h"
#include "codband/server/config/settings_json.h"
#include "codband/server/http/descriptors.h"
#include "codband/server/http/tls_stream.h"

namespace codband::server {
namespace {

std::string ReachableUrl(std::string_view scheme, std::string host, std::uint16_t port) {
  if (host == "0.0.0.0") host = "127.0.0.1";
  if (host == "::") host = "::1";
  return fmt::format("{}://{}", scheme, FormatListenAddress({std::move(host), port}));
}

}  // namespace

Result<std::unique_ptr<Serving>> Serving::Start(const ServeConfig& config,
                                                const ServingOptions& options, ServeExit* exit) {
  std::unique_ptr<Serving> serving(new Serving(config, options.log));
  ServeExit ignored = ServeExit::kFailed;
  ServeExit& how = exit == nullptr ? ignored : *exit;
  how = ServeExit::kFailed;
  RaiseDescriptorLimit();
  // Before the data is opened, which may take a while.
  if (!config.server.tls.empty()) CODBAND_RETURN_IF_ERROR(LoadTls(config.server.tls).status());
  CODBAND_RETURN_IF_ERROR(serving->OpenKeys());
  CODBAND_RETURN_IF_ERROR(serving->OpenDecisionLog());
  const bool is_node = !options.cluster.dsns.empty();
  if (is_node && options.demo) {
    return Status::InvalidArgument("--demo and --cluster: a demonstration has a server of its own");
  }
  if (const Status status = is_node ? serving->OpenCluster(options.cluster) : serving->OpenEngine();
      !status.ok()) {
    const bool no_answer = is_node && status.code() == StatusCode::kUnavailable;
    how = no_answer ? ServeExit::kDatabase : ServeExit::kData;
    if (status.code() == StatusCode::kInvalidArgument) how = ServeExit::kSettings;
    return status;
  }
  if (const Status status = serving->Listen(options.any_port); !status.ok()) {
    how = ServeExit::kAddress;
    return status;
  }
  CODBAND_RETURN_IF_ERROR(serving->WriteNote());
  if (is_node) serving->JoinCluster();
  if (options.demo) {
    auto demo = Demo::Start(*serving->engine_, {.seed = config.engine.seed});
    if (!demo.ok()) return demo.status();
    serving->demo_ = std::move(demo).value();
  }
  return serving;
}

Status Serving::WriteNote() const {
  return WriteServerNote(config_.data, {.url = url_,
                                        .pid = getpid(),
                                        .backups = BackupRoot(config_),
                                        .fingerprint = server_->certificate_fingerprint()});
}

std::optional<std::string> Serving::ReloadTls() {
  if (config_.server.tls.empty()) return std::nullopt;
  Status status = server_->ReloadTls();
  if (!status.ok()) {
    return fmt::format("{}; the certificate that was read before stays in use", status.message());
  }
  status = WriteNote();
  if (!status.ok()) return status.message();
  return fmt::format("tls.certificate: read again, fingerprint {}",
                     server_->certificate_fingerprint());
}

void Serving::CloseToOthers(const std::filesystem::path& path, Reach reach) {
  const auto changed = MakePrivate(path, reach);
  if (!changed.ok()) {
    notes_.push_back(fmt::format("{}; other users of this machine may have access to it",
                                 changed.status().message()));
  } else if (changed.value() > 0) {
    notes_.push_back(fmt::format(
        "{} was open to other users of this machine: took the rights of group and others away "
        "from {} {}",
        path.string(), changed.value(),
        changed.value() == 1 ? "file or directory" : "files and directories"));
  }
}

Status Serving::OpenKeys() {
  if (!RequiresKeys(config_)) return {};
  auto keys = KeyGate::Open({.file = config_.keys_file,
                             .admin_key = config_.api_key,
                             .max_failures = config_.max_key_failures});
  if (!keys.ok()) return keys.status();
  keys_ = std::move(keys).value();
  return {};
}

std::optional<std::string> Serving::ReloadKeys(KeyGate::When when) {
  if (keys_ == nullptr) return std::nullopt;
  const auto count = keys_->Reload(when);
  if (!count.ok()) {
    return fmt::format("keys.file: {}; the keys that were read before stay valid",
                       count.status().message());
  }
  if (!count.value()) return std::nullopt;
  return fmt::format("keys.file: read again, {} keys", *count.value());
}

Status Serving::OpenDecisionLog() {
  if (config_.decision_log.directory.empty()) return {};
  CODBAND_RETURN_IF_ERROR(EnsurePrivateDirectory(config_.decision_log.directory));
  CloseToOthers(config_.decision_log.directory, Reach::kTree);
  auto log = DecisionLog::Open(config_.decision_log);
  if (!log.ok()) return log.status();
  log_ = std::move(log).value();
  return {};
}

Status Serving::PrepareData() {
  CODBAND_RETURN_IF_ERROR(EnsurePrivateDirectory(config_.data));
  CloseToOthers(config_.data, Reach::kOne);
  CloseToOthers(BackupRoot(config_), Reach::kOne);
  return {};
}

std::function<void(const engine::FinishedDecision&)> Serving::OnFinished() const {
  if (log_ == nullptr) return {};
  return [log = log_.get()](const engine::FinishedDecision& decision) { log->Append(decision); };
}

Status Serving::OpenCluster(const ClusterOptions& options) {
  auto member = ClusterMember::Open(options, config_.engine.dim, log_sink_);
  if (!member.ok()) return member.status();
  member_ = std::move(member).value();
  return PrepareData();
}

void Serving::JoinCluster() {
  std::error_code error;
  EngineHostOptions engines{.data = std::filesystem::absolute(config_.data, error),
                            .store = config_.store,
                            .engine = config_.engine,
                            .on_finished = OnFinished(),
                            .checkpoint_frames = config_.engine.checkpoint_events,
                            .checkpoint_interval_ms = config_.engine.checkpoint_interval_ms};
  engines.engine.log = log_sink_;
  member_->Join(url_, std::move(engines),
                [this](store::Partition partition, engine::Engine* engine) {
                  service_->SetEngine(partition, engine);
                });
}

Status Serving::OpenEngine() {
  CODBAND_RETURN_IF_ERROR(PrepareData());
  CloseToOthers(config_.data / "rocksdb", Reach::kTree);
  // Absolute: by that paths are recognised in messages, which clients get without them.
  std::error_code error;
  auto store = OpenDataStore(std::filesystem::absolute(config_.data, error), config_.store);
  if (!store.ok()) return store.status();
  engine::EngineOptions options = config_.engine;
  options.log = log_sink_;
  auto engine = engine::Engine::Open(std::move(store).value(), options, OnFinished());
  if (engine.ok()) {
    engine_ = std::move(engine).value();
    return {};
  }
  if (engine.status().code() == StatusCode::kCorruption) {
    return WithRepair(engine.status(), config_.data);
  }
  if (config_.engine.dim == 0) return engine.status();
  return {engine.status().code(),
          fmt::format("{} (features.dimension is {}; 0 takes that of the directory)",
                      engine.status().message(), config_.engine.dim)};
}

Result<std::unique_ptr<Server>> Serving::StartHttp(const ServerOptions& options) {
  ApiOptions api{.mode = config_.api.mode,
                 .decision_log = log_.get(),
                 .backup_root = BackupRoot(config_),
                 .settings = SettingsJson(config_),
                 .log_directory = config_.decision_log.directory,
                 .user_from = config_.api.user_from};
  if (member_ == nullptr) return StartServer(*engine_, options, std::move(api));
  api.gatekeeper = options.gatekeeper;
  api.tls = !options.tls.empty();
  ClusterServiceOptions cluster{
      .max_line_bytes = options.max_body_bytes, .api = std::move(api), .dim = member_->dim()};
  cluster.add_facts = [member = member_.get()](ClusterFacts& facts) { member->AddFacts(facts); };
  cluster.look_at_erasure = [member = member_.get()](const ErasureId& id) {
    return member->LookAtErasure(id);
  };
  auto service = std::make_unique<ClusterService>(member_->directory(), std::move(cluster));
  service_ = service.get();
  return Server::Start(std::move(service), options);
}

Status Serving::Listen(bool any_port) {
  ServerOptions options = config_.server;
  options.gatekeeper = keys_.get();
  auto server = StartHttp(options);
  if (!server.ok() && server.status().code() == StatusCode::kUnavailable && any_port) {
    options.port = 0;
    server = StartHttp(options);
  }
  if (server.ok()) {
    server_ = std::move(server).value();
    if (server_->max_connections() < config_.server.max_connections) {
      notes_.push_back(fmt::format(
          "server.max_connections is {}, but the limit of open files (ulimit -n) leaves {}",
          config_.server.max_connections, server_->max_connections()));
    }
    url_ = ReachableUrl(options.tls.empty() ? "http" : "https", options.host, server_->port());
    return {};
  }
  if (server.status().code() != StatusCode::kUnavailable) return server.status();
  return {StatusCode::kUnavailable,
          fmt::format("{}; choose another with --listen HOST:PORT, port 0 for any free one",
                      server.status().message())};
}

std::string Serving::Greeting() const {
  if (member_ != nullptr) {
    const store::Partition partitions = member_->directory().partitions();
    return fmt::format(
        "codband {} listens on {}\nA node of a cluster of {} partition{}, policy "
        "{}{}\n",
        kVersion, url_, partitions, partitions == 1 ? "" : "s", config_.engine.policy,
        keys_ == nullptr ? "" : ", key required");
  }
  const std::size_t dim = engine_->dim();
  std::string text =
      fmt::format("codband {} listens on {}\nData in {}, policy {}, {}{}\n", kVersion, url_,
                  config_.data.string(), config_.engine.policy,
                  dim == 0 ? "a column for every name" : fmt::format("{} features", dim),
                  keys_ == nullptr ? "" : ", key required");
  if (demo_ == nullptr) return text;
  const std::string& user = demo_->world().hero();
  fmt::format_to(
      std::back_inserter(text),
      "\n{} artists, {} listeners who change their minds now and then. The dashboard is at\n"
      "{}; watch {}, who changes about once a minute:\n{}/#/users/{}\n\nTry it:\n\n"
      "  curl -s '{}/v1/rank?explain=true' -H 'Content-Type: application/json' \\\n"
      "    -d '{{\"userId\": \"{}\", \"topK\": 3}}'\n"
      "  curl -s {}/v1/events/EVENT_ID/reward -H 'Content-Type: application/json' \\\n"
      "    -d '{{\"value\": 1}}'  # EVENT_ID of the reply above\n"
      "  curl -s {}/v1/users/{}\n\n",
      demo_->world().items().size(), DemoOptions{}.users, url_, user, url_, user, url_, user, url_,
      url_, user);
  return text;
}

std::optional<std::string> Serving::DecisionLogNews() {
  if (log_ == nullptr) return std::nullopt;
  const DecisionLogStats stats = log_->Stats();
  if (stats.last_error.ok() == !log_fails_) return std::nullopt;
  log_fails_ = !log_fails_;
  if (log_fails_) return fmt::format("decision log: {}", stats.last_error.message());
  return fmt::format("decision log: writes succeed again; {} decisions were lost", stats.failed);
}

Status Serving::Stop() {
  // While others take over, requests are passed on to them.
  if (member_ != nullptr) member_->Leave();
  if (server_ != nullptr) {
    server_->Stop();
    if (!url_.empty()) RemoveServerNote(config_.data);
  }
  demo_.reset();
  member_.reset();
  server_.reset();
  const Status status = engine_ == nullptr ? Status() : engine_->Close();
  engine_.reset();
  if (log_ != nullptr) log_->Stop();
  return status;
}

std::filesystem::path DemoDirectory() {
  std::filesystem::path directory = "out/demo";
  if (EnsureDirectory(directory).ok()) return directory;
  return std::filesystem::temp_directory_path() / fmt::format("codband-demo-{}", getuid());
}

}  // namespace codband::server
