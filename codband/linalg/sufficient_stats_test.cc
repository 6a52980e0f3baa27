#include "codband/linalg/sufficient_stats.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "codband/linalg/test_support.h"

namespace codband::linalg {
namespace {

std::string Bytes(const auto& stats) {
  ByteWriter out;
  stats.Save(out);
  return out.Take();
}

RC_GTEST_PROP(SufficientStatsTest, EqualsTheDenseSums, ()) {
  const auto dim = *rc::gen::inRange<std::size_t>(1, 20);
  const std::vector<Observation> data =
      RandomObservations(*rc::gen::arbitrary<std::uint32_t>(), 30, dim);
  SufficientStats stats = StatsOf(dim, data);
  stats.Remove(StatsOf(dim, std::span(data).first(10)));
  const auto d = static_cast<Eigen::Index>(dim);
  Eigen::MatrixXd S = Eigen::MatrixXd::Zero(d, d);
  Eigen::VectorXd c = Eigen::VectorXd::Zero(d);
  double q = 0;
  for (const auto& [x, r] : std::span(data).subspan(10)) {
    S += ToEigen(x) * ToEigen(x).transpose();
    c += r * ToEigen(x);
    q += r * r;
  }
  const Eigen::MatrixXd lower = S.triangularView<Eigen::Lower>();
  RC_ASSERT(RelativeError(LowerToEigen(stats.S(), dim), lower) < 1e-12);
  RC_ASSERT(RelativeError(ToEigen(stats.c()), c) < 1e-11);
  RC_ASSERT(std::abs(stats.q() - q) < 1e-12 * (1 + q));
  RC_ASSERT(stats.m() == 20U);
}

TEST(SufficientStatsTest, RoundedSumsAreTheNearestFloats) {
  const SufficientStats original = StatsOf(5, RandomObservations(1, 40, 5));
  SufficientStats rounded = original;
  rounded.RoundToFloat();
  EXPECT_NE(Bytes(rounded), Bytes(original));
  const auto expect_rounded = [](std::span<const double> values, std::span<const double> from) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(values[i], static_cast<double>(static_cast<float>(values[i])));
      EXPECT_NEAR(values[i], from[i], 6e-8 * std::abs(from[i]));
    }
  };
  expect_rounded(rounded.S(), original.S());
  expect_rounded(rounded.c(), original.c());
  EXPECT_EQ(rounded.q(), original.q());  // one number: it stays as it is
  EXPECT_EQ(rounded.m(), original.m());
}

// The whole without the corrected part is the rest, as if the part had been added rounded.
TEST(SufficientStatsTest, CorrectedSubsetCanBeRemovedByItsRoundedSums) {
  const std::vector<Observation> data = RandomObservations(2, 50, 4);
  const SufficientStats rest = StatsOf(4, std::span(data).first(20));
  const SufficientStats part = StatsOf(4, std::span(data).subspan(20));
  SufficientStats rounded = part;
  rounded.RoundToFloat();
  SufficientStats whole = rest;
  whole.Add(part);
  whole.Correct(part, rounded);
  EXPECT_EQ(whole.m(), 50U);
  whole.Remove(rounded);
  EXPECT_EQ(whole.m(), 20U);
  // Float rounding would be 1e-7.
  EXPECT_LT(RelativeError(ToEigen(whole.S()), ToEigen(rest.S())), 1e-14);
  EXPECT_LT(RelativeError(ToEigen(whole.c()), ToEigen(rest.c())), 1e-14);
  EXPECT_NEAR(whole.q(), rest.q(), 1e-12);
}

TEST(SufficientStatsTest, RemovingAllObservationsLeavesExactZeros) {
  const std::vector<Observation> data = RandomObservations(3, 9, 3);
  SufficientStats stats = StatsOf(3, data);
  for (const auto& [x, r] : data) stats.Remove(x, r);
  EXPECT_EQ(Bytes(stats), Bytes(SufficientStats(3)));
  SufficientStats at_once = StatsOf(3, data);
  at_once.Remove(StatsOf(3, data));
  EXPECT_EQ(Bytes(at_once), Bytes(SufficientStats(3)));
}

// Observations at some of eight columns and an intercept.
std::vector<Observation> AtColumns(std::uint64_t seed, std::initializer_list<std::size_t> columns) {
  std::vector<Observation> data = RandomObservations(seed, 12, 9);
  for (auto& [x, r] : data) {
    for (std::size_t i = 0; i < 8; ++i) {
      if (std::ranges::find(columns, i) == columns.end()) x[i] = 0;
    }
    x.back() = 1;
  }
  return data;
}

SufficientStats Listed(const std::vector<Observation>& data, bool intercept = false) {
  SufficientStats stats = SufficientStats::OfColumns(intercept);
  for (const auto& [x, r] : data) stats.Add(x, r);
  return stats;
}

std::string OverAll(const SufficientStats& stats) {
  SufficientStats all(9);
  all.Add(stats);
  return Bytes(all);
}

