#include "codband/cluster/partition_map.h"

#include <algorithm>
#include <functional>
#include <map>

namespace codband::cluster {

std::uint64_t PartitionMap::version() const {
  std::uint64_t sum = 0;
  for (const store::PartitionState& state : partitions) sum += state.epoch;
  return sum;
}

const store::NodeState* PartitionMap::FindNode(std::string_view name) const {
  const auto found = std::ranges::find(nodes, name, &store::NodeState::name);
  return found == nodes.end() ? nullptr : &*found;
}

std::string PartitionMap::UrlOf(store::Partition partition) const {
  const store::PartitionState& state = partitions[partition];
  const store::NodeState* node = state.owner.empty() ? nullptr : FindNode(state.owner);
  return node == nullptr ? "" : node->url;
}

Plan MakePlan(const PartitionMap& map, std::string_view node,
              const std::vector<store::Partition>& held,
              const std::vector<store::Partition>& leaving) {
  Plan plan;
  std::map<std::string_view, std::size_t> owned{{node, 0}};
  for (const store::NodeState& each : map.nodes) {
    if (each.lease_left_ms > 0) owned.emplace(each.name, 0);
  }
  std::vector<store::Partition> unowned;
  for (const store::PartitionState& state : map.partitions) {
    if (std::ranges::count(held, state.partition) > 0) continue;
    if (state.lease_left_ms <= 0) {
      unowned.push_back(state.partition);
    } else if (const auto owner = owned.find(state.owner); owner != owned.end()) {
      ++owner->second;
    }
  }
  const std::size_t least = map.partitions.size() / owned.size();
  const std::size_t most = (map.partitions.size() + owned.size() - 1) / owned.size();
  std::size_t missing = 0;  // that others should have
  for (const auto& [name, count] : owned) {
    if (name != node && count < least) missing += least - count;
  }
  std::vector<store::Partition> available;
  std::ranges::copy_if(unowned, std::back_inserter(available), [&](store::Partition partition) {
    return std::ranges::count(leaving, partition) == 0;
  });
  // First what everybody should have; more than that only of what is left over.
  const std::size_t spare = held.size() - std::min(held.size(), least);
  const std::size_t wanted = least - std::min(held.size(), least);
  std::size_t take = std::min(wanted, available.size());
  const std::size_t left = available.size() - take;
  if (spare < most - least && left > missing)
    take += std::min(most - least - spare, left - missing);
  if (take > 0) {
    // Nodes begin at different places, so that they do not all try the same.
    const std::size_t start = std::hash<std::string_view>()(node) % available.size();
    std::ranges::rotate(available, available.begin() + static_cast<std::ptrdiff_t>(start));
    available.resize(take);
    plan.take = std::move(available);
    return plan;
  }
  // What is free serves those first who have too few.
  const std::size_t give = std::min(spare, missing - std::min(missing, unowned.size()));
  plan.give.assign(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(give));
  return plan;
}

}  // namespace codband::cluster
