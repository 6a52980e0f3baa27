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
  std::uint64_t max_file_bytes = 64 << 20;    // then a new file is started
  std::size_t max_files = 100;                // older ones are removed; 0: all are kept
  std::size_t queue = 10'000;                 // decisions that wait to be written
  bool drop_when_full = false;                // else Append waits (backpressure)
  std::function<std::int64_t()> now_ms = {};  // for file names; default: the system clock
};

struct DecisionLogStats {
  std::uint64_t written = 0;  // lines that are in a file
  std::uint64_t dropped = 0;  // the queue was full (drop_when_full)
  std::uint64_t failed = 0;   // a write failed
  std::uint64_t bytes = 0;    // written
  std::size_t queue = 0;      // waiting now
  Status last_error;          // of the last attempt to write; ok once one succeeds again
};

// One line of DSJSON without its line break, as Vowpal Wabbit reads it with --dsjson: labels before
// "c" (its parser applies them at the end of "c"), no spaces, `a` one-based with the chosen action
// first and the others by decreasing probability, `p` in the same order. An action's id is its
// _tag; its features are f0, f1, …, or have the names of their columns ("genre=rock"), in the
// namespace Features, zeros omitted; the user's id, the context and the features of the user are
// shared features. JSON context is rewritten where VW cannot read it: keys that begin
// with an underscore, which VW takes for commands, get the prefix "x", and arrays with elements
// other than numbers and objects become objects. Context that is not JSON becomes one text feature.
std::string ToDsJson(const engine::FinishedDecision& decision);

// Writes finished decisions to files DIRECTORY/decisions-YYYYMMDD-HHMMSS-NNN.json (UTC; the order
// of names is that of time) on a thread of its own. Every start begins a new file; a crash can only
// truncate the last line of a file. Lines are synced to disk within a second, and on Stop. When a
// write fails, as on a full disk, its lines are lost and counted; later lines are tried again. Safe
// from any thread.
class DecisionLog {
 public:
  // Creates the directory; it and the files are for their owner alone. Errors are those of
  // EnsurePrivateDirectory.
  static Result<std::unique_ptr<DecisionLog>> Open(const DecisionLogOptions& options);
  virtual ~DecisionLog() = default;  // Stop()

  // Waits while the queue is full, unless drop_when_full. After Stop decisions are dropped. Those
  // whose candidates are not known, as they were made when there was no log, are left out.
  virtual void Append(engine::FinishedDecision decision) = 0;
  // Writes what is queued and closes the file. Safe to call twice.
  virtual void Stop() = 0;
  virtual DecisionLogStats Stats() const = 0;
};

}  // namespace codband::server
