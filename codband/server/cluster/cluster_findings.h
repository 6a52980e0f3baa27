#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "codband/base/status.h"
#include "codband/server/admin/findings.h"
#include "codband/store/partition_log.h"

namespace codband::server {

// One finding for the PostgreSQL behind a connection string: whether what it acknowledges stays.
Finding ExamineDatabaseOf(const std::string& dsn, const std::string& part);

struct ClusterExamination {
  bool ask_nodes = true;  // whether every living node answers at its address, from here
  // If given, every partition is made anew from its checkpoint and its log in a folder of it, and
  // examined like a data directory (ExamineData). The folders stay.
  std::filesystem::path scratch = {};
};

// Examines a cluster, changing nothing: nodes; of each partition its owner, its checkpoint, the
// frames since, and what is left over; the catalogue; the shared pool. Goes on as far as it can
// when something is wrong. Nodes may be at work meanwhile. Reads all of the log.
std::vector<Finding> ExamineCluster(store::PartitionLog& log,
                                    const ClusterExamination& examination);

}  // namespace codband::server
