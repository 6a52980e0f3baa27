#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

namespace codband {

// What calls functions later. Code that is written against it runs by a real clock in a server and
// by a virtual one in a simulation.
class Timers {
 public:
  virtual ~Timers() = default;

  // Milliseconds of a steady clock.
  virtual std::int64_t now_ms() const = 0;
  // Calls `task` once, after so long, never before this function has returned.
  virtual void After(std::int64_t delay_ms, std::function<void()> task) = 0;
};

// Time that passes only as tasks run, for simulations in one thread: an hour takes as long as what
// happens in it. Tasks of the same time run in the order in which they were given. Not thread-safe.
class VirtualTime final : public Timers {
 public:
  std::int64_t now_ms() const override { return now_ms_; }
  void After(std::int64_t delay_ms, std::function<void()> task) override {
    tasks_.emplace(std::pair(now_ms_ + delay_ms, next_++), std::move(task));
  }

  // Runs the next task; false if there is none.
  bool RunOne() {
    if (tasks_.empty()) return false;
    auto first = tasks_.extract(tasks_.begin());
    now_ms_ = first.key().first;
    first.mapped()();
    return true;
  }
  // Runs what is due within this time.
  void RunFor(std::int64_t duration_ms) {
    const std::int64_t end_ms = now_ms_ + duration_ms;
    while (!tasks_.empty() && tasks_.begin()->first.first <= end_ms) RunOne();
    now_ms_ = end_ms;
  }

 private:
  std::int64_t now_ms_ = 0;
  std::uint64_t next_ = 0;
  std::map<std::pair<std::int64_t, std::uint64_t>, std::function<void()>> tasks_;
};

}  // namespace codband
