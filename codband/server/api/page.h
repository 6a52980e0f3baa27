#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codband/engine/engine.h"

namespace codband::server {

struct PageFacts {
  std::string_view mode = {};  // empty: not shown
  std::int64_t start_time_ms = 0;
  std::int64_t now_ms = 0;
  engine::EngineStats stats = {};
  std::vector<engine::ModelReport> models = {};  // most popular first
  std::vector<engine::Change> changes = {};      // newest first
};

// The status page: what is running and what it has learned. One self-contained HTML document that
// the browser reloads every few seconds. Everything from outside is escaped.
std::string RenderPage(const PageFacts& facts);

}  // namespace codband::server
