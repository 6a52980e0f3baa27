#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "codband/engine/records.h"

namespace codband::engine {

// Buckets of a minute, for a day, and of an hour, for a year; older ones are dropped. An hour is
// the sum of its minutes: as long as these are there it is made from them, so that a curve is the
// same, bit for bit, whether its hours have been saved or not. A bucket has `operator+=`. Not
// thread-safe.
template <typename Bucket>
class TimeSeries {
 public:
  static constexpr std::int64_t kMinuteMs = 60'000;
  static constexpr std::int64_t kHourMs = 3'600'000;
  static constexpr std::size_t kMostMinutes = 25 * 60;  // a day, and the hour that goes on
  static constexpr std::size_t kMostHours = 367 * 24;

  using Buckets = std::map<std::int64_t, Bucket>;  // by the number of minutes or hours since 1970

  const Buckets& minutes() const { return minutes_; }
  const Buckets& hours() const { return hours_; }  // that are over

  bool HasMinute(std::int64_t time_ms) const { return minutes_.contains(time_ms / kMinuteMs); }
  // The bucket of this minute; an empty one if there is none.
  Bucket Minute(std::int64_t time_ms) const {
    const auto found = minutes_.find(time_ms / kMinuteMs);
    return found == minutes_.end() ? Bucket() : found->second;
  }

  // The hours that are over when the minute of `time_ms` begins, and are not in hours() yet.
  Buckets OverBy(std::int64_t time_ms) const {
    Buckets over;
    for (auto at = minutes_.begin(); at != minutes_.end();) {
      const std::int64_t hour = at->first / 60;
      const auto end = minutes_.lower_bound((hour + 1) * 60);
      if (hour != time_ms / kHourMs && !hours_.contains(hour)) {
        Bucket& sum = over[hour];
        for (; at != end; ++at) sum += at->second;
      }
      at = end;
    }
    return over;
  }

  // Adds to the minute of `time_ms`. Cheap unless that is a new one.
  void Add(std::int64_t time_ms, const Bucket& bucket) {
    if (!HasMinute(time_ms)) {
      hours_.merge(OverBy(time_ms));
      hours_.erase(time_ms / kHourMs);  // if the clock was set back it is over once more later
    }
    minutes_[time_ms / kMinuteMs] += bucket;
    // A wrong clock leaves buckets of the future behind: their number counts, not their time.
    while (minutes_.size() > kMostMinutes) minutes_.erase(minutes_.begin());
    while (hours_.size() > kMostHours) hours_.erase(hours_.begin());
  }

  // As they were saved.
  void SetMinute(std::int64_t minute, Bucket bucket) { minutes_[minute] = std::move(bucket); }
  void SetHour(std::int64_t hour, Bucket bucket) { hours_[hour] = std::move(bucket); }

  // Buckets of `step_ms`, by their begin, of what began in [from_ms, to_ms): made from minutes or,
  // if the step is an hour or more, from hours.
  Buckets Range(std::int64_t from_ms, std::int64_t to_ms, std::int64_t step_ms) const {
    const bool by_hour = step_ms >= kHourMs;
    Buckets hours;
    if (by_hour) {
      // The minutes of the first hour may have been dropped in part.
      const std::int64_t cut = minutes_.empty() ? 0 : minutes_.begin()->first / 60;
      for (const auto& [minute, bucket] : minutes_) {
        const std::int64_t hour = minute / 60;
        if (hour > cut || !hours_.contains(hour)) hours[hour] += bucket;
      }
      hours.insert(hours_.begin(), hours_.end());
    }
    const std::int64_t unit = by_hour ? kHourMs : kMinuteMs;
    const Buckets& source = by_hour ? hours : minutes_;
    Buckets range;
    for (auto at = source.lower_bound((from_ms + unit - 1) / unit); at != source.end(); ++at) {
      if (at->first * unit >= to_ms) break;
      range[at->first * unit / step_ms * step_ms] += at->second;
    }
    return range;
  }

 private:
  Buckets minutes_;
  Buckets hours_;
};

// The key of a bucket: in the order of time.
inline std::string BucketKey(std::string_view prefix, bool hour, std::int64_t number) {
  return std::string(prefix) + (hour ? "h" : "m") + NumberKey(static_cast<std::uint64_t>(number));
}

// Whether the key is that of a bucket, and of which.
struct BucketName {
  bool hour = false;
  std::int64_t number = 0;
};
inline std::optional<BucketName> ReadBucketKey(std::string_view prefix, std::string_view key) {
  if (!key.starts_with(prefix) || key.size() != prefix.size() + 9) return std::nullopt;
  const auto number = ReadNumberKey(key.substr(prefix.size() + 1));
  if (!number.ok()) return std::nullopt;
  return BucketName{.hour = key[prefix.size()] == 'h',
                    .number = static_cast<std::int64_t>(number.value())};
}

}  // namespace codband::engine
