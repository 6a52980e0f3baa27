#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codband/store/partition_log.h"

namespace codband::cluster {

// Where a user lives: the high bits of the hash of their name. The number of partitions is fixed
// for a loop, so that users never move. Precondition: partitions > 0.
inline store::Partition PartitionOf(std::uint64_t user_hash, store::Partition partitions) {
  // The hash as a fraction of 2^64, times the number of partitions.
  return static_cast<store::Partition>(((user_hash >> 32) * partitions) >> 32);
}

// Who owns what, as one node has seen it last. A plain value.
struct PartitionMap {
  std::vector<store::PartitionState> partitions = {};  // in their order
  std::vector<store::NodeState> nodes = {};            // the dead ones too

  // Grows with every change of an owner.
  std::uint64_t version() const;
  // Whether the owner's lease holds.
  bool IsOwned(store::Partition partition) const { return partitions[partition].lease_left_ms > 0; }
  // Where the partition is served; empty if that is not known.
  std::string UrlOf(store::Partition partition) const;
  const store::NodeState* FindNode(std::string_view name) const;
  // How many frames it lacks of those that are final (node.cc): all but the last.
  std::uint64_t LagOf(const store::Followed& followed) const;
  // Whether a living node other than this one follows its log.
  bool IsFollowed(store::Partition partition, std::string_view but) const;
};

// What a node should do so that the partitions are spread evenly over the living nodes, with as few
// moves as possible: everybody has between floor(P/N) and ceil(P/N). What an operator wants comes
// first: a partition goes to the node that it is wanted on, if that lives, and stays there; a node
// that is draining counts as if it were not there, unless all are. Of what is free a node first
// takes what it follows, and last what others follow.
struct Plan {
  std::vector<store::Partition> take = {};  // that are free; others may be faster
  std::vector<store::Partition> give = {};  // to nodes that have too few
};

// The partitions, in their order, whose logs this node should follow: those that it would best take
// if their owners died. Each partition has one standby: the node that it is wanted on; else who
// follows it already; else who follows least, of the same owner first, so that all take some of a
// dead node's. Draining nodes and those that want to follow nothing do not count. A pure function.
std::vector<store::Partition> PlanStandbys(const PartitionMap& map, std::string_view node);

// `held`: what the node owns, in the order in which it would give it up. `leaving`: not to be taken
// now. A pure function.
Plan MakePlan(const PartitionMap& map, std::string_view node,
              const std::vector<store::Partition>& held,
              const std::vector<store::Partition>& leaving);

}  // namespace codband::cluster
