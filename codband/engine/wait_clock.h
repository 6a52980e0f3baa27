#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "codband/base/status.h"
#include "codband/engine/engine.h"
#include "codband/engine/records.h"
#include "codband/store/store.h"

namespace codband::engine {

// The time that waits for a reward are measured by. It began as the wall clock's time and never
// jumps, however that is set:
//
//   - While the engine runs it advances with a steady clock.
//   - Across a restart of the process it goes on by the same clock.
//   - Across a restart of the machine, where that clock starts anew, it goes on by the difference
//     of wall times, but not backwards, and by no more than half of the wait for a reward. A wait
//     may thus last longer than it should; it is never cut short by more than that.
//   - On another machine (EngineOptions::moves_between_machines), and after a restart of one that
//     may be another, it goes on where it stood: a wait lasts longer by as long as nobody served,
//     and is never cut short.
//
// The committer saves where it stands (ClockRecord). Thread-safe.
class WaitClock {
 public:
  // Goes on from what the store has; begins with the wall clock's time if that is nothing
  // that can be read.
  // `options` has its clocks.
  static Result<WaitClock> Open(const store::Store& store, const EngineOptions& options);

  std::int64_t now_ms() const;
  ClockRecord Record() const;  // to be saved

 private:
  WaitClock(const EngineOptions& options, std::int64_t start_ms);

  std::function<std::int64_t()> wall_ms_;
  std::function<std::int64_t()> steady_ms_;
  std::string boot_id_;
  std::int64_t start_ms_;         // of this clock
  std::int64_t steady_start_ms_;  // of the steady clock, at the same moment
};

}  // namespace codband::engine