TEST(SufficientStatsTest, ColumnsThatOccurHoldWhatAllColumnsDo) {
  const std::vector<Observation> a = AtColumns(1, {2, 5});
  const std::vector<Observation> b = AtColumns(2, {0, 5, 7});
  SufficientStats sum = Listed(a, true);
  EXPECT_EQ(sum.dim(), 3U);
  EXPECT_EQ(OverAll(sum), Bytes(StatsOf(9, a)));
  SufficientStats both = StatsOf(9, a);
  both.Add(StatsOf(9, b));
  sum.Add(Listed(b, true));
  EXPECT_EQ(sum.dim(), 5U);  // 0, 2, 5, 7 and the intercept
  EXPECT_EQ(OverAll(sum), Bytes(both));
  both.Remove(StatsOf(9, a));
  sum.Remove(Listed(a, true));
  EXPECT_EQ(OverAll(sum), Bytes(both));
  both.Remove(b[0].first, b[0].second);
  sum.Remove(b[0].first, b[0].second);
  EXPECT_EQ(OverAll(sum), Bytes(both));
  SufficientStats all(9);
  all.Add(Listed(a, true));
  all.Add(sum);
  SufficientStats rounded = sum;
  rounded.RoundToFloat();
  all.Correct(sum, rounded);
  all.Remove(rounded);
  EXPECT_LT(RelativeError(ToEigen(all.S()), ToEigen(StatsOf(9, a).S())), 1e-14);

  const std::string bytes = Bytes(sum);
  ByteReader again(bytes);
  SufficientStats restored = SufficientStats::OfColumns(true);
  restored.Load(again);
  again.ExpectEnd();
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  EXPECT_EQ(Bytes(restored), bytes);
}

TEST(SufficientStatsTest, GrowingEqualsHavingHadTheColumnsFromTheStart) {
  for (const bool intercept : {false, true}) {
    const std::vector<Observation> data = RandomObservations(3, 20, 4);
    SufficientStats grown = StatsOf(4, data);
    SufficientStats wide(7);
    for (const auto& [x, r] : data) {
      std::vector<double> wider = x;
      wider.insert(wider.end() - (intercept ? 1 : 0), 3, 0.0);
      wide.Add(wider, r);
    }
    grown.Grow(7, intercept);
    EXPECT_EQ(Bytes(grown), Bytes(wide)) << intercept;
  }
}

TEST(SufficientStatsTest, DamagedColumnsAreRefused) {
  const auto refused = [](std::initializer_list<std::pair<std::uint32_t, std::uint32_t>> runs) {
    ByteWriter out;
    out.U64(1);
    out.Double(1);
    out.U32(static_cast<std::uint32_t>(runs.size()));
    for (const auto& [first, count] : runs) {
      out.U32(first);
      out.U32(count);
    }
    out.Doubles(std::vector<double>(100));
    ByteReader in(out.bytes());
    SufficientStats stats = SufficientStats::OfColumns(true);
    stats.Load(in, 20);
    return !in.ok();
  };
  EXPECT_FALSE(refused({{0, 2}, {5, 1}, {0xffff, 1}}));
  EXPECT_TRUE(refused({{0, 2}, {1, 1}}));  // twice
  EXPECT_TRUE(refused({{5, 1}, {0, 1}}));  // not rising
  EXPECT_TRUE(refused({{5, 0}}));          // none
  EXPECT_TRUE(refused({{0, 2000}}));       // more than there can be
  EXPECT_FALSE(refused({{18, 1}}));
  EXPECT_TRUE(refused({{19, 1}}));      // the intercept is the last of twenty
  EXPECT_TRUE(refused({{0xffff, 2}}));  // beyond the intercept
  EXPECT_TRUE(refused({{4'000'000'000U, 1}}));
}

TEST(CompactStatsTest, HoldsRoundedSumsExactly) {
  SufficientStats stats = Listed(RandomObservations(4, 30, 6));
  stats.RoundToFloat();
  CompactStats compact(false);
  compact.Store(stats);
  EXPECT_EQ(compact.m(), 30U);
  SufficientStats read = Listed(RandomObservations(5, 3, 6));  // is overwritten
  compact.Read(read);
  EXPECT_EQ(Bytes(read), Bytes(stats));
}

TEST(CompactStatsTest, SaveLoadIsExact) {
  SufficientStats stats = Listed(RandomObservations(6, 30, 6));
  stats.RoundToFloat();
  CompactStats compact(false);
  compact.Store(stats);
  const std::string bytes = Bytes(compact);
  CompactStats restored(false);
  ByteReader in(bytes);
  restored.Load(in, 6);
  in.ExpectEnd();
  ASSERT_TRUE(in.ok()) << in.status().ToString();
  SufficientStats read = SufficientStats::OfColumns(false);
  restored.Read(read);
  EXPECT_EQ(Bytes(read), Bytes(stats));

  CompactStats cut(false);
  ByteReader short_of(std::string_view(bytes).substr(0, bytes.size() - 1));
  cut.Load(short_of, 6);
  EXPECT_FALSE(short_of.ok());
}

}  // namespace
}  // namespace codband::linalg
