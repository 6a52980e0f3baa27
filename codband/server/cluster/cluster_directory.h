#pragma once

#include <algorithm>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codband/cluster/partition_map.h"
#include "codband/engine/name_hash.h"
#include "codband/store/partition_log.h"

namespace codband::server {

// Where users live and where partitions are served, as this node has seen it last. Thread-safe.
class ClusterDirectory {
 public:
  // `names`: by which the users of all partitions have their ids.
  ClusterDirectory(std::string self, store::Partition partitions, engine::NameHash names)
      : self_(std::move(self)), partitions_(partitions), names_(names) {}

  store::Partition partitions() const { return partitions_; }
  store::Partition PartitionOfUser(std::string_view user) const {
    return cluster::PartitionOf(names_.User(user), partitions_);
  }

  void Update(const cluster::PartitionMap& map) {
    const std::lock_guard lock(mutex_);
    map_ = map;
  }
  // Of the partition's owner, if that is another node whose lease holds; else empty.
  std::string OwnerUrl(store::Partition partition) const {
    const std::lock_guard lock(mutex_);
    if (partition >= map_.partitions.size() || !map_.IsOwned(partition)) return {};
    return map_.partitions[partition].owner == self_ ? std::string() : map_.UrlOf(partition);
  }
  // Of the other nodes that own something, each once.
  std::vector<std::string> OwnerUrls() const {
    std::vector<std::string> urls;
    for (store::Partition partition = 0; partition < partitions_; ++partition) {
      std::string url = OwnerUrl(partition);
      if (!url.empty() && std::ranges::count(urls, url) == 0) urls.push_back(std::move(url));
    }
    return urls;
  }
  // How many nodes live, how many partitions nobody owns, and how many nobody follows; and what
  // this node follows.
  struct Facts {
    std::size_t nodes = 0;
    std::size_t unowned = 0;
    std::size_t unfollowed = 0;
    std::size_t followed_here = 0;
    std::uint64_t standby_lag = 0;  // frames, of the one that is farthest behind
  };
  Facts facts() const {
    const std::lock_guard lock(mutex_);
    Facts facts;
    for (const store::NodeState& node : map_.nodes) facts.nodes += node.lease_left_ms > 0 ? 1 : 0;
    for (const store::PartitionState& state : map_.partitions) {
      facts.unowned += state.lease_left_ms > 0 ? 0 : 1;
      facts.unfollowed += map_.IsFollowed(state.partition, state.owner) ? 0 : 1;
    }
    if (const store::NodeState* const self = map_.FindNode(self_)) {
      facts.followed_here = self->follows.size();
      for (const store::Followed& each : self->follows) {
        facts.standby_lag = std::max(facts.standby_lag, map_.LagOf(each));
      }
    }
    return facts;
  }

 private:
  const std::string self_;
  const store::Partition partitions_;
  const engine::NameHash names_;
  mutable std::mutex mutex_;  // guards what follows
  cluster::PartitionMap map_;
};

}  // namespace codband::server
