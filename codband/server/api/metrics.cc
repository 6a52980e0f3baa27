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

#include "codband/base/check.h"
#include "codband/base/version.h"

namespace codband::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

double ToDouble(std::uint64_t value) { return static_cast<double>(value); }

// Resident memory of this process; 0 if it is unknown.
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
  // Metrics of one family are added one after the other.
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

// The last element counts requests that no route was found for.
Labels RouteLabels(std::span<const Route> routes, std::size_t route) {
  if (route == routes.size()) return {{"route", "other"}, {"method", "other"}};
  return {{"route", std::string(routes[route].pattern)},
          {"method", std::string(MethodName(routes[route].method))}};
}

void AddRoutes(Families& out, const MetricsFacts& facts) {
  CODBAND_CHECK(facts.totals.size() == facts.routes.size() + 1);
  const std::size_t none = facts.routes.size();
  for (std::size_t route = 0; route <= none; ++route) {
    for (std::size_t digit = 1; digit < 6; ++digit) {
      const std::uint64_t count = facts.totals[route].by_class[digit];
      // 2xx is always there, so that a rate can start from 0.
      if (count == 0 && (digit != 2 || route == none)) continue;
      Labels labels = RouteLabels(facts.routes, route);
      labels.push_back({"status", fmt::format("{}xx", digit)});
      out.Counter("codband_http_requests_total", "Requests answered.", ToDouble(count),
                  std::move(labels));
    }
  }
  for (std::size_t route = 0; route <= none; ++route) {
    ClientMetric& metric =
        out.Add("codband_http_request_seconds",
                "Time from the last byte of a request (of an import: of its header) until the "
                "reply is ready.",
                MetricType::Histogram, RouteLabels(facts.routes, route));
    const RouteMetrics::Totals& totals = facts.totals[route];
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < totals.buckets.size(); ++i) {
      seen += totals.buckets[i];
      const double bound = i < RouteMetrics::kBounds.size()
                               ? RouteMetrics::kBounds[i]
                               : std::numeric_limits<double>::infinity();
      metric.histogram.bucket.push_back({.cumulative_count = seen, .upper_bound = bound});
    }
    metric.histogram.sample_count = seen;
    metric.histogram.sample_sum = ToDouble(totals.nanoseconds) * 1e-9;
  }
}

// As a summary without quantiles: its sum and its count.
void AddSummary(Families& out, const char* name, const char* help, const engine::Moments& moments,
                Labels labels) {
  ClientMetric& metric = out.Add(name, help, MetricType::Summary, std::move(labels));
  metric.summary.sample_count = moments.count;
  metric.summary.sample_sum = moments.sum;
}

void AddActivity(Families& out, const engine::Activity& activity) {
  using engine::Activity;
  for (std::size_t mode = 0; mode < Activity::kModes; ++mode) {
    for (std::size_t source = 0; source < Activity::kSources; ++source) {
      // Online the policy or its floor chooses, otherwise the baseline.
      if ((mode == 0) == (source == 2)) continue;
      AddSummary(out, "codband_reward",
                 "Rewards of decisions, defaulted ones included, by mode and by who chose.",
                 activity.rewards[mode][source],
                 {{"mode", engine::kModeNames[mode]}, {"source", engine::kSourceNames[source]}});
    }
  }
  const char* const help =
      "Estimates, one for each rewarded decision, of what the first action (baseline) or any "
      "action with the same chance (uniform) would have brought.";
  AddSummary(out, "codband_estimate", help, activity.baseline, {{"choice", "baseline"}});
  AddSummary(out, "codband_estimate", help, activity.uniform, {{"choice", "uniform"}});
  AddSummary(out, "codband_reward_delay_seconds", "From a decision to its reward.",
             activity.delay_s, {});
  out.Counter("codband_apprentice_decisions_total",
              "Rewarded decisions in which the baseline was shown, by whether the policy agreed.",
              ToDouble(activity.agreed), {{"agrees", "yes"}});
  out.Counter("codband_apprentice_decisions_total", "",
              ToDouble(activity.compared - activity.agreed), {{"agrees", "no"}});
}

