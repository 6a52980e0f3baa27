#pragma once

#include <optional>
#include <span>
#include <string>

#include "codband/engine/engine.h"
#include "codband/server/api/decision_log.h"
#include "codband/server/http/service.h"

namespace codband::server {

struct MetricsFacts {
  std::span<const Route> routes = {};
  std::span<const RouteMetrics::Totals> totals = {};  // as ServerView::RouteTotals returns them
  ServerFacts server = {};
  engine::EngineStats engine = {};
  std::optional<DecisionLogStats> decision_log = {};  // if there is one
};

// Everything at /metrics, in Prometheus' text format 0.0.4. Precondition: totals has one element
// more than routes.
std::string RenderMetrics(const MetricsFacts& facts);

}  // namespace codband::server
