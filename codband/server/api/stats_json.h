#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "codband/engine/engine.h"
#include "codband/server/http/service.h"

namespace codband::server {

// The reply of GET /v1/stats. `total` is the sum of the points.
void AppendSeries(std::string& out, const engine::SeriesReport& series, std::int64_t from_ms,
                  std::int64_t to_ms);

// What the dashboard shows of this moment: one event of GET /v1/live.
struct LiveFacts {
  std::string mode = {};
  ServerFacts server = {};
  engine::EngineStats stats = {};
  engine::SeriesReport minute = {};  // the minute that goes on
  std::vector<engine::Change> changes = {};
  std::uint64_t log_lost = 0;  // decisions that are missing from the decision log
};
std::string LiveJson(const LiveFacts& facts);

}  // namespace codband::server
