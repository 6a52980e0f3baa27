#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "codband/base/log.h"
#include "codband/base/status.h"
#include "codband/store/partition_log.h"

namespace codband::cluster {

struct PostgresOptions {
  // One connection string for each PostgreSQL cluster that shares the partitions, in the order in
  // which the loop was made with them. Each may name several hosts of one cluster.
  std::vector<std::string> dsns = {};
  std::string loop = "codband";          // a schema
  store::Partition partitions = 0;       // if not 0, the loop has or gets as many
  store::Partition new_partitions = 16;  // that a new loop gets if `partitions` is 0
  std::int64_t timeout_ms = 10'000;      // for an answer of the database
  bool create = true;                    // make a loop that is not there
  LogSink log = {};                      // may be empty
};

// The partition log in PostgreSQL: makes the tables of the loop, or brings them up to date, and
// connects. A lost connection is made again by itself. What was appended is on the disk of the
// primary and, if there is one, of the synchronous standby.
//
// kInvalidArgument: a connection string, the loop's name, or tables that are newer or of another
// loop. kNotFound: there is no such loop, and `create` is false. kUnavailable: the database does
// not answer or does not let us in.
Result<std::unique_ptr<store::PartitionLog>> OpenPostgresLog(const PostgresOptions& options);

}  // namespace codband::cluster
