#pragma once

#include <algorithm>
#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

namespace codband::store {

// A read-write lock that prefers writers: while a writer waits, new readers queue behind it.
//
// A reader that runs a caller's callback (the visitor of a scan) holds a CallbackGuard. Inside the
// callback its thread may take the lock for reading again without waiting; a std::shared_mutex
// alone would deadlock there as soon as a writer waits. It must not take the lock for writing:
// check IsInCallback() first.
class ReadWriteLock {
 public:
  class ReadGuard {
   public:
    explicit ReadGuard(const ReadWriteLock& lock) : lock_(lock), locks_(!lock.IsInCallback()) {
      if (!locks_) return;  // the CallbackGuard of this thread holds it
      if (lock_.writer_waits_.load()) std::lock_guard turn(lock_.turn_);
      lock_.mutex_.lock_shared();
    }
    ~ReadGuard() {
      if (locks_) lock_.mutex_.unlock_shared();
    }
    ReadGuard(const ReadGuard&) = delete;
    ReadGuard& operator=(const ReadGuard&) = delete;

   private:
    const ReadWriteLock& lock_;
    const bool locks_;
  };

  // A ReadGuard for a thread that calls back. They nest.
  class CallbackGuard {
   public:
    explicit CallbackGuard(const ReadWriteLock& lock) : lock_(lock), read_(lock) {
      const std::lock_guard guard(lock_.callbacks_mutex_);
      lock_.callbacks_.push_back(std::this_thread::get_id());
      ++lock_.callback_count_;
    }
    ~CallbackGuard() {
      const std::lock_guard guard(lock_.callbacks_mutex_);
      lock_.callbacks_.erase(std::ranges::find(lock_.callbacks_, std::this_thread::get_id()));
      --lock_.callback_count_;
    }
    CallbackGuard(const CallbackGuard&) = delete;
    CallbackGuard& operator=(const CallbackGuard&) = delete;

   private:
    const ReadWriteLock& lock_;
    const ReadGuard read_;
  };

  class WriteGuard {
   public:
    explicit WriteGuard(const ReadWriteLock& lock) : lock_(lock), turn_(lock.turn_) {
      lock_.writer_waits_ = true;
      lock_.mutex_.lock();
    }
    ~WriteGuard() {
      lock_.mutex_.unlock();
      lock_.writer_waits_ = false;
    }
    WriteGuard(const WriteGuard&) = delete;
    WriteGuard& operator=(const WriteGuard&) = delete;

   private:
    const ReadWriteLock& lock_;
    std::lock_guard<std::mutex> turn_;
  };

  // Whether the calling thread holds a CallbackGuard. One atomic load while no thread does.
  bool IsInCallback() const {
    if (callback_count_.load() == 0) return false;
    const std::lock_guard guard(callbacks_mutex_);
    return std::ranges::find(callbacks_, std::this_thread::get_id()) != callbacks_.end();
  }

 private:
  friend class ReadWriteLockPeer;  // the test looks at writer_waits_

  mutable std::shared_mutex mutex_;
  mutable std::mutex turn_;  // held by the writer that is next, or active
  mutable std::atomic<bool> writer_waits_ = false;

  mutable std::mutex callbacks_mutex_;  // guards what follows
  mutable std::vector<std::thread::id> callbacks_;
  mutable std::atomic<std::size_t> callback_count_ = 0;  // callbacks_.size(), to be read unguarded
};

}  // namespace codband::store
