#pragma once

#include <optional>
#include <span>
#include <string>

#include "codband/engine/engine.h"
#include "codband/server/api/decision_log.h"
#include "codband/server/http/service.h"

namespace codband::server {

// Of a node of a cluster.
struct ClusterFacts {
  std::size_t nodes = 0;            // that live
  std::size_t partitions = 0;       // of the loop
  std::size_t served = 0;           // of these, here
  std::size_t unowned = 0;          // of these, by nobody
  std::size_t unfollowed = 0;       // of these, without a standby
  std::size_t followed = 0;         // of these, followed here
  std::uint64_t standby_lag = 0;    // frames that one that is followed here lacks
  std::uint64_t forwarded = 0;      // requests passed on to other nodes
  std::uint64_t catalogue_lag = 0;  // frames of the shared log that an engine here lacks
  std::uint64_t pools_imported = 0;
  std::uint64_t pools_merged = 0;
  std::uint64_t pool_bytes = 0;  // written
  double pool_age_seconds = 0;   // what was learned here and others may not know
};

struct MetricsFacts {
  std::span<const Route> routes = {};
  std::span<const RouteMetrics::Totals> totals = {};  // as ServerView::RouteTotals returns them
  ServerFacts server = {};
  engine::EngineStats engine = {};
  std::optional<DecisionLogStats> decision_log = {};  // if there is one
  std::optional<ClusterFacts> cluster = {};           // of a node with several partitions
};

// Everything at /metrics, in Prometheus' text format 0.0.4. Precondition: totals has one element
// more than routes.
std::string RenderMetrics(const MetricsFacts& facts);

}  // namespace codband::server