void AddDecisions(Families& out, const engine::EngineStats& stats) {
  const auto reward = [&](const char* outcome, std::uint64_t count) {
    out.Counter("codband_rewards_total", "Rewards received, by outcome.", ToDouble(count),
                {{"outcome", outcome}});
  };
  out.Counter("codband_ranks_total", "Decisions made.", ToDouble(stats.ranks));
  reward("accepted", stats.rewards_accepted);
  reward("duplicate", stats.rewards_duplicate);
  reward("late", stats.rewards_late);
  reward("unknown", stats.rewards_unknown);
  AddActivity(out, stats.activity);
  out.Counter("codband_rewards_defaulted_total",
              "Decisions learned with the default reward because none came in time.",
              ToDouble(stats.rewards_defaulted));
  out.Counter("codband_expired_total",
              "Decisions whose wait ended without a reward, defaulted ones included.",
              ToDouble(stats.expired));
  out.Gauge("codband_pending_decisions", "Decisions waiting for their reward.",
            ToDouble(stats.pending));
}

void AddLearning(Families& out, const engine::EngineStats& stats) {
  out.Counter("codband_learned_total",
              "Entries of the log applied: rewards, new columns, forgotten users and items.",
              ToDouble(stats.learned));
  out.Gauge("codband_quarantined_entries",
            "Log entries that cannot be learned and are left out; 'codband doctor' lists them.",
            ToDouble(stats.quarantined));
  out.Counter("codband_changes_total", "Changes detected.", ToDouble(stats.changes));
  out.Gauge("codband_changes_last_hour", "Changes detected in the last hour.",
            ToDouble(stats.changes_last_hour));
  out.Gauge("codband_models", "Models in the shared pool.", ToDouble(stats.models));
  out.Gauge("codband_users", "Users known.", ToDouble(stats.users));
  out.Gauge("codband_users_in_memory", "Users held in memory.", ToDouble(stats.users_in_memory));
  out.Gauge("codband_users_memory_bytes", "Memory of the users held in it.",
            ToDouble(stats.user_bytes));
  out.Gauge("codband_items", "Items in the catalogue.", ToDouble(stats.items));
  out.Gauge("codband_feature_columns", "Columns of a name or a crossing of their own.",
            ToDouble(stats.columns));
  out.Gauge("codband_feature_columns_limit",
            "features.max_columns; 0 where the number of features is fixed.",
            ToDouble(stats.columns_limit));
  out.Gauge("codband_feature_names_sharing",
            "Names that came beyond the limit and share columns, 1000 at most are counted.",
            ToDouble(stats.sharing_names));
}

void AddStore(Families& out, const engine::EngineStats& stats) {
  const std::uint64_t lag =
      stats.committed_sequence - std::min(stats.committed_sequence, stats.applied_sequence);
  out.Gauge("codband_learner_lag_events",
            "Durable log entries (rewards, new columns, forgotten users and items) that are not "
            "applied yet.",
            ToDouble(lag));
  out.Gauge("codband_queue_requests", "Requests waiting for the next group commit.",
            ToDouble(stats.queue));
  out.Gauge("codband_damaged_records",
            "Records and files found damaged since the start; 'codband doctor' names them.",
            ToDouble(stats.damage.size()));
  out.Gauge("codband_erasing_users", "Forgotten users of whom something is still in a file.",
            ToDouble(stats.erasing));
  out.Gauge("codband_store_disk_bytes", "Size of the data on disk.",
            ToDouble(stats.store.disk_bytes));
  out.Gauge("codband_store_memory_bytes", "Memory of the store: write buffers and caches.",
            ToDouble(stats.store.memory_bytes));
  out.Gauge("codband_store_up",
            "1 while the store can be read and written and learning goes on, else 0.",
            stats.last_error.empty() ? 1 : 0);
  out.Counter("codband_checkpoints_total", "Checkpoints written.", ToDouble(stats.checkpoints));
  out.Gauge("codband_committed_sequence", "Sequence number of the last durable log entry.",
            ToDouble(stats.committed_sequence));
  out.Gauge("codband_applied_sequence", "Sequence number of the last log entry applied.",
            ToDouble(stats.applied_sequence));
  out.Gauge("codband_checkpoint_sequence", "Sequence number of the last log entry in a checkpoint.",
            ToDouble(stats.checkpoint_sequence));
}

