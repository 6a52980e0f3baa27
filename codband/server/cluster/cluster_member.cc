#include "codband/server/cluster/cluster_member.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <random>
#include <utility>

#include "codband/base/file.h"
#include "codband/cluster/await.h"
#include "codband/cluster/postgres/database_health.h"
#include "codband/cluster/postgres/postgres_log.h"

namespace codband::server {
namespace {

constexpr std::size_t kLongestNode = 64;
constexpr std::chrono::seconds kLeavePatience(20);

std::string NewInstance() {
  std::random_device entropy;
  return fmt::format("{:08x}{:08x}", entropy(), entropy());
}

}  // namespace

Status CheckClusterOptions(const ClusterOptions& options) {
  if (options.dsns.empty()) {
    const char* const flag = !options.name.empty()     ? "--name"
                             : options.partitions != 0 ? "--partitions"
                             : options.no_standby      ? "--no-standby"
                                                       : nullptr;
    if (flag == nullptr) return {};
    return Status::InvalidArgument(
        fmt::format("{} is for a node of a cluster: give --cluster too", flag));
  }
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  if (options.partitions > store::kMostPartitions) {
    return Status::InvalidArgument(fmt::format("--partitions = {}, expected 1 to {}",
                                               options.partitions, store::kMostPartitions));
  }
  const std::string& name = options.name;
  if (name.empty()) {
    return Status::InvalidArgument(
        "--name is missing: every node of a cluster needs a name of its own");
  }
  if (name.size() > kLongestNode || !std::ranges::all_of(name, plain)) {
    return Status::InvalidArgument(
        fmt::format("--name = '{}', expected letters, digits, '-', '_' and '.', {} at most", name,
                    kLongestNode));
  }
  return {};
}

ClusterMember::ClusterMember(const ClusterOptions& options, LogSink log,
                             std::unique_ptr<store::PartitionLog> partition_log)
    : options_(options),
      log_sink_(std::move(log)),
      timers_(std::make_unique<cluster::ThreadTimers>()),
      log_(std::move(partition_log)) {}

Result<std::unique_ptr<ClusterMember>> ClusterMember::Open(const ClusterOptions& options,
                                                           std::size_t dim, LogSink log) {
  auto partition_log = cluster::OpenPostgresLog({.dsns = options.dsns,
                                                 .loop = options.loop,
                                                 .partitions = options.partitions,
                                                 .new_partitions = 1,
                                                 .log = log});
  if (!partition_log.ok()) return partition_log.status();
  std::unique_ptr<ClusterMember> member(
      new ClusterMember(options, std::move(log), std::move(partition_log).value()));
  const auto health = cluster::ExamineDatabase(options.dsns[0], options.loop);
  if (!health.ok()) return health.status();
  member->loop_id_ = health.value().loop_id;
  using States = std::vector<store::PartitionState>;
  const auto states = cluster::Await<Result<States>>(
      [&](auto done) { member->log_->ListPartitions(std::move(done)); });
  if (!states.ok()) return states.status();
  const auto partitions = static_cast<store::Partition>(states.value().size());
  engine::NameHash names;
  if (partitions > 1) {
    const auto identity = FindLoopIdentity(*member->log_, dim);
    if (!identity.ok()) return identity.status();
    member->identity_ = identity.value();
    names = engine::NameHash(identity.value().name_secret);
  }
  member->directory_ = std::make_unique<ClusterDirectory>(options.name, partitions, names);
  return member;
}

ClusterMember::~ClusterMember() {
  // The node belongs to the timers' thread, which calls it until it is gone.
  std::promise<void> gone;
  timers_->After(0, [&] {
    node_.reset();
    gone.set_value();
  });
  gone.get_future().wait();
  host_.reset();
  erasures_.reset();
  pool_.reset();
  catalogue_.reset();
  log_.reset();
}

void ClusterMember::ServePartition(const Serve& serve, const store::Claim& claim,
                                   engine::Engine* engine) {
  if (catalogue_ == nullptr) return serve(claim.partition, engine);
  if (engine == nullptr) {
    serve(claim.partition, nullptr);
    pool_->Detach(claim.partition);
    catalogue_->Detach(claim.partition);
    return;
  }
  if (const Status status = catalogue_->Attach(claim.partition, *engine);
      !status.ok() && log_sink_) {
    log_sink_({.level = LogLevel::kWarning,
               .cause = "catalogue",
               .message = fmt::format("partition {}: its catalogue may be old: {}; it is tried "
                                      "again",
                                      claim.partition, status.message())});
  }
  pool_->Attach(claim, *engine);
  serve(claim.partition, engine);
}

void ClusterMember::KeepCopiesOfThisLoop(const std::filesystem::path& data) const {
  const std::filesystem::path file = data / "loop";
  const auto known = ReadFile(file);
  if (known.ok() && known.value() == loop_id_) return;
  bool dropped = false;
  for (store::Partition partition = 0; partition < store::kMostPartitions; ++partition) {
    std::error_code ignored;
    dropped |= std::filesystem::remove_all(CopyDirectory(data, partition), ignored) > 0;
  }
  const Status noted = WriteFileDurably(file, loop_id_, FileAccess::kPrivate);
  if (!log_sink_ || (noted.ok() && !dropped)) return;
  log_sink_({.level = LogLevel::kWarning,
             .cause = "cluster",
             .message = noted.ok()
                            ? fmt::format("{}: the copies there are not of this loop, they are "
                                          "deleted and made anew",
                                          data.string())
                            : noted.message()});
}

void ClusterMember::Join(const std::string& url, EngineHostOptions engines, Serve serve) {
  KeepCopiesOfThisLoop(engines.data);
  engines.partitions = directory_->partitions();
  if (engines.partitions > 1) {
    const auto limits = features::ColumnLimits::Serving(engines.engine.columns.columns);
    catalogue_ = std::make_unique<SharedCatalogue>(
        *log_, log_sink_, dim() == 0 ? std::optional(limits) : std::nullopt);
    pool_ = std::make_unique<PoolKeeper>(*log_, engines.partitions, log_sink_);
    log_->WatchBlobs(pool_->Waker());
    engines.engine.dim = dim();
    engines.engine.name_secret = identity_.name_secret;
    engines.engine.share_catalogue = [this](engine::CatalogueChange change, auto done) {
      catalogue_->Change(std::move(change), std::move(done));
    };
  }
  Erasures::Options erasures{
      .partitions = engines.partitions, .data = engines.data, .log = log_sink_};
  if (pool_ != nullptr) {
    erasures.pool_at = [this](store::Partition partition, std::uint64_t cleared) {
      return pool_->PoolAt(partition, cleared);
    };
  }
  erasures_ = std::make_unique<Erasures>(*log_, std::move(erasures));
  engines.erasures = erasures_.get();
  host_ = std::make_unique<EngineHost>(
      *log_, std::move(engines),
      [this, serve = std::move(serve)](const store::Claim& claim, engine::Engine* engine) {
        ServePartition(serve, claim, engine);
      },
      [this](const store::Claim& claim, bool fenced) {
        timers_->After(0, [this, claim, fenced] {
          if (node_ != nullptr) node_->NoteBroken(claim, fenced);
        });
      });
  cluster::NodeOptions node{.name = options_.name,
                            .url = options_.url.empty() ? url : options_.url,
                            .instance = NewInstance(),
                            .lease_ms = options_.lease_ms,
                            .standby = !options_.no_standby,
                            .log = log_sink_};
  node.on_map = [this](const cluster::PartitionMap& map) { directory_->Update(map); };
  timers_->After(0, [this, node = std::move(node)] {
    node_ = std::make_unique<cluster::Node>(*log_, *timers_, *host_, node);
    node_->Start();
  });
}

void ClusterMember::Leave() {
  if (host_ == nullptr) return;
  const auto left = std::make_shared<std::promise<void>>();
  timers_->After(0, [this, left] { node_->Drain([left] { left->set_value(); }); });
  left->get_future().wait_for(kLeavePatience);
}

void ClusterMember::AddFacts(ClusterFacts& facts) const {
  if (catalogue_ == nullptr) return;
  facts.catalogue_lag = catalogue_->lag();
  const PoolKeeper::Facts pool = pool_->facts();
  facts.pools_imported = pool.imported;
  facts.pools_merged = pool.merged;
  facts.pool_bytes = pool.bytes;
  facts.pool_age_seconds = pool.age_seconds;
}

}  // namespace codband::server
