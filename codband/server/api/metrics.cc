#include "codband/server/api/metrics.h"

#include <fmt/format.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <sstream>
#include <utility>
#include <vector>

#include "codband/base/version.h"

namespace codband::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

double ToDouble(std::uint64_t value) { return static_cast<double>(value); }

// Resident memory of this process; 0 if the system does not say.
double ResidentBytes() {
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  unsigned long total = 0;
  unsigned long resident = 0;
  const int read = std::fscanf(file, "%lu %lu", &total, &resident);
  std::fclose(file);
  return read == 2 ? static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) : 0;
}

class Families {
 public:
  void Gauge(const char* name, const char* help, double value, Labels labels = {}) {
    ClientMetric& metric = Add(name, help, MetricType::Gauge, std::move(labels));
    metric.gauge.value = value;
  }
  void Counter(const char* name, const char* help, double value, Labels labels = {}) {
    ClientMetric& metric = Add(name, help, MetricType::Counter, std::move(labels));
    metric.counter.value = value;
  }
  // Members of one family follow one another.
  ClientMetric& Add(const char* name, const char* help, MetricType type, Labels labels) {
    if (families_.empty() || families_.back().name != name) {
      families_.push_back({name, help, type, {}});
    }
    ClientMetric& metric = families_.back().metric.emplace_back();
    metric.label = std::move(labels);
    return metric;
  }
  std::string ToText() const {
    std::ostringstream out;
    prometheus::TextSerializer().Serialize(out, families_);
    return std::move(out).str();
  }

 private:
  std::vector<MetricFamily> families_;
};

Labels RouteLabels(std::size_t route) {
  if (route == kRouteCount) return {{"route", "other"}, {"method", "other"}};
  return {{"route", std::string(Routes()[route].pattern)},
          {"method", std::string(MethodName(Routes()[route].method))}};
}

void AddRoutes(Families& out, std::span<const RouteMetrics* const> threads) {
  std::array<RouteMetrics::PerRoute, kRouteCount + 1> totals{};
  for (std::size_t route = 0; route <= kRouteCount; ++route) {
    for (const RouteMetrics* thread : threads) {
      thread->AddTo(static_cast<RouteId>(route), totals[route]);
    }
  }
  for (std::size_t route = 0; route <= kRouteCount; ++route) {
    for (std::size_t digit = 1; digit < 6; ++digit) {
      const std::uint64_t count = totals[route].by_class[digit];
      // 2xx is always there, so that a rate can start from 0.
      if (count == 0 && (digit != 2 || route == kRouteCount)) continue;
      Labels labels = RouteLabels(route);
      labels.push_back({"status", fmt::format("{}xx", digit)});
      out.Counter("codband_http_requests_total", "Requests answered.", ToDouble(count),
                  std::move(labels));
    }
  }
  for (std::size_t route = 0; route <= kRouteCount; ++route) {
    ClientMetric& metric = out.Add("codband_http_request_seconds",
                                   "From the request's last byte to its answer being ready.",
                                   MetricType::Histogram, RouteLabels(route));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < totals[route].buckets.size(); ++i) {
      seen += totals[route].buckets[i];
      const double bound = i < RouteMetrics::kBounds.size()
                               ? RouteMetrics::kBounds[i]
                               : std::numeric_limits<double>::infinity();
      metric.histogram.bucket.push_back({.cumulative_count = seen, .upper_bound = bound});
    }
    metric.histogram.sample_count = seen;
    metric.histogram.sample_sum = ToDouble(totals[route].nanoseconds) * 1e-9;
  }
}

