#include "codband/server/cluster/node_report.h"

#include <algorithm>

namespace codband::server {

void AddStats(engine::EngineStats& sum, const engine::EngineStats& stats) {
  using engine::EngineStats;
  for (const auto member : {&EngineStats::ranks,
                            &EngineStats::rewards_accepted,
                            &EngineStats::rewards_duplicate,
                            &EngineStats::rewards_late,
                            &EngineStats::rewards_unknown,
                            &EngineStats::rewards_defaulted,
                            &EngineStats::expired,
                            &EngineStats::changes,
                            &EngineStats::changes_last_hour,
                            &EngineStats::learned,
                            &EngineStats::quarantined,
                            &EngineStats::checkpoints,
                            &EngineStats::committed_sequence,
                            &EngineStats::applied_sequence,
                            &EngineStats::checkpoint_sequence,
                            &EngineStats::users_in_memory,
                            &EngineStats::user_bytes,
                            &EngineStats::users,
                            &EngineStats::pending,
                            &EngineStats::queue,
                            &EngineStats::erasing}) {
    sum.*member += stats.*member;
  }
  sum.activity += stats.activity;
  sum.store.disk_bytes += stats.store.disk_bytes;
  sum.store.memory_bytes += stats.store.memory_bytes;
  sum.damage.insert(sum.damage.end(), stats.damage.begin(), stats.damage.end());
  // The same in all of them, or nearly so.
  sum.policy = stats.policy;
  sum.dim = stats.dim;
  sum.columns_limit = stats.columns_limit;
  sum.columns = std::max(sum.columns, stats.columns);
  sum.sharing_names = std::max(sum.sharing_names, stats.sharing_names);
  sum.models = std::max(sum.models, stats.models);
  sum.items = std::max(sum.items, stats.items);
  if (sum.last_error.empty()) sum.last_error = stats.last_error;
}

}  // namespace codband::server
