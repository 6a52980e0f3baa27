#pragma once

#include <mutex>

#include "codband/engine/engine.h"

namespace codband::server {

// An engine that is taken away when its partition is closed. Thread-safe.
class LentEngine {
 public:
  explicit LentEngine(engine::Engine& engine) : partition_(engine.partition()) {}

  // Calls `use` with the engine's partition, unless it is gone; returns whether it was called. It
  // is not taken away meanwhile: nothing in it may take long.
  template <typename Function>
  bool Use(const Function& use) {
    const std::lock_guard lock(mutex_);
    if (partition_ == nullptr) return false;
    use(*partition_);
    return true;
  }
  // Nobody uses it any more from now on.
  void TakeBack() {
    const std::lock_guard lock(mutex_);
    partition_ = nullptr;
  }

 private:
  std::mutex mutex_;  // guards what follows
  engine::Partition* partition_;
};

}  // namespace codband::server
