#pragma once

#include <optional>
#include <string>

#include "codband/base/status.h"
#include "codband/sim/runner.h"

namespace codband::experiments {

// Finished runs as files of a directory, one JSON file for each run, named by a hash of its
// identity. Thread-safe for different identities.
class RunStore final : public sim::RunArchive {
 public:
  // `directory` exists.
  explicit RunStore(std::string directory) : directory_(std::move(directory)) {}

  // None also if the file is damaged or belongs to another identity: the run is then played again.
  std::optional<sim::RunResult> Load(const std::string& identity) const override;
  Status Save(const std::string& identity, const sim::RunResult& run) const override;

 private:
  std::string PathFor(const std::string& identity) const;

  std::string directory_;
};

}  // namespace codband::experiments
