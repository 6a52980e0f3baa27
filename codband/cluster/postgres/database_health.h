#pragma once

#include <cstdint>
#include <string>

#include "codband/base/status.h"

namespace codband::cluster {

// What a PostgreSQL says of itself that matters for what was acknowledged.
struct DatabaseHealth {
  std::string version = {};
  std::string loop_id = {};       // random, made with the loop
  bool fsync = false;             // off: a crash of the machine loses what was acknowledged
  bool full_page_writes = false;  // off: it may tear pages
  std::string standbys = {};      // synchronous_standby_names
  std::uint64_t synchronous = 0;  // standbys that stream and are waited for
  std::uint64_t hidden = 0;       // standbys of whom this user may not see more
  std::uint64_t loop_bytes = 0;   // that the tables of the loop take on disk
};

// `loop`: the schema. kInvalidArgument and kUnavailable as of OpenPostgresLog.
Result<DatabaseHealth> ExamineDatabase(const std::string& dsn, const std::string& loop);

}  // namespace codband::cluster
