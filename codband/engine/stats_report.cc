#include "codband/engine/stats_report.h"

#include <algorithm>
#include <cmath>

namespace codband::engine {

std::optional<Moments::Interval> Moments::Estimate() const {
  if (count < 2) return std::nullopt;
  constexpr double kNormal95 = 1.959963984540054;
  const auto n = static_cast<double>(count);
  const double mean = sum / n;
  const double variance = std::max(0.0, (squares - n * mean * mean) / (n - 1));
  const double half = kNormal95 * std::sqrt(variance / n);
  return Interval{.mean = mean, .low = mean - half, .high = mean + half};
}

Moments Activity::all_rewards() const {
  Moments all;
  for (const auto& mode : rewards) {
    for (const Moments& source : mode) all += source;
  }
  return all;
}

Activity& Activity::operator+=(const Activity& other) {
  decisions += other.decisions;
  for (std::size_t mode = 0; mode < kModes; ++mode) {
    for (std::size_t source = 0; source < kSources; ++source) {
      rewards[mode][source] += other.rewards[mode][source];
    }
  }
  defaulted += other.defaulted;
  duplicate += other.duplicate;
  late += other.late;
  unknown += other.unknown;
  compared += other.compared;
  agreed += other.agreed;
  baseline += other.baseline;
  uniform += other.uniform;
  delay_s += other.delay_s;
  return *this;
}

GroupActivity& GroupActivity::operator+=(const GroupActivity& later) {
  changes += later.changes;
  if (later.users == 0 && later.groups.empty()) return *this;  // it was not looked at
  users = later.users;
  groups = later.groups;
  return *this;
}

}  // namespace codband::engine
