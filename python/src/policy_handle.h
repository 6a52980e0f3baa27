#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "codband/policy/policy.h"

namespace codband::python {

// A decision with the key that its reward is learned under.
struct KeyedDecision {
  Decision decision;
  EventKey key;
};

// Decisions made in one call. Memory is reused from batch to batch: making and destroying one needs
// the GIL.
struct Batch {
  explicit Batch(std::size_t size);
  ~Batch();
  Batch(Batch&&) = default;
  Batch& operator=(Batch&&) = delete;

  std::vector<KeyedDecision> decisions;
};

// A policy as Python holds it. Thread-safe, unlike the policy itself: any number of threads choose
// at the same time, learning waits for them and they for it. The lock is never held while the GIL
// is waited for.
class PolicyHandle {
 public:
  PolicyHandle(std::unique_ptr<Policy> policy, std::uint64_t seed, std::uint64_t next_event)
      : policy_(std::move(policy)), seed_(seed), next_event_(next_event) {}

  EventKey KeyOf(std::uint64_t event) const { return {.seed = seed_, .event = event}; }

  // The numbers of the next `count` events. A call that fails gives them back.
  class Events {
   public:
    Events(PolicyHandle& policy, std::uint64_t count)
        : policy_(policy), count_(count), first_(policy.next_event_.fetch_add(count)) {}
    ~Events() {
      std::uint64_t end = first_ + count_;
      if (!kept_) policy_.next_event_.compare_exchange_strong(end, first_);
    }
    Events(const Events&) = delete;
    Events& operator=(const Events&) = delete;

    std::uint64_t first() const { return first_; }
    void Keep() { kept_ = true; }

   private:
    PolicyHandle& policy_;
    const std::uint64_t count_;
    const std::uint64_t first_;
    bool kept_ = false;
  };

  // Calls use(const Policy&) while nothing is learned.
  template <typename Use>
  auto Read(const Use& use) const {
    const std::shared_lock lock(mutex_);
    return use(static_cast<const Policy&>(*policy_));
  }
  // Calls use(Policy&) alone.
  template <typename Use>
  auto Write(const Use& use) {
    const std::unique_lock lock(mutex_);
    return use(*policy_);
  }

  // Not changed by learning.
  std::size_t dim() const { return policy_->dim(); }
  const std::string& spec() const { return policy_->spec(); }
  std::uint64_t seed() const { return seed_; }
  std::uint64_t next_event() const { return next_event_; }

 private:
  std::unique_ptr<Policy> policy_;
  const std::uint64_t seed_;
  std::atomic<std::uint64_t> next_event_;
  mutable std::shared_mutex mutex_;
};

}  // namespace codband::python
