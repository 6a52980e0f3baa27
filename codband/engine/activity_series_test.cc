#include "codband/engine/activity_series.h"

#include <gtest/gtest.h>

#include <cmath>

#include "codband/engine/fake_store.h"

namespace codband::engine {
namespace {

constexpr std::int64_t kMinute = 60'000;
constexpr std::int64_t kHour = 60 * kMinute;

Activity Decisions(std::uint64_t count) {
  Activity activity;
  activity.decisions = count;
  return activity;
}

// Commits a group at this time, as the committer does.
void Commit(FakeStore& store, ActivitySeries& series, std::int64_t time_ms, const Activity& what,
            bool durable = true) {
  CommitGroup group{.now_ms = time_ms, .wall_ms = time_ms};
  group.activity = what;
  group.batch.Put(store::Table::kPending, "a decision", "");
  series.Seal(group);
  if (!durable) return;
  ASSERT_TRUE(store.Write(group.batch, true).ok());
  series.Committed(group);
}

bool Same(const TimeSeries<Activity>::Buckets& a, const TimeSeries<Activity>::Buckets& b) {
  return a == b;
}

TEST(MomentsTest, TheIntervalIsTheNormalOneOfTheMean) {
  Moments moments;
  EXPECT_FALSE(moments.Estimate());
  for (const double value : {1.0, 2.0, 3.0, 6.0}) moments.Add(value);
  const auto estimate = moments.Estimate();
  ASSERT_TRUE(estimate);
  EXPECT_DOUBLE_EQ(estimate->mean, 3);
  // Variance (4 + 1 + 0 + 9) / 3.
  EXPECT_NEAR(estimate->high - estimate->mean, 1.959964 * std::sqrt(14.0 / 3 / 4), 1e-5);
  EXPECT_NEAR(estimate->mean - estimate->low, estimate->high - estimate->mean, 1e-12);
}

TEST(TimeSeriesTest, StepsAddUpMinutesAndHours) {
  TimeSeries<Activity> series;
  series.Add(10 * kMinute, Decisions(1));
  series.Add(10 * kMinute + 59'999, Decisions(2));
  series.Add(11 * kMinute, Decisions(4));
  series.Add(2 * kHour, Decisions(8));
  const auto minutes = series.Range(0, kHour, kMinute);
  ASSERT_EQ(minutes.size(), 2U);
  EXPECT_EQ(minutes.at(10 * kMinute).decisions, 3U);
  EXPECT_EQ(minutes.at(11 * kMinute).decisions, 4U);
  EXPECT_EQ(series.Range(0, kHour, 10 * kMinute).at(10 * kMinute).decisions, 7U);
  const auto hours = series.Range(0, 3 * kHour, kHour);
  ASSERT_EQ(hours.size(), 2U);
  EXPECT_EQ(hours.at(0).decisions, 7U);
  EXPECT_EQ(hours.at(2 * kHour).decisions, 8U);
}

TEST(TimeSeriesTest, KeepsADayOfMinutesAndAYearOfHours) {
  TimeSeries<Activity> series;
  std::int64_t minute = 0;
  for (; minute < 2 * 24 * 60; ++minute) series.Add(minute * kMinute, Decisions(1));
  EXPECT_EQ(series.minutes().size(), TimeSeries<Activity>::kMostMinutes);
  const auto hours = series.Range(0, minute * kMinute, kHour);
  ASSERT_EQ(hours.size(), 48U);
  for (const auto& [time, activity] : hours) EXPECT_EQ(activity.decisions, 60U) << time;
  const auto most = static_cast<std::int64_t>(TimeSeries<Activity>::kMostHours);
  for (std::int64_t hour = 48; hour < most + 100; ++hour) series.Add(hour * kHour, Decisions(1));
  EXPECT_EQ(series.hours().size(), TimeSeries<Activity>::kMostHours);
}

TEST(ActivitySeriesTest, CurvesAfterARestartAreThoseBefore) {
  FakeStore store;
  ActivitySeries series(store);
  ASSERT_TRUE(series.Load().ok());
  std::int64_t time = 5 * kHour;
  Activity odd = Decisions(1);
  odd.rewards[0][0].Add(0.1);
  odd.baseline.Add(0.3);
  for (int i = 0; i < 3000; ++i) {
    Commit(store, series, time, odd);
    time += 17'000;
  }
  ActivitySeries after(store);
  ASSERT_TRUE(after.Load().ok());
  for (const std::int64_t step : {kMinute, 7 * kMinute, kHour, 24 * kHour}) {
    EXPECT_TRUE(Same(after.Range(0, time, step), series.Range(0, time, step))) << step;
  }
  EXPECT_EQ(after.Range(0, time, 24 * kHour).begin()->second.decisions, 3000U);
  // And go on alike, into the hours to come.
  for (int i = 0; i < 500; ++i) {
    Commit(store, series, time, odd);
    CommitGroup group{.wall_ms = time};
    group.activity = odd;
    group.activity_is_written = true;
    after.Committed(group);
    time += 40'000;
  }
  EXPECT_TRUE(Same(after.Range(0, time, kHour), series.Range(0, time, kHour)));
}

TEST(ActivitySeriesTest, AGroupThatIsNotDurableCountsNothing) {
  FakeStore store;
  ActivitySeries series(store);
  Commit(store, series, kHour, Decisions(2));
  Commit(store, series, kHour, Decisions(5), /*durable=*/false);
  EXPECT_EQ(series.Range(0, 2 * kHour, kHour).begin()->second.decisions, 2U);
  EXPECT_EQ(series.since_start().decisions, 2U);
}

TEST(ActivitySeriesTest, CountsAloneWaitForTheNextBatch) {
  FakeStore store;
  ActivitySeries series(store);
  CommitGroup unknown{.wall_ms = kHour};
  unknown.activity.unknown = 3;
  series.Seal(unknown);
  EXPECT_TRUE(unknown.batch.empty());
  series.Committed(unknown);
  EXPECT_EQ(series.since_start().unknown, 3U);
  EXPECT_TRUE(series.Range(0, 3 * kHour, kHour).empty());
  Commit(store, series, kHour + kMinute, Decisions(1));
  ActivitySeries after(store);
  ASSERT_TRUE(after.Load().ok());
  for (const ActivitySeries* each : {&series, &after}) {
    const auto range = each->Range(0, 3 * kHour, kMinute);
    ASSERT_EQ(range.size(), 1U);
    EXPECT_EQ(range.begin()->second.unknown, 3U);
    EXPECT_EQ(range.begin()->second.decisions, 1U);
  }
}

TEST(ActivitySeriesTest, DecisionsWaitForARewardOrASecond) {
  FakeStore store;
  ActivitySeries series(store);
  const auto decisions = [&] {
    ActivitySeries after(store);
    EXPECT_TRUE(after.Load().ok());
    const auto range = after.Range(0, 3 * kHour, kHour);
    EXPECT_TRUE(Same(range, series.Range(0, 3 * kHour, kHour)));
    return range.empty() ? 0 : range.begin()->second.decisions;
  };
  Commit(store, series, kHour, Decisions(1));
  EXPECT_EQ(decisions(), 1U);
  Commit(store, series, kHour + 500, Decisions(2));
  EXPECT_EQ(decisions(), 1U);
  Activity rewarded = Decisions(4);
  rewarded.rewards[0][0].Add(1);
  Commit(store, series, kHour + 600, rewarded);
  EXPECT_EQ(decisions(), 7U);
  Commit(store, series, kHour + 900, Decisions(8));
  EXPECT_EQ(decisions(), 7U);
  Commit(store, series, kHour + 1700, Decisions(16));
  EXPECT_EQ(decisions(), 31U);
}

TEST(ActivitySeriesTest, ItsRecordsAreBounded) {
  FakeStore store;
  ActivitySeries series(store);
  for (std::int64_t minute = 0; minute < 4000; ++minute) {
    Commit(store, series, minute * kMinute, Decisions(1));
  }
  std::size_t minutes = 0;
  std::size_t hours = 0;
  ASSERT_TRUE(store
                  .Scan(store::Table::kMeta, {}, {},
                        [&](std::string_view key, std::string_view) {
                          const auto name = ReadBucketKey(ActivitySeries::kPrefix, key);
                          if (name) ++(name->hour ? hours : minutes);
                          return true;
                        })
                  .ok());
  EXPECT_EQ(minutes, TimeSeries<Activity>::kMostMinutes);
  EXPECT_EQ(hours, 66U);  // those that are over
}

// With two actions of known expectations the estimates have the right means, whatever the policy
// chose: E[r | first] and the mean of both.
TEST(ActivitySeriesTest, EstimatesOfTheBaselineAndOfUniformChoiceAreUnbiased) {
  constexpr double kTruth[] = {0.2, 0.7};
  constexpr double kModel[] = {0.5, 0.4};  // wrong, which must not matter
  constexpr double kChance[] = {0.1, 0.9};
  CommitGroup group;
  RandomStream random({.seed = 3, .event = 0}, 1);
  for (int i = 0; i < 40'000; ++i) {
    PendingDecision pending;
    const std::size_t arm = random.Uniform() < kChance[0] ? 0 : 1;
    pending.decision.arm = static_cast<std::uint32_t>(arm);
    pending.decision.mean = kModel[arm];
    pending.decision.propensity = kChance[arm];
    pending.facts = {.explored = true,
                     .offered = 2,
                     .baseline_mean = kModel[0],
                     .uniform_mean = (kModel[0] + kModel[1]) / 2};
    ActivitySeries::Count(pending, random.Uniform() < kTruth[arm] ? 1 : 0, false, group);
  }
  const auto baseline = group.activity.baseline.Estimate();
  const auto uniform = group.activity.uniform.Estimate();
  ASSERT_TRUE(baseline && uniform);
  EXPECT_NEAR(baseline->mean, 0.2, 0.03);
  EXPECT_LT(baseline->low, 0.2);
  EXPECT_GT(baseline->high, 0.2);
  EXPECT_NEAR(uniform->mean, 0.45, 0.02);
}

TEST(ActivitySeriesTest, WithoutExplorationThereIsNoEstimateAndTheBaselineIsItsOwn) {
  CommitGroup group;
  PendingDecision pending;
  pending.decision.propensity = 1;
  pending.facts = {.explored = false, .offered = 2};
  ActivitySeries::Count(pending, 1, false, group);
  EXPECT_EQ(group.activity.baseline.count, 0U);
  pending.facts = {
      .mode = Mode::kApprentice, .source = Source::kBaseline, .agrees = true, .offered = 2};
  ActivitySeries::Count(pending, 0.5, true, group);
  EXPECT_EQ(group.activity.baseline.count, 1U);
  EXPECT_EQ(group.activity.baseline.sum, 0.5);
  EXPECT_EQ(group.activity.uniform.count, 0U);
  EXPECT_EQ(group.activity.compared, 1U);
  EXPECT_EQ(group.activity.agreed, 1U);
  EXPECT_EQ(group.activity.defaulted, 1U);
  EXPECT_EQ(group.activity.rewards[1][2].sum, 0.5);
}

TEST(ActivityTest, EncodingKeepsEveryNumberAndDamageIsFound) {
  Activity activity = Decisions(3);
  activity.late = 4;
  activity.agreed = 5;
  activity.rewards[0][1].Add(-0.25);
  activity.rewards[2][2].Add(1.5);
  activity.uniform.Add(0.125);
  const std::string bytes = EncodeActivity(activity);
  const auto read = DecodeActivity(bytes);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value(), activity);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(DecodeActivity(std::string_view(bytes).substr(0, length)).ok()) << length;
  }
}

}  // namespace
}  // namespace codband::engine
