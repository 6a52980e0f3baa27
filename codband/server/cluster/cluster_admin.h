#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "codband/base/status.h"
#include "codband/cluster/partition_map.h"
#include "codband/store/partition_log.h"

namespace codband::server {

// What an operator does with a cluster from outside. Each function blocks; the log answers from
// other threads.

// Who owns what now.
Result<cluster::PartitionMap> ReadMap(store::PartitionLog& log);

// Wants the partition on this node, where it then stays until it is wanted elsewhere; empty: on
// any, as it comes. Returns when the node owns it. kNotFound: there is no such partition, or no
// such node that lives and is not draining. kUnavailable: it is not there after `patience`; it is
// still wanted.
Status MovePartition(store::PartitionLog& log, store::Partition partition, const std::string& node,
                     std::chrono::milliseconds patience);

// The node is to be without partitions, until it is started again or `EndDrain`. Returns when it
// owns none. kInvalidArgument: no other node could take them. Others as MovePartition.
Status DrainNode(store::PartitionLog& log, const std::string& node,
                 std::chrono::milliseconds patience);
Status EndDrain(store::PartitionLog& log, const std::string& node);

}  // namespace codband::server
