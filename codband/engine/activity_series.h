#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "codband/base/status.h"
#include "codband/engine/commit_group.h"
#include "codband/engine/records.h"
#include "codband/engine/stats_report.h"
#include "codband/engine/time_series.h"
#include "codband/store/store.h"

namespace codband::engine {

// What was decided and rewarded, over time. Part of the group commits: the bucket of a minute is
// written in the same batch as the decisions and rewards that it counts, so that after a crash it
// counts exactly those that are durable. One small record for each group with rewards; the bucket
// of an hour is written once it is over. What comes without a reward (decisions, unknown rewards)
// waits for the next record, or for a second if there is none: a curve shows what is written.
//
// The committer's thread changes it, any thread reads it.
class ActivitySeries {
 public:
  static constexpr std::string_view kPrefix = "activity/";  // of the keys (kMeta)
  static constexpr std::int64_t kPauseMs = 1000;            // between records without a reward

  // `store` outlives it.
  explicit ActivitySeries(const store::Store& store) : store_(store) {}

  // Reads what the last process left. Damaged buckets are left out.
  Status Load();

  // A decision of the group has its outcome. `defaulted`: no reward came.
  static void Count(const PendingDecision& pending, double reward, bool defaulted,
                    CommitGroup& group);

  // Adds the group's bucket to its batch, unless that is empty or the bucket can wait.
  void Seal(CommitGroup& group) const;
  // The group is durable.
  void Committed(const CommitGroup& group);

  TimeSeries<Activity>::Buckets Range(std::int64_t from_ms, std::int64_t to_ms,
                                      std::int64_t step_ms) const;
  Activity since_start() const;

 private:
  const store::Store& store_;
  mutable std::mutex mutex_;  // guards what follows
  TimeSeries<Activity> series_;
  Activity unwritten_;                   // counts of groups that wrote no record
  std::int64_t written_ms_ = -kPauseMs;  // by the wait clock: the last record
  Activity since_start_;
};

std::string EncodeActivity(const Activity& activity);
Result<Activity> DecodeActivity(std::string_view bytes);

}  // namespace codband::engine
