#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "codband/engine/engine.h"
#include "codband/server/api/decision_log.h"
#include "codband/server/http/router.h"

namespace codband::server {

// What one thread of the server has answered. One thread records, any may read.
class RouteMetrics {
 public:
  // Upper bounds of the latency histogram; beyond the last is one more bucket.
  static constexpr std::array<double, 14> kBounds = {
      0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5};
  struct PerRoute {
    std::array<std::uint64_t, 6> by_class{};  // [2]: answers of 2xx
    std::array<std::uint64_t, kBounds.size() + 1> buckets{};
    std::uint64_t nanoseconds = 0;
  };

  void Record(RouteId route, int status, std::chrono::nanoseconds latency);
  // Adds its numbers to `total`.
  void AddTo(RouteId route, PerRoute& total) const;

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
  std::array<Counts, kRouteCount + 1> routes_;
};

// What the server knows besides.
struct ServerFacts {
  std::uint64_t connections = 0;           // open now
  std::uint64_t connections_accepted = 0;  // since the start
  std::uint64_t connections_refused = 0;   // because there were too many
  std::int64_t start_time_ms = 0;
  std::int64_t now_ms = 0;
  std::optional<DecisionLogStats> decision_log = {};  // if there is one
};

// Everything at /metrics, in Prometheus' text format 0.0.4.
std::string RenderMetrics(std::span<const RouteMetrics* const> threads, const ServerFacts& facts,
                          const engine::EngineStats& stats);

}  // namespace codband::server
