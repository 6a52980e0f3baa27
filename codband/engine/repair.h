#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "codband/base/status.h"

namespace codband::engine {

// What is damaged in a data directory, and what a repair drops.
struct RepairReport {
  std::vector<std::string> damage;  // where bytes are not what was written
  std::vector<std::string> drops;   // records, by name where that is known
  std::string kept_aside;  // where the damaged files are after the repair; empty: as before
};

// Finds out what of the data in `directory` can be read and belongs together, and copies that into
// a new store. With `apply` this takes the place of the damaged one, which is kept beside it under
// another name; otherwise nothing changes. Without damage there is nothing to do, and nothing is
// done. After it the engine starts.
//
// What belongs together: a user whose record is lost is dropped, with name, history and pending
// decisions; the models keep what they have learned from them. If name and history are lost, what
// was learned of the user stays, and these start anew with the next reward. A log entry that is
// lost leaves no gap. If what all users share is lost everything that was learned is dropped, and
// the catalogue is kept.
//
// Needs room for a second copy of the data, for a while. kUnavailable if a process has it open.
Result<RepairReport> RepairData(const std::filesystem::path& directory, bool apply);

// The key in the table kMeta under which a repair leaves the number of users whom it dropped.
inline constexpr const char* kDroppedUsersKey = "repair/dropped_users";

}  // namespace codband::engine
