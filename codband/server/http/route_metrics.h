#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "codband/server/http/route.h"

namespace codband::server {

// Counts and latencies of the requests that one thread has answered, by route. One thread records,
// any thread may read.
class RouteMetrics {
 public:
  // Upper bounds of the latency histogram's buckets in seconds; one more bucket is beyond the last.
  static constexpr std::array<double, 14> kBounds = {
      0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5};
  struct Totals {
    std::array<std::uint64_t, 6> by_class{};  // [2]: replies with status 2xx
    std::array<std::uint64_t, kBounds.size() + 1> buckets{};
    std::uint64_t nanoseconds = 0;
  };

  explicit RouteMetrics(std::size_t routes) : counts_(routes + 1) {}

  // `route` is an index into the table of routes, or kNoRoute.
  void Record(std::size_t route, int status, std::chrono::nanoseconds latency);
  // Adds its numbers to `totals`, which has one element per route and one for kNoRoute at the end.
  void AddTo(std::vector<Totals>& totals) const;

 private:
  // A counter that one thread writes needs no atomic addition.
  class Count {
   public:
    void Add(std::uint64_t n) {
      value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
    }
    std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

   private:
    std::atomic<std::uint64_t> value_ = 0;
  };
  struct Counts {
    std::array<Count, 6> by_class;
    std::array<Count, kBounds.size() + 1> buckets;
    Count nanoseconds;
  };

  std::vector<Counts> counts_;  // the last is that of kNoRoute
};

}  // namespace codband::server
