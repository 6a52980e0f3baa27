#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "codband/base/status.h"
#include "codband/engine/stats_report.h"
#include "codband/engine/time_series.h"
#include "codband/policy/policy.h"
#include "codband/store/store.h"

namespace codband::engine {

// Who changed when, and how users were spread over groups, over time. Part of what is learned: a
// function of the log, so that replaying gives the same. Saved with checkpoints, what has changed
// since the last one. Not thread-safe.
class GroupSeries {
 public:
  static constexpr std::string_view kPrefix = "groups/";       // of the keys (kCheckpoint)
  static constexpr std::string_view kLastKey = "groups/last";  // of the minute of the last entry
  static constexpr std::size_t kMostGroups = 16;               // of a bucket, those with most users

  // A log entry of this time is about to be applied. If it begins a new minute, the one before gets
  // the users of each model as they are now.
  void Advance(std::int64_t time_ms, const Policy& policy, std::uint64_t users) {
    if (time_ms / TimeSeries<GroupActivity>::kMinuteMs != minute_) Begin(time_ms, policy, users);
  }
  void AddChange(std::int64_t time_ms);

  // The groups now, for the minute that has not ended.
  static GroupActivity Now(const std::vector<ModelDescription>& models, std::uint64_t users);

  TimeSeries<GroupActivity>::Buckets Range(std::int64_t from_ms, std::int64_t to_ms,
                                           std::int64_t step_ms) const {
    return series_.Range(from_ms, to_ms, step_ms);
  }

  void SaveChanged(store::StoreBatch& batch) const;
  void MarkSaved() {
    changed_minutes_.clear();
    changed_hours_.clear();
  }
  // As of the last checkpoint. Damaged buckets are left out.
  Status Load(const store::Store& store);

 private:
  void Begin(std::int64_t time_ms, const Policy& policy, std::uint64_t users);
  void Add(std::int64_t time_ms, const GroupActivity& activity);

  TimeSeries<GroupActivity> series_;
  std::int64_t minute_ = -1;                                // of the last entry
  std::set<std::int64_t> changed_minutes_, changed_hours_;  // or dropped, since the checkpoint
};

std::string EncodeGroups(const GroupActivity& activity);
Result<GroupActivity> DecodeGroups(std::string_view bytes);

}  // namespace codband::engine
