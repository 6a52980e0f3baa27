#pragma once

#include <memory>
#include <vector>

#include "codband/store/partition_log.h"

namespace codband::cluster {

// Several logs that share the partitions of one loop: partition p lives in log p mod count. Nodes
// and what all partitions share are known to the first alone.
std::unique_ptr<store::PartitionLog> ShardLogs(
    std::vector<std::unique_ptr<store::PartitionLog>> logs);

}  // namespace codband::cluster
