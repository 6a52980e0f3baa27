#pragma once

#include <optional>
#include <string>

#include "codband/base/status.h"
#include "codband/sim/runner.h"

namespace codband::experiments {

// Finished runs on disk, one file each, so that long work can be interrupted and taken up again.
// A run is found by all that determines its result: `identity` holds the program's version, the
// environment, the policy's full spec and the seed. Thread-safe for different identities.
class RunStore {
 public:
  // `directory` exists.
  explicit RunStore(std::string directory) : directory_(std::move(directory)) {}

  // The run, or nothing if it has not been finished (or its file is damaged: it is played again).
  std::optional<sim::RunResult> Load(const std::string& identity) const;

  Status Save(const std::string& identity, const sim::RunResult& run) const;

 private:
  std::string PathFor(const std::string& identity) const;

  std::string directory_;
};

}  // namespace codband::experiments
