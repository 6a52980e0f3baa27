#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "codband/base/timers.h"

namespace codband::cluster {

// Timers by the machine's steady clock, on a thread of their own: one task after the other, those
// of the same time in the order in which they were given. Thread-safe.
class ThreadTimers final : public Timers {
 public:
  ThreadTimers();
  // Tasks that wait are dropped.
  ~ThreadTimers() override;
  ThreadTimers(const ThreadTimers&) = delete;
  ThreadTimers& operator=(const ThreadTimers&) = delete;

  std::int64_t now_ms() const override;
  void After(std::int64_t delay_ms, std::function<void()> task) override;

 private:
  void Run();

  std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  std::map<std::pair<std::int64_t, std::uint64_t>, std::function<void()>> tasks_;
  std::uint64_t next_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace codband::cluster
