#pragma once

#include <cstdint>
#include <string>

#include "codband/base/status.h"
#include "codband/cluster/postgres/connection.h"
#include "codband/store/partition_log.h"

namespace codband::cluster {

// The tables of a loop in one PostgreSQL cluster, in a schema of their own:
//   about       one row: version of the tables, the loop's id, how many partitions it has in all,
//               which of its PostgreSQL clusters this is
//   partitions  epoch, owner, lease, last sequence of the partitions that live here
//   takeovers   where each epoch began: tells for good what became of an append
//   log         the frames, a table for each partition
//   blobs       checkpoints
//   nodes       names, addresses, leases
//   shared_log  what all partitions share: the catalogue
inline constexpr std::uint64_t kSchemaVersion = 3;

// What the row of `about` says.
struct LoopRow {
  std::uint64_t version = 0;
  // Random, and the same in all PostgreSQL clusters of the loop: the first one decides.
  std::string id = {};
  store::Partition partitions = 0;      // wanted: 0 means as it is, or as many as follows
  store::Partition new_partitions = 0;  // wanted of a new loop
  std::uint64_t cluster = 0;            // which one this is, from 0
  std::uint64_t clusters = 1;           // how many there were when it was made
};

// Makes the tables if there are none, and brings older ones up to date. `wanted` is the loop that
// is meant; its partition p lives in cluster p mod clusters. kInvalidArgument: the tables are newer
// than this program, or they are of another loop.
Result<LoopRow> PrepareSchema(Connection& connection, const std::string& schema,
                              const LoopRow& wanted);

// The same for a loop that must be there, with tables of this version: changes nothing. kNotFound:
// it is not there.
Result<LoopRow> FindSchema(Connection& connection, const std::string& schema,
                           const LoopRow& wanted);

}  // namespace codband::cluster
