#include "codband/cluster/thread_timers.h"

#include <chrono>

#include "codband/base/clock.h"

namespace codband::cluster {

ThreadTimers::ThreadTimers() : thread_([this] { Run(); }) {}

ThreadTimers::~ThreadTimers() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

std::int64_t ThreadTimers::now_ms() const { return BootMillis(); }

void ThreadTimers::After(std::int64_t delay_ms, std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.emplace(std::pair(now_ms() + delay_ms, next_++), std::move(task));
  }
  wake_.notify_one();
}

void ThreadTimers::Run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (tasks_.empty()) {
      wake_.wait(lock);
      continue;
    }
    const std::int64_t left = tasks_.begin()->first.first - now_ms();
    if (left > 0) {
      wake_.wait_for(lock, std::chrono::milliseconds(left));
      continue;
    }
    const auto task = tasks_.extract(tasks_.begin());
    lock.unlock();
    task.mapped()();
    lock.lock();
  }
}

}  // namespace codband::cluster
