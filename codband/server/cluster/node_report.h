#pragma once

#include "codband/engine/engine.h"

namespace codband::server {

// Adds what one engine of a node counts to what others do. Gauges that mean nothing as a sum are
// the largest; problems are those of any of them.
void AddStats(engine::EngineStats& sum, const engine::EngineStats& stats);

}  // namespace codband::server