void AddEngine(Families& out, const engine::EngineStats& stats) {
  const auto reward = [&](const char* outcome, std::uint64_t count) {
    out.Counter("codband_rewards_total", "Rewards received, by what became of them.",
                ToDouble(count), {{"outcome", outcome}});
  };
  out.Counter("codband_ranks_total", "Decisions made.", ToDouble(stats.ranks));
  reward("accepted", stats.rewards_accepted);
  reward("duplicate", stats.rewards_duplicate);
  reward("late", stats.rewards_late);
  reward("unknown", stats.rewards_unknown);
  out.Counter("codband_rewards_defaulted_total",
              "Decisions learned with the default reward after the wait.",
              ToDouble(stats.rewards_defaulted));
  out.Counter("codband_expired_total", "Decisions whose wait ended without a reward.",
              ToDouble(stats.expired));
  out.Counter("codband_learned_total", "Rewards learned from.", ToDouble(stats.learned));
  out.Counter("codband_changes_total", "Changes of taste detected.", ToDouble(stats.changes));
  out.Gauge("codband_changes_last_hour", "Changes of taste detected in the last hour.",
            ToDouble(stats.changes_last_hour));
  out.Gauge("codband_models", "Models that users share.", ToDouble(stats.models));
  out.Gauge("codband_users", "Users known.", ToDouble(stats.users));
  out.Gauge("codband_users_in_memory", "Users held in memory.", ToDouble(stats.users_in_memory));
  out.Gauge("codband_items", "Items of the catalogue.", ToDouble(stats.items));
  out.Gauge("codband_pending_decisions", "Decisions that wait for their reward.",
            ToDouble(stats.pending));
  const std::uint64_t lag =
      stats.committed_sequence - std::min(stats.committed_sequence, stats.applied_sequence);
  out.Gauge("codband_learner_lag_events", "Durable events that are not learned yet.",
            ToDouble(lag));
  out.Gauge("codband_queue_requests", "Requests that wait to be made durable.",
            ToDouble(stats.queue));
  out.Gauge("codband_store_disk_bytes", "Size of the data on disk.",
            ToDouble(stats.store.disk_bytes));
  out.Gauge("codband_store_memory_bytes", "Memory of the store: write buffers and caches.",
            ToDouble(stats.store.memory_bytes));
  out.Gauge("codband_store_up", "1 while the store works, 0 while it is in trouble.",
            stats.last_error.empty() ? 1 : 0);
  out.Counter("codband_checkpoints_total", "Checkpoints written.", ToDouble(stats.checkpoints));
  out.Gauge("codband_committed_sequence", "Last event that is durable.",
            ToDouble(stats.committed_sequence));
  out.Gauge("codband_applied_sequence", "Last event that is learned.",
            ToDouble(stats.applied_sequence));
  out.Gauge("codband_checkpoint_sequence", "Last event that is in a checkpoint.",
            ToDouble(stats.checkpoint_sequence));
}

}  // namespace

void RouteMetrics::Record(RouteId route, int status, std::chrono::nanoseconds latency) {
  Counts& counts = routes_[static_cast<std::size_t>(route)];
  counts.by_class[static_cast<std::size_t>(std::clamp(status / 100, 1, 5))].Add(1);
  const double seconds = std::chrono::duration<double>(latency).count();
  const auto* const bound = std::lower_bound(kBounds.begin(), kBounds.end(), seconds);
  counts.buckets[static_cast<std::size_t>(bound - kBounds.begin())].Add(1);
  counts.nanoseconds.Add(static_cast<std::uint64_t>(latency.count()));
}

void RouteMetrics::AddTo(RouteId route, PerRoute& total) const {
  const Counts& counts = routes_[static_cast<std::size_t>(route)];
  for (std::size_t i = 0; i < total.by_class.size(); ++i) {
    total.by_class[i] += counts.by_class[i].value();
  }
  for (std::size_t i = 0; i < total.buckets.size(); ++i) {
    total.buckets[i] += counts.buckets[i].value();
  }
  total.nanoseconds += counts.nanoseconds.value();
}

std::string RenderMetrics(std::span<const RouteMetrics* const> threads, const ServerFacts& facts,
                          const engine::EngineStats& stats) {
  Families out;
  AddRoutes(out, threads);
  AddEngine(out, stats);
  out.Gauge("codband_connections", "Connections open.", ToDouble(facts.connections));
  out.Counter("codband_connections_accepted_total", "Connections accepted.",
              ToDouble(facts.connections_accepted));
  out.Counter("codband_connections_refused_total",
              "Connections turned away because there were too many.",
              ToDouble(facts.connections_refused));
  if (facts.decision_log) {
    const DecisionLogStats& log = *facts.decision_log;
    out.Counter("codband_decision_log_lines_total", "Decisions written to the decision log.",
                ToDouble(log.written));
    out.Counter("codband_decision_log_lost_total",
                "Decisions that the decision log lacks: the disk failed or the queue was full.",
                ToDouble(log.failed + log.dropped));
    out.Gauge("codband_decision_log_queue", "Decisions waiting to be written to the decision log.",
              ToDouble(log.queue));
  }
  out.Gauge("codband_process_resident_memory_bytes", "Memory of the process.", ResidentBytes());
  out.Gauge("codband_start_time_seconds", "When the server started, since 1970.",
            static_cast<double>(facts.start_time_ms) / 1000);
  out.Gauge("codband_build_info", "Always 1; the labels say what is running.", 1,
            {{"version", std::string(kVersion)},
             {"policy", stats.policy},
             {"dim", fmt::format("{}", stats.dim)}});
  return out.ToText();
}

}  // namespace codband::server
