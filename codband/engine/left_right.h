#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <utility>

namespace codband::engine {

// Left-right concurrency (Ramalhete & Correia, 2013): two copies of a T. Readers use the one that
// is shown and never wait. The writer changes the hidden copy, shows it, waits until no reader is
// left on the other, and makes the same change there. Costs twice the memory and twice the writes.
//
// Any number of threads may read; one at a time may write.
template <typename T>
class LeftRight {
 public:
  // Precondition: equal copies.
  LeftRight(T left, T right) : copies_{std::move(left), std::move(right)} {}

  // Calls read(const T&) and returns what it returns. What it sees does not change meanwhile.
  template <typename Function>
  decltype(auto) Read(const Function& read) const {
    const Arrival arrival(arrivals_[version_.load()]);
    return read(std::as_const(copies_[shown_.load()]));
  }

  // Calls change(T&) for both copies, one after the other; it must do the same to each. In between
  // calls shown(): readers see the change from then on.
  template <typename Change, typename Shown>
  void Write(const Change& change, const Shown& shown) {
    const std::size_t old = shown_.load();
    change(copies_[1 - old]);
    shown_.store(1 - old);
    shown();
    // Readers that arrived under one version may be on either copy. Once both versions have been
    // empty no reader is left on the old copy.
    const std::size_t version = version_.load();
    WaitUntilEmpty(arrivals_[1 - version]);
    version_.store(1 - version);
    WaitUntilEmpty(arrivals_[version]);
    change(copies_[old]);
  }
  template <typename Change>
  void Write(const Change& change) {
    Write(change, [] {});
  }

 private:
  // Readers count themselves in one of several cache lines, so that they do not contend for one.
  struct alignas(64) Count {
    std::atomic<std::uint64_t> readers{0};
  };
  using Arrivals = std::array<Count, 16>;

  class Arrival {
   public:
    explicit Arrival(Arrivals& arrivals)
        : count_(arrivals[std::hash<std::thread::id>()(std::this_thread::get_id()) %
                          arrivals.size()]) {
      count_.readers.fetch_add(1);
    }
    ~Arrival() { count_.readers.fetch_sub(1); }
    Arrival(const Arrival&) = delete;
    Arrival& operator=(const Arrival&) = delete;

   private:
    Count& count_;
  };

  static void WaitUntilEmpty(const Arrivals& arrivals) {
    for (const Count& count : arrivals) {
      while (count.readers.load() != 0) std::this_thread::yield();
    }
  }

  std::array<T, 2> copies_;
  std::atomic<std::size_t> shown_{0};
  std::atomic<std::size_t> version_{0};
  mutable std::array<Arrivals, 2> arrivals_;
};

}  // namespace codband::engine