void AddServer(Families& out, const MetricsFacts& facts) {
  out.Gauge("codband_connections", "Open connections.", ToDouble(facts.server.connections));
  out.Counter("codband_connections_accepted_total", "Connections accepted, refused ones included.",
              ToDouble(facts.server.connections_accepted));
  out.Counter("codband_connections_refused_total",
              "Connections refused because too many were open and none could be closed.",
              ToDouble(facts.server.connections_refused));
  out.Counter("codband_connections_displaced_total",
              "Idle or slow connections closed to make room for new ones.",
              ToDouble(facts.server.connections_displaced));
  out.Gauge("codband_connections_limit", "Connections that may be open at a time.",
            ToDouble(facts.server.max_connections));
  if (facts.decision_log) {
    const DecisionLogStats& log = *facts.decision_log;
    out.Counter("codband_decision_log_lines_total", "Decisions written to the decision log.",
                ToDouble(log.written));
    out.Counter("codband_decision_log_lost_total",
                "Decisions missing from the decision log: a write failed or the queue was full.",
                ToDouble(log.failed + log.dropped));
    out.Gauge("codband_decision_log_queue", "Decisions waiting to be written to the decision log.",
              ToDouble(log.queue));
  }
  out.Gauge("codband_process_resident_memory_bytes", "Resident memory of the process.",
            ResidentBytes());
  out.Gauge("codband_start_time_seconds", "Start of the server, in seconds since 1970.",
            static_cast<double>(facts.server.start_time_ms) / 1000);
  out.Gauge("codband_build_info", "Always 1; the labels say what is running.", 1,
            {{"version", std::string(kVersion)},
             {"policy", facts.engine.policy},
             {"dim", fmt::format("{}", facts.engine.dim)}});
}

void AddCluster(Families& out, const ClusterFacts& facts) {
  const auto count = [](std::size_t number) { return ToDouble(number); };
  out.Gauge("codband_cluster_nodes", "Nodes that live, as this one sees it.", count(facts.nodes));
  out.Gauge("codband_cluster_partitions", "Partitions of the loop.", count(facts.partitions));
  out.Gauge("codband_cluster_partitions_here", "Partitions that this node serves.",
            count(facts.served));
  out.Gauge("codband_cluster_partitions_unowned", "Partitions that no node has now.",
            count(facts.unowned));
  out.Gauge("codband_cluster_partitions_followed", "Partitions that this node is a standby of.",
            count(facts.followed));
  out.Gauge("codband_cluster_partitions_unfollowed", "Partitions without a standby.",
            count(facts.unfollowed));
  out.Gauge("codband_cluster_standby_lag_frames",
            "Frames of the log that the partition here lacks which is followed least well.",
            ToDouble(facts.standby_lag));
  out.Counter("codband_cluster_forwarded_total", "Requests passed on to other nodes.",
              ToDouble(facts.forwarded));
  out.Gauge("codband_catalogue_lag_frames",
            "Changes of the loop's catalogue that a partition here has not made yet.",
            ToDouble(facts.catalogue_lag));
  out.Counter("codband_pool_imports_total", "Pools imported by partitions of this node.",
              ToDouble(facts.pools_imported));
  out.Counter("codband_pool_merges_total", "Pools merged by this node.",
              ToDouble(facts.pools_merged));
  out.Counter("codband_pool_bytes_total", "Bytes of registers and pools written by this node.",
              ToDouble(facts.pool_bytes));
  out.Gauge("codband_pool_age_seconds",
            "For how long something that was learned here has not been in the pool of all.",
            facts.pool_age_seconds);
}

}  // namespace

std::string RenderMetrics(const MetricsFacts& facts) {
  Families out;
  AddRoutes(out, facts);
  AddDecisions(out, facts.engine);
  AddLearning(out, facts.engine);
  AddStore(out, facts.engine);
  AddServer(out, facts);
  if (facts.cluster) AddCluster(out, *facts.cluster);
  return out.ToText();
}

}  // namespace codband::server
