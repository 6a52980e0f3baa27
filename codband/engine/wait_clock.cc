#include "codband/engine/wait_clock.h"

#include <algorithm>

namespace codband::engine {

WaitClock::WaitClock(const EngineOptions& options, std::int64_t start_ms)
    : wall_ms_(options.now_ms),
      steady_ms_(options.steady_ms),
      boot_id_(options.boot_id),
      start_ms_(start_ms),
      steady_start_ms_(options.steady_ms()) {}

Result<WaitClock> WaitClock::Open(const store::Store& store, const EngineOptions& options) {
  std::string bytes;
  const Status found = store.Get(store::Table::kMeta, ClockRecord::kKey, bytes);
  if (found.code() == StatusCode::kNotFound) return WaitClock(options, options.now_ms());
  if (!found.ok()) return found;
  const auto record = ClockRecord::Decode(bytes);
  if (!record.ok()) return WaitClock(options, options.now_ms());
  const ClockRecord& last = record.value();
  const std::int64_t steady = options.steady_ms() - last.steady_ms;
  const bool same_boot = !last.boot_id.empty() && last.boot_id == options.boot_id && steady >= 0;
  const std::int64_t most = options.moves_between_machines ? 0 : options.reward_wait_ms / 2;
  const std::int64_t wall = std::clamp<std::int64_t>(options.now_ms() - last.wall_ms, 0, most);
  return WaitClock(options, last.wait_ms + (same_boot ? steady : wall));
}

std::int64_t WaitClock::now_ms() const {
  return start_ms_ + std::max<std::int64_t>(0, steady_ms_() - steady_start_ms_);
}

ClockRecord WaitClock::Record() const {
  return {
      .wait_ms = now_ms(), .wall_ms = wall_ms_(), .steady_ms = steady_ms_(), .boot_id = boot_id_};
}

}  // namespace codband::engine
