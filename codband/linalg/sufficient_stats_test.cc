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

TEST(CompactStatsTest, HoldsRoundedSumsExactly) {
  SufficientStats stats = StatsOf(6, RandomObservations(4, 30, 6));
  stats.RoundToFloat();
  CompactStats compact(6);
  compact.Store(stats);
  EXPECT_EQ(compact.m(), 30U);
  SufficientStats read = StatsOf(6, RandomObservations(5, 3, 6));  // is overwritten
  compact.Read(read);
  EXPECT_EQ(Bytes(read), Bytes(stats));
}

TEST(CompactStatsTest, SaveLoadIsExactInTheBytesItSays) {
  SufficientStats stats = StatsOf(6, RandomObservations(6, 30, 6));
  stats.RoundToFloat();
  CompactStats compact(6);
  compact.Store(stats);
  const std::string bytes = Bytes(compact);
  EXPECT_EQ(bytes.size(), CompactStats::SavedBytes(6));
  CompactStats restored(6);
  ByteReader in(bytes);
  restored.Load(in);
  in.ExpectEnd();
  ASSERT_TRUE(in.ok()) << in.status().ToString();
  SufficientStats read(6);
  restored.Read(read);
  EXPECT_EQ(Bytes(read), Bytes(stats));

  CompactStats cut(6);
  ByteReader short_of(std::string_view(bytes).substr(0, bytes.size() - 1));
  cut.Load(short_of);
  EXPECT_FALSE(short_of.ok());
}

}  // namespace
}  // namespace codband::linalg
