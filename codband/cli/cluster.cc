// codband cluster: who serves what in a cluster.
#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "codband/cli/command.h"
#include "codband/cluster/partition_map.h"
#include "codband/cluster/postgres/postgres_log.h"

namespace codband::cli {
namespace {

struct ClusterFlags {
  std::string action;
  std::vector<std::string> dsns;
};

constexpr std::string_view kClusterFooter = R"(
status lists the nodes and who owns which partition, as the database has it now. It changes nothing.

Example:
  codband cluster status --cluster 'host=db1,db2 dbname=codband'

Exit code: 0 every partition is served, 1 one is not, or the database does not answer, 2 wrong flags,
or there is no such loop.)";

template <typename T>
Result<T> Await(const std::function<void(store::PartitionLog::Done<Result<T>>)>& call) {
  const auto answer = std::make_shared<std::promise<Result<T>>>();
  auto future = answer->get_future();
  call([answer](Result<T> value) { answer->set_value(std::move(value)); });
  return future.get();
}

std::string LeaseText(std::int64_t left_ms) {
  return left_ms > 0 ? fmt::format("{:.1f} s", static_cast<double>(left_ms) / 1000) : "over";
}

Status PrintStatus(const cluster::PartitionMap& map) {
  std::size_t width = 4;
  for (const auto& node : map.nodes) width = std::max(width, node.name.size());
  fmt::print("{:{}}  {:>6}  address\n", "node", width, "lease");
  for (const auto& node : map.nodes) {
    fmt::print("{:{}}  {:>6}  {}\n", node.name, width, LeaseText(node.lease_left_ms), node.url);
  }
  fmt::print("\npartition  {:{}}  {:>6}  {:>6}  {:>10}  {:>10}\n", "owner", width, "lease", "epoch",
             "frames", "in the log");
  std::size_t unserved = 0;
  for (const auto& state : map.partitions) {
    const bool served = map.IsOwned(state.partition);
    if (!served) ++unserved;
    fmt::print("{:9}  {:{}}  {:>6}  {:6}  {:10}  {:10}\n", state.partition,
               state.owner.empty() ? "-" : state.owner, width,
               state.owner.empty() ? "-" : LeaseText(state.lease_left_ms), state.epoch,
               state.last_sequence, state.last_sequence + 1 - state.first_sequence);
  }
  if (unserved == 0) return {};
  return {StatusCode::kUnavailable, fmt::format("{} of {} partitions are served by nobody now",
                                                unserved, map.partitions.size())};
}

Status RunCluster(const ClusterFlags& flags) {
  if (flags.action != "status") {
    return Status::InvalidArgument(fmt::format("ACTION is '{}', expected status", flags.action));
  }
  const auto log = cluster::OpenPostgresLog({.dsns = flags.dsns, .create = false});
  if (!log.ok()) return log.status();
  auto nodes = Await<std::vector<store::NodeState>>(
      [&](auto done) { log.value()->ListNodes(std::move(done)); });
  if (!nodes.ok()) return nodes.status();
  auto partitions = Await<std::vector<store::PartitionState>>(
      [&](auto done) { log.value()->ListPartitions(std::move(done)); });
  if (!partitions.ok()) return partitions.status();
  return PrintStatus(
      {.partitions = std::move(partitions).value(), .nodes = std::move(nodes).value()});
}

}  // namespace

void AddClusterCommand(CLI::App& app, Status& status) {
  auto flags = std::make_shared<ClusterFlags>();
  const Command command(app, "cluster", "Who serves what in a cluster", kClusterFooter);
  command.Option("ACTION", flags->action, "ACTION", "status", Command::kRequired);
  command.Repeated("--cluster", flags->dsns, "DSN",
                   "The PostgreSQL of the cluster; several in the order in which nodes get them");
  command.Run(status, [flags] { return RunCluster(*flags); });
}

}  // namespace codband::cli
