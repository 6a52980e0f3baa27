#include "codband/server/cluster/cluster_member.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <random>
#include <utility>

#include "codband/cluster/postgres/postgres_log.h"

namespace codband::server {
namespace {

constexpr store::Partition kPartitions = 1;
constexpr std::size_t kLongestNode = 64;
constexpr std::chrono::seconds kLeavePatience(20);

std::string NewInstance() {
  std::random_device entropy;
  return fmt::format("{:08x}{:08x}", entropy(), entropy());
}

}  // namespace

Status CheckClusterOptions(const ClusterOptions& options) {
  if (options.dsns.empty()) {
    if (options.name.empty()) return {};
    return Status::InvalidArgument("--name is for a node of a cluster: give --cluster too");
  }
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
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
                                                           LogSink log) {
  auto partition_log = cluster::OpenPostgresLog(
      {.dsns = options.dsns, .loop = options.loop, .partitions = kPartitions, .log = log});
  if (!partition_log.ok()) return partition_log.status();
  return std::unique_ptr<ClusterMember>(
      new ClusterMember(options, std::move(log), std::move(partition_log).value()));
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
  log_.reset();
}

void ClusterMember::Join(const std::string& url, EngineHostOptions engines,
                         EngineHost::Serve serve) {
  host_ = std::make_unique<EngineHost>(*log_, std::move(engines), std::move(serve),
                                       [this](const store::Claim& claim, bool fenced) {
                                         timers_->After(0, [this, claim, fenced] {
                                           if (node_ != nullptr) node_->NoteBroken(claim, fenced);
                                         });
                                       });
  cluster::NodeOptions node{.name = options_.name,
                            .url = options_.url.empty() ? url : options_.url,
                            .instance = NewInstance(),
                            .lease_ms = options_.lease_ms,
                            .log = log_sink_};
  node.on_map = [this](const cluster::PartitionMap& map) {
    const std::lock_guard lock(mutex_);
    const bool mine = map.partitions[0].owner == options_.name;
    owner_url_ = mine || !map.IsOwned(0) ? "" : map.UrlOf(0);
  };
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

std::string ClusterMember::OwnerUrl() const {
  const std::lock_guard lock(mutex_);
  return owner_url_;
}

}  // namespace codband::server
