#include "codband/engine/activity_series.h"

#include <array>
#include <cmath>

#include "codband/engine/record_codec.h"

namespace codband::engine {
namespace {

void SaveMoments(ByteWriter& out, const Moments& moments) {
  out.U64(moments.count);
  out.Double(moments.sum);
  out.Double(moments.squares);
}

void LoadMoments(ByteReader& in, Moments& moments) {
  moments.count = in.U64("count");
  moments.sum = in.Double("sum");
  moments.squares = in.Double("sum of squares");
}

// In the order of the encoding.
template <typename Of>
auto CountsOf(Of& activity) {
  return std::array{&activity.decisions, &activity.defaulted, &activity.duplicate, &activity.late,
                    &activity.unknown,   &activity.compared,  &activity.agreed};
}
template <typename Of>
auto MomentsOf(Of& activity) {
  auto& by = activity.rewards;
  return std::array{&activity.baseline, &activity.uniform, &activity.delay_s, &by[0][0],
                    &by[0][1],          &by[0][2],         &by[1][0],         &by[1][1],
                    &by[1][2],          &by[2][0],         &by[2][1],         &by[2][2]};
}

// What choosing otherwise would have brought: the expectation, corrected by how far this reward was
// from its own, in so far as the other way chooses this action.
double DoublyRobust(const Decision& decision, double reward, double expected, double chance) {
  return expected + chance / decision.propensity * (reward - decision.mean);
}

void CountEstimates(const PendingDecision& pending, double reward, Activity& activity) {
  const Decision& decision = pending.decision;
  const DecisionFacts& facts = pending.facts;
  if (facts.offered == 0 || !(decision.propensity > 0)) return;
  const double first = decision.arm == 0 ? 1 : 0;
  if (facts.mode != Mode::kOnline) return activity.baseline.Add(reward);  // it is what was shown
  if (!facts.explored) return;
  const double baseline = DoublyRobust(decision, reward, facts.baseline_mean, first);
  const double uniform =
      DoublyRobust(decision, reward, facts.uniform_mean, 1 / static_cast<double>(facts.offered));
  if (std::isfinite(baseline) && std::isfinite(uniform)) {
    activity.baseline.Add(baseline);
    activity.uniform.Add(uniform);
  }
}

}  // namespace

// A bit for each number that is not 0, then these.
std::string EncodeActivity(const Activity& activity) {
  ByteWriter out;
  std::uint32_t there = 0;
  std::uint32_t bit = 1;
  const auto note = [&](bool is_there) {
    if (is_there) there |= bit;
    bit <<= 1U;
  };
  const auto counts = CountsOf(activity);
  const auto moments = MomentsOf(activity);
  for (const std::uint64_t* count : counts) note(*count > 0);
  for (const Moments* each : moments) note(each->count > 0);
  out.U32(there);
  for (const std::uint64_t* count : counts) {
    if (*count > 0) out.U64(*count);
  }
  for (const Moments* each : moments) {
    if (each->count > 0) SaveMoments(out, *each);
  }
  return out.Take();
}

Result<Activity> DecodeActivity(std::string_view bytes) {
  return DecodeWith<Activity>(bytes, [](ByteReader& in, Activity& activity) {
    std::uint32_t there = in.U32("which numbers there are");
    const auto take = [&there] {
      const bool is_there = (there & 1U) != 0;
      there >>= 1U;
      return is_there;
    };
    for (std::uint64_t* count : CountsOf(activity)) {
      if (take()) *count = in.U64("count");
    }
    for (Moments* each : MomentsOf(activity)) {
      if (take()) LoadMoments(in, *each);
    }
    if (there != 0) in.Fail("which numbers there are", "has bits of none");
  });
}

Status ActivitySeries::Load() {
  const std::lock_guard lock(mutex_);
  std::string end(kPrefix);
  ++end.back();
  return store_.Scan(store::Table::kMeta, kPrefix, end,
                     [&](std::string_view key, std::string_view value) {
                       const auto name = ReadBucketKey(kPrefix, key);
                       auto activity = DecodeActivity(value);
                       if (!name || !activity.ok()) return true;
                       if (name->hour) {
                         series_.SetHour(name->number, std::move(activity).value());
                       } else {
                         series_.SetMinute(name->number, std::move(activity).value());
                       }
                       return true;
                     });
}

void ActivitySeries::Count(const PendingDecision& pending, double reward, bool defaulted,
                           CommitGroup& group) {
  Activity& activity = group.activity;
  const DecisionFacts& facts = pending.facts;
  activity.rewards[static_cast<std::size_t>(facts.mode)][static_cast<std::size_t>(facts.source)]
      .Add(reward);
  if (facts.mode != Mode::kOnline) {
    ++activity.compared;
    if (facts.agrees) ++activity.agreed;
  }
  CountEstimates(pending, reward, activity);
  if (defaulted) {
    ++activity.defaulted;
  } else {
    activity.delay_s.Add(static_cast<double>(group.now_ms - pending.made_ms) / 1000);
  }
}

void ActivitySeries::Seal(CommitGroup& group) const {
  if (group.batch.empty()) return;
  const bool rewarded = group.activity.all_rewards().count > 0;
  const std::lock_guard lock(mutex_);
  if (!rewarded && group.now_ms - written_ms_ < kPauseMs) return;
  Activity added = group.activity;
  added += unwritten_;
  if (added == Activity()) return;
  group.activity_is_written = true;
  const auto put = [&](bool hour, std::int64_t number, const Activity& activity) {
    group.batch.Put(store::Table::kMeta, BucketKey(kPrefix, hour, number),
                    EncodeActivity(activity));
  };
  Activity sum = series_.Minute(group.wall_ms);
  sum += added;
  put(false, group.wall_ms / TimeSeries<Activity>::kMinuteMs, sum);
  if (series_.HasMinute(group.wall_ms)) return;
  // Once a minute: what Committed() will do to hours and old buckets.
  const auto over = series_.OverBy(group.wall_ms);
  for (const auto& [hour, activity] : over) put(true, hour, activity);
  const auto drop = [&](bool hour, const auto& buckets, std::size_t more, std::size_t most) {
    auto oldest = buckets.begin();
    for (std::size_t size = buckets.size() + more; size > most && oldest != buckets.end();
         --size, ++oldest) {
      group.batch.Delete(store::Table::kMeta, BucketKey(kPrefix, hour, oldest->first));
    }
  };
  drop(false, series_.minutes(), 1, TimeSeries<Activity>::kMostMinutes);
  drop(true, series_.hours(), over.size(), TimeSeries<Activity>::kMostHours);
}

void ActivitySeries::Committed(const CommitGroup& group) {
  const std::lock_guard lock(mutex_);
  since_start_ += group.activity;
  unwritten_ += group.activity;
  if (!group.activity_is_written) return;
  written_ms_ = group.now_ms;
  series_.Add(group.wall_ms, unwritten_);
  unwritten_ = {};
}

TimeSeries<Activity>::Buckets ActivitySeries::Range(std::int64_t from_ms, std::int64_t to_ms,
                                                    std::int64_t step_ms) const {
  const std::lock_guard lock(mutex_);
  return series_.Range(from_ms, to_ms, step_ms);
}

Activity ActivitySeries::since_start() const {
  const std::lock_guard lock(mutex_);
  return since_start_;
}

}  // namespace codband::engine
