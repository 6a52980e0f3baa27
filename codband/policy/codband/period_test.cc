#include "codband/policy/codband/period.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace codband {
namespace {

const std::vector<double> kPeriodX = {1, 2};
constexpr RecordLayout kPeriodLayout{.dim = 2, .columns = true};

Period FullPeriod() {
  return {.data = linalg::SufficientStats::OfColumns(false),
          .recency = std::make_unique<Recency>(),
          .recent = std::make_unique<RecentObservations>(2, 3)};
}

std::string BytesOf(const Period& period) {
  ByteWriter out;
  period.Save(out);
  return out.Take();
}

TEST(PeriodTest, ObservingAddsToTheSumsAndToTheRecentObservations) {
  Period period = FullPeriod();
  period.Observe(kPeriodX, 3);
  period.Observe(kPeriodX, 5);
  EXPECT_EQ(period.data.m(), 2U);
  EXPECT_EQ(period.data.q(), 34);
  EXPECT_EQ(period.data.c()[1], 16);
  ASSERT_EQ(period.recent->size(), 2U);
  EXPECT_EQ(period.recent->rewards()[1], 5);
}

TEST(PeriodTest, PartsThatAreNotUsedAreNotThere) {
  Period period{.data = linalg::SufficientStats::OfColumns(false)};
  period.Observe(kPeriodX, 3);
  EXPECT_EQ(period.data.m(), 1U);
  EXPECT_EQ(period.recent, nullptr);
  EXPECT_EQ(period.recency, nullptr);
  EXPECT_EQ(period.recency_mass().At({.now = 5}, 0), 0);
}

TEST(PeriodTest, ClearingEmptiesEverythingButTheModel) {
  Period period = FullPeriod();
  period.model = 7;
  period.Observe(kPeriodX, 3);
  period.recency->Add({.now = 5}, 1);
  period.Clear();
  EXPECT_EQ(period.model, 7U);
  EXPECT_EQ(period.data.m(), 0U);
  EXPECT_EQ(period.data.q(), 0);
  EXPECT_EQ(period.recent->size(), 0U);
  EXPECT_EQ(period.recency_mass().At({.now = 5}, 0), 0);
}

TEST(PeriodTest, WhatIsSavedIsReadBack) {
  Period period = FullPeriod();
  period.model = 7;
  period.Observe(kPeriodX, 3);
  period.recency->Add({.now = 5}, 1);
  const std::string bytes = BytesOf(period);
  Period restored = FullPeriod();
  ByteReader in(bytes);
  restored.Load(in, kPeriodLayout);
  in.ExpectEnd();
  ASSERT_TRUE(in.ok()) << in.status().ToString();
  EXPECT_EQ(restored.model, 7U);
  EXPECT_EQ(restored.data.m(), 1U);
  EXPECT_EQ(restored.recency_mass().At({.now = 5}, 0), 1);
  EXPECT_EQ(BytesOf(restored), bytes);
}

TEST(PeriodTest, SumsOverAllColumnsFromBeforeFormatFiveAreReadBack) {
  linalg::SufficientStats all(2);
  all.Add(kPeriodX, 3);
  ByteWriter out;
  out.U64(7);
  all.Save(out);
  Recency().Save(out);
  Period period = FullPeriod();
  ByteReader in(out.bytes());
  period.Load(in, {.dim = 2, .columns = false});
  in.ExpectEnd();
  ASSERT_TRUE(in.ok()) << in.status().ToString();
  Period expected = FullPeriod();
  expected.model = 7;
  expected.Observe(kPeriodX, 3);
  EXPECT_EQ(BytesOf(period), BytesOf(expected));
}

TEST(PeriodTest, BytesAreTheSameWithAndWithoutAnEmptyRecency) {
  Period with = FullPeriod();
  Period without{.data = linalg::SufficientStats::OfColumns(false)};
  with.Observe(kPeriodX, 3);
  without.Observe(kPeriodX, 3);
  EXPECT_EQ(BytesOf(with), BytesOf(without));
  const std::string bytes = BytesOf(with);
  ByteReader in(bytes);
  without.Load(in, kPeriodLayout);
  in.ExpectEnd();
  EXPECT_TRUE(in.ok());
}

TEST(PeriodTest, EveryPartTakesMemory) {
  const Period full = FullPeriod();
  Period without_recent = FullPeriod();
  without_recent.recent = nullptr;
  const Period bare{.data = linalg::SufficientStats::OfColumns(false)};
  EXPECT_GE(full.HeapBytes(), without_recent.HeapBytes() + sizeof(RecentObservations));
  EXPECT_GE(without_recent.HeapBytes(), bare.HeapBytes() + sizeof(Recency));
}

TEST(RecentObservationsTest, ClearingBeginsAnew) {
  RecentObservations recent(1, 2);
  for (const double r : {1.0, 2.0, 3.0}) recent.Push(std::vector<double>{10 * r}, r);
  recent.Clear();
  EXPECT_EQ(recent.size(), 0U);
  for (const double r : {4.0, 5.0, 6.0}) recent.Push(std::vector<double>{10 * r}, r);
  EXPECT_EQ(recent.rewards()[0] + recent.rewards()[1], 11);  // 4 was the oldest
}

TEST(RecentObservationsTest, KeepsTheLastOnes) {
  RecentObservations recent(1, 2);
  for (const double r : {1.0, 2.0, 3.0}) recent.Push(std::vector<double>{10 * r}, r);
  EXPECT_EQ(recent.size(), 2U);
  EXPECT_EQ(recent.rewards()[0] + recent.rewards()[1], 5);
  EXPECT_EQ(recent.features()[0], 10 * recent.rewards()[0]);
  EXPECT_EQ(recent.features()[1], 10 * recent.rewards()[1]);
}

TEST(RecentObservationsTest, GrowsBeforeTheInterceptOrBehindAll) {
  for (const bool intercept : {false, true}) {
    RecentObservations recent(2, 3);
    recent.Push(std::vector<double>{3, 1}, 5);
    recent.Push(std::vector<double>{4, 1}, 6);
    recent.Grow(4, intercept);
    const std::vector<double> expected = intercept ? std::vector<double>{3, 0, 0, 1, 4, 0, 0, 1}
                                                   : std::vector<double>{3, 1, 0, 0, 4, 1, 0, 0};
    EXPECT_TRUE(std::ranges::equal(recent.features(), expected)) << intercept;
  }
}

TEST(RecentObservationsTest, RoundTripGoesOnWhereItStopped) {
  RecentObservations recent(1, 2);
  for (const double r : {1.0, 2.0, 3.0}) recent.Push(std::vector<double>{10 * r}, r);
  ByteWriter out;
  recent.Save(out);
  RecentObservations restored(1, 2);
  ByteReader in(out.bytes());
  restored.Load(in);
  ASSERT_TRUE(in.ok()) << in.status().ToString();
  restored.Push(std::vector<double>{40}, 4);
  EXPECT_EQ(restored.rewards()[0] + restored.rewards()[1], 7);  // 2 was the oldest
}

TEST(RecentObservationsTest, MoreThanThereIsRoomForAreRefused) {
  RecentObservations large(1, 5);
  for (const double r : {1.0, 2.0, 3.0}) large.Push(std::vector<double>{r}, r);
  ByteWriter out;
  large.Save(out);
  RecentObservations small(1, 2);
  ByteReader in(out.bytes());
  small.Load(in);
  EXPECT_FALSE(in.ok());
  EXPECT_NE(in.status().message().find("are 3, expected at most 2"), std::string::npos)
      << in.status().message();
}

}  // namespace
}  // namespace codband
