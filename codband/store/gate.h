#pragma once

#include <atomic>
#include <mutex>
#include <shared_mutex>

namespace codband::store {

// Many may pass at a time, or one alone. Who is in may enter again, as a visitor of a scan does
// that calls the store; who waits to be alone is not passed by newcomers.
class Gate {
 public:
  class Shared {
   public:
    explicit Shared(const Gate& gate) : gate_(gate), outer_(innermost), again_(gate.IsInside()) {
      if (!again_) {
        if (gate_.waiting_.load()) std::lock_guard turn(gate_.turn_);
        gate_.mutex_.lock_shared();
      }
      innermost = this;
    }
    ~Shared() {
      innermost = outer_;
      if (!again_) gate_.mutex_.unlock_shared();
    }
    Shared(const Shared&) = delete;
    Shared& operator=(const Shared&) = delete;

   private:
    friend class Gate;
    const Gate& gate_;
    const Shared* const outer_;
    const bool again_;
  };

  class Alone {
   public:
    explicit Alone(const Gate& gate) : gate_(gate), turn_(gate.turn_) {
      gate_.waiting_ = true;
      gate_.mutex_.lock();
    }
    ~Alone() {
      gate_.mutex_.unlock();
      gate_.waiting_ = false;
    }
    Alone(const Alone&) = delete;
    Alone& operator=(const Alone&) = delete;

   private:
    const Gate& gate_;
    std::lock_guard<std::mutex> turn_;
  };

  // Whether the calling thread has passed.
  bool IsInside() const {
    for (const Shared* held = innermost; held != nullptr; held = held->outer_) {
      if (&held->gate_ == this) return true;
    }
    return false;
  }

  // Whether someone is alone, or waits to be.
  bool IsAwaited() const { return waiting_; }

 private:
  inline static thread_local const Shared* innermost = nullptr;

  mutable std::shared_mutex mutex_;
  mutable std::mutex turn_;
  mutable std::atomic<bool> waiting_ = false;
};

}  // namespace codband::store
