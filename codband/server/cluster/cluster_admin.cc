#include "codband/server/cluster/cluster_admin.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include "codband/cluster/await.h"

namespace codband::server {
namespace {

using cluster::Await;
using cluster::PartitionMap;

constexpr std::chrono::milliseconds kAskAgain(50);

bool Lives(const store::NodeState& node) { return node.lease_left_ms > 0; }

// The names of the nodes that can take partitions.
std::string TakersText(const PartitionMap& map) {
  std::vector<std::string> names;
  for (const store::NodeState& node : map.nodes) {
    if (Lives(node) && !node.draining) names.push_back(fmt::format("'{}'", node.name));
  }
  return names.empty() ? "there is none now" : fmt::format("there are {}", fmt::join(names, ", "));
}

Status CheckTaker(const PartitionMap& map, const std::string& name) {
  const store::NodeState* const node = map.FindNode(name);
  if (node == nullptr || !Lives(*node)) {
    return Status::NotFound(
        fmt::format("no node '{}' is alive, expected one that is; {}", name, TakersText(map)));
  }
  if (node->draining) {
    return Status::NotFound(fmt::format(
        "node '{}' is draining, expected one that takes partitions; {}", name, TakersText(map)));
  }
  return {};
}

// Looks until it is so.
Status WaitUntil(store::PartitionLog& log, const std::function<bool(const PartitionMap&)>& is_so,
                 const std::string& what, std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (true) {
    const auto map = ReadMap(log);
    if (map.ok() && is_so(map.value())) return {};
    if (std::chrono::steady_clock::now() >= end) {
      if (!map.ok()) return map.status();
      return {StatusCode::kUnavailable,
              fmt::format("{} after {} s; it is still wanted, and happens as soon as it can", what,
                          std::chrono::duration_cast<std::chrono::seconds>(patience).count())};
    }
    std::this_thread::sleep_for(kAskAgain);
  }
}

}  // namespace

Result<PartitionMap> ReadMap(store::PartitionLog& log) {
  auto nodes = Await<Result<std::vector<store::NodeState>>>(
      [&](auto done) { log.ListNodes(std::move(done)); });
  if (!nodes.ok()) return nodes.status();
  auto partitions = Await<Result<std::vector<store::PartitionState>>>(
      [&](auto done) { log.ListPartitions(std::move(done)); });
  if (!partitions.ok()) return partitions.status();
  return PartitionMap{.partitions = std::move(partitions).value(),
                      .nodes = std::move(nodes).value()};
}

Status MovePartition(store::PartitionLog& log, store::Partition partition, const std::string& node,
                     std::chrono::milliseconds patience) {
  const auto map = ReadMap(log);
  if (!map.ok()) return map.status();
  if (partition >= map.value().partitions.size()) {
    return Status::NotFound(fmt::format("there is no partition {}, the loop has 0 to {}", partition,
                                        map.value().partitions.size() - 1));
  }
  if (!node.empty()) CODBAND_RETURN_IF_ERROR(CheckTaker(map.value(), node));
  CODBAND_RETURN_IF_ERROR(
      Await<Status>([&](auto done) { log.Want(partition, node, std::move(done)); }));
  if (node.empty()) return {};
  return WaitUntil(
      log,
      [&](const PartitionMap& now) {
        return now.IsOwned(partition) && now.partitions[partition].owner == node;
      },
      fmt::format("partition {} is not on '{}'", partition, node), patience);
}

Status DrainNode(store::PartitionLog& log, const std::string& node,
                 std::chrono::milliseconds patience) {
  const auto map = ReadMap(log);
  if (!map.ok()) return map.status();
  const store::NodeState* const drained = map.value().FindNode(node);
  if (drained == nullptr || !Lives(*drained)) {
    return Status::NotFound(
        fmt::format("no node '{}' is alive, so it has nothing; {}", node, TakersText(map.value())));
  }
  const bool others = std::ranges::any_of(map.value().nodes, [&](const store::NodeState& each) {
    return each.name != node && Lives(each) && !each.draining;
  });
  if (!others) {
    return Status::InvalidArgument(fmt::format(
        "node '{}' cannot be drained: no other node is alive that could take its partitions",
        node));
  }
  CODBAND_RETURN_IF_ERROR(
      Await<Status>([&](auto done) { log.SetDraining(node, true, std::move(done)); }));
  return WaitUntil(
      log,
      [&](const PartitionMap& now) {
        return std::ranges::none_of(now.partitions, [&](const store::PartitionState& state) {
          return state.owner == node || state.lease_left_ms <= 0;
        });
      },
      fmt::format("node '{}' has partitions", node), patience);
}

Status EndDrain(store::PartitionLog& log, const std::string& node) {
  return Await<Status>([&](auto done) { log.SetDraining(node, false, std::move(done)); });
}

}  // namespace codband::server
