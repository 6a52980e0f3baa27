#include "codband/cluster/partition_map.h"

#include <algorithm>
#include <functional>
#include <map>

namespace codband::cluster {
namespace {

bool Follows(const store::NodeState& node, store::Partition partition) {
  return std::ranges::count(node.follows, partition, &store::Followed::partition) > 0;
}

}  // namespace

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

std::uint64_t PartitionMap::LagOf(const store::Followed& followed) const {
  if (followed.partition >= partitions.size()) return 0;
  const std::uint64_t last = partitions[followed.partition].last_sequence;
  return last > followed.sequence + 1 ? last - 1 - followed.sequence : 0;
}

bool PartitionMap::IsFollowed(store::Partition partition, std::string_view but) const {
  return std::ranges::any_of(nodes, [&](const store::NodeState& node) {
    return node.name != but && node.lease_left_ms > 0 && Follows(node, partition);
  });
}

namespace {

// The nodes that partitions are spread over: those that live, and are not draining if there is one
// that is not. `node` itself lives, as it asks.
std::map<std::string_view, std::size_t> Bearers(const PartitionMap& map, std::string_view node) {
  std::map<std::string_view, std::size_t> all{{node, 0}};
  std::map<std::string_view, std::size_t> staying;
  for (const store::NodeState& each : map.nodes) {
    if (each.lease_left_ms > 0) all.emplace(each.name, 0);
  }
  for (const auto& [name, none] : all) {
    const store::NodeState* state = map.FindNode(name);
    if (state == nullptr || !state->draining) staying.emplace(name, 0);
  }
  return staying.empty() ? all : staying;
}

// What could change hands.
struct Market {
  std::map<std::string_view, std::size_t> owned;  // how many each bearer has, without this node's
  std::vector<store::Partition> unowned = {};
  std::vector<store::Partition> available = {};  // of these, what is wanted on no node
  std::vector<store::Partition> movable = {};    // the same of what this node has
};

// Everybody gets as many as everybody else, or one more.
Plan EvenOut(const PartitionMap& map, std::string_view node, std::size_t held, Market market) {
  Plan plan;
  const std::size_t least = map.partitions.size() / market.owned.size();
  const std::size_t most = (map.partitions.size() + market.owned.size() - 1) / market.owned.size();
  std::size_t missing = 0;  // that others should have
  for (const auto& [name, count] : market.owned) {
    if (name != node && count < least) missing += least - count;
  }
  // First what everybody should have; more than that only of what is left over.
  const std::size_t spare = held - std::min(held, least);
  const std::size_t wanted = least - std::min(held, least);
  std::size_t take = std::min(wanted, market.available.size());
  const std::size_t left = market.available.size() - take;
  if (spare < most - least && left > missing)
    take += std::min(most - least - spare, left - missing);
  if (take > 0) {
    // Nodes begin at different places, so that they do not all try the same.
    const std::size_t start = std::hash<std::string_view>()(node) % market.available.size();
    std::ranges::rotate(market.available,
                        market.available.begin() + static_cast<std::ptrdiff_t>(start));
    const store::NodeState* const self = map.FindNode(node);
    std::ranges::stable_sort(market.available, {}, [&](store::Partition partition) {
      if (self != nullptr && Follows(*self, partition)) return 0;
      return map.IsFollowed(partition, node) ? 2 : 1;
    });
    market.available.resize(take);
    plan.take = std::move(market.available);
    return plan;
  }
  // What is free serves those first who have too few.
  const std::size_t give =
      std::min({spare, missing - std::min(missing, market.unowned.size()), market.movable.size()});
  plan.give.assign(market.movable.begin(),
                   market.movable.begin() + static_cast<std::ptrdiff_t>(give));
  return plan;
}

}  // namespace

std::vector<store::Partition> PlanStandbys(const PartitionMap& map, std::string_view node) {
  std::vector<const store::NodeState*> able;
  for (const auto& [name, none] : Bearers(map, node)) {
    const store::NodeState* const state = map.FindNode(name);
    if (state != nullptr && state->standby && !state->draining) able.push_back(state);
  }
  // How much each follows: of one owner, and in all.
  std::map<std::string_view, std::map<std::string_view, std::size_t>> of_owner;
  std::map<std::string_view, std::size_t> in_all;
  std::vector<const store::NodeState*> chosen(map.partitions.size());
  const auto choose = [&](const store::PartitionState& state, const store::NodeState* standby) {
    chosen[state.partition] = standby;
    ++of_owner[state.owner][standby->name];
    ++in_all[standby->name];
  };
  const std::size_t most =
      able.empty() ? 0 : (map.partitions.size() + able.size() - 1) / able.size();
  for (const store::PartitionState& state : map.partitions) {
    const store::NodeState* kept = nullptr;
    for (const store::NodeState* each : able) {
      if (each->name == state.owner) continue;
      const bool follows = Follows(*each, state.partition) && in_all[each->name] < most;
      if (each->name == state.wanted || (follows && kept == nullptr)) kept = each;
      if (each->name == state.wanted) break;
    }
    if (kept != nullptr) choose(state, kept);
  }
  for (const store::PartitionState& state : map.partitions) {
    if (chosen[state.partition] != nullptr) continue;
    const store::NodeState* least = nullptr;
    const auto load = [&](const store::NodeState* each) {
      return std::pair(of_owner[state.owner][each->name], in_all[each->name]);
    };
    for (const store::NodeState* each : able) {
      if (each->name == state.owner) continue;
      if (least == nullptr || load(each) < load(least)) least = each;
    }
    if (least != nullptr) choose(state, least);
  }
  std::vector<store::Partition> planned;
  for (const store::PartitionState& state : map.partitions) {
    const store::NodeState* const standby = chosen[state.partition];
    if (standby != nullptr && standby->name == node) planned.push_back(state.partition);
  }
  return planned;
}

Plan MakePlan(const PartitionMap& map, std::string_view node,
              const std::vector<store::Partition>& held,
              const std::vector<store::Partition>& leaving) {
  Plan plan;
  Market market{.owned = Bearers(map, node)};
  auto& owned = market.owned;
  if (!owned.contains(node)) {
    plan.give = held;
    return plan;
  }
  const auto is_among = [](const std::vector<store::Partition>& list, store::Partition partition) {
    return std::ranges::count(list, partition) > 0;
  };
  // The living node that it is wanted on, or nobody.
  const auto wanted_on = [&](store::Partition partition) {
    const std::string_view name = map.partitions[partition].wanted;
    return owned.contains(name) ? name : std::string_view();
  };
  for (const store::PartitionState& state : map.partitions) {
    if (is_among(held, state.partition)) continue;
    if (state.lease_left_ms <= 0) {
      market.unowned.push_back(state.partition);
    } else if (const auto owner = owned.find(state.owner); owner != owned.end()) {
      ++owner->second;
    }
  }
  for (const store::Partition partition : market.unowned) {
    if (is_among(leaving, partition)) continue;
    const std::string_view wanted = wanted_on(partition);
    if (wanted.empty()) market.available.push_back(partition);
    if (wanted == node) plan.take.push_back(partition);
  }
  for (const store::Partition partition : held) {
    const std::string_view wanted = wanted_on(partition);
    if (wanted.empty()) market.movable.push_back(partition);
    if (!wanted.empty() && wanted != node) plan.give.push_back(partition);
  }
  if (!plan.take.empty() || !plan.give.empty()) return plan;
  return EvenOut(map, node, held.size(), std::move(market));
}

}  // namespace codband::cluster
