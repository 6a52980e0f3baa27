#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "codband/base/status.h"
#include "codband/engine/engine.h"

namespace codband::server {

struct DecisionLogOptions {
  std::filesystem::path directory;            // empty: no log
  std::uint64_t max_file_bytes = 64 << 20;    // then a new file is begun
  std::size_t max_files = 100;                // older ones are removed; 0: all are kept
  std::size_t queue = 10'000;                 // decisions that wait to be written
  bool drop_when_full = false;                // else Append waits, so that nothing is lost
  std::function<std::int64_t()> now_ms = {};  // names the files; the system's time if not given
};

struct DecisionLogStats {
  std::uint64_t written = 0;  // lines that are in a file
  std::uint64_t dropped = 0;  // the queue was full (drop_when_full)
  std::uint64_t failed = 0;   // lost to the disk
  std::uint64_t bytes = 0;    // written
  std::size_t queue = 0;      // waiting now
  Status last_error;          // of the last attempt to write; ok once one succeeds again
};

// One line of DSJSON without its line break, as Vowpal Wabbit reads it with --dsjson: labels before
// "c" (its parser applies them where "c" ends), no blanks, `a` one-based with the chosen action
// first and the others by falling probability, `p` along with it. An action's id is its _tag, its
// features stand in the namespace Features as f0, f1, …, zeros left out; the user's id and the
// context are shared. Context that is JSON is rewritten where VW could not read it: keys that begin
// with an underscore, which are commands to VW, get an "x" in front, and lists that hold more than
// numbers and objects become objects. Context that is no JSON becomes one text feature.
std::string ToDsJson(const engine::FinishedDecision& decision);

// Writes finished decisions to files DIRECTORY/decisions-YYYYMMDD-HHMMSS-NNN.json (UTC; sorted by
// name is sorted by time), from a thread of its own. Every start begins a new file; after a crash
// only the last line of the one before can be cut off. What is written reaches the disk within a
// second, and on Stop. When a write fails, as on a full disk, its lines are lost and counted, and
// the next lines are tried again. Functions may be called from any thread.
class DecisionLog {
 public:
  // Makes the directory. Statuses are those of EnsureDirectory.
  static Result<std::unique_ptr<DecisionLog>> Open(const DecisionLogOptions& options);
  virtual ~DecisionLog() = default;  // Stop()

  // Waits while the queue is full, unless the options say drop. Dropped after Stop.
  virtual void Append(engine::FinishedDecision decision) = 0;
  // Writes what waits and closes the file. Safe to call twice.
  virtual void Stop() = 0;
  virtual DecisionLogStats Stats() const = 0;
};

}  // namespace codband::server
