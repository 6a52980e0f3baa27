#include "codband/policy/codband/past_periods.h"

#include <gtest/gtest.h>

#include "codband/linalg/test_support.h"

namespace codband {
namespace {

constexpr std::size_t kPastDim = 3;
constexpr RecordLayout kPastLayout{.dim = kPastDim, .columns = true};

linalg::SufficientStats Rounded(std::uint64_t seed, std::size_t count) {
  auto stats = linalg::SufficientStats::OfColumns(false);
  for (const auto& [x, r] : linalg::RandomObservations(seed, count, kPastDim)) stats.Add(x, r);
  stats.RoundToFloat();
  return stats;
}

std::string Bytes(const auto& object) {
  ByteWriter out;
  object.Save(out);
  return out.Take();
}

TEST(PastPeriodsTest, PeriodsKeepTheirNumbersWhenTheOldestAreForgotten) {
  PastPeriods past;
  EXPECT_EQ(past.closed_count(), 0U);
  for (const ModelId model : {5U, 9U, 5U}) past.Close(model);
  EXPECT_EQ(past.closed_count(), 3U);
  EXPECT_EQ(past.PeriodsOn(5), 2U);
  EXPECT_EQ(past.PeriodsOn(9), 1U);
  EXPECT_EQ(past.PeriodsOn(1), 0U);
  past.DropOldest();
  EXPECT_EQ(past.closed_count(), 3U);
  EXPECT_EQ(past.models().size(), 2U);
  EXPECT_EQ(past.PeriodsOn(5), 1U);
  EXPECT_EQ(past.ModelOf(0), kNoModel);
  EXPECT_EQ(past.ModelOf(1), 9U);
  EXPECT_EQ(past.ModelOf(2), 5U);
  past.DropOldest();
  past.DropOldest();
  EXPECT_EQ(past.ModelOf(2), kNoModel);
  past.Close(4);
  EXPECT_EQ(past.closed_count(), 4U);
  EXPECT_EQ(past.ModelOf(3), 4U);
  past.DropOldest();
  EXPECT_THROW(past.DropOldest(), InternalError);
}

Recency Two() {
  Recency two;
  two.Add({}, 2);
  return two;
}

TEST(PastPeriodsTest, SumsAreKeptForEachModel) {
  PastPeriods past;
  linalg::SufficientStats read = Rounded(9, 2);
  past.Read(5, read);
  EXPECT_EQ(Bytes(read), Bytes(linalg::SufficientStats::OfColumns(false)));  // nothing yet
  past.Store(5, Rounded(1, 10));
  past.Store(9, Rounded(2, 20));
  past.Store(5, Rounded(3, 30));  // instead of the first
  ASSERT_EQ(past.entries().size(), 2U);
  past.Read(5, read);
  EXPECT_EQ(Bytes(read), Bytes(Rounded(3, 30)));
  past.Read(9, read);
  EXPECT_EQ(Bytes(read), Bytes(Rounded(2, 20)));
  past.AddRecency(9, {}, Two());
  past.Erase(5);
  past.Read(5, read);
  EXPECT_EQ(read.m(), 0U);
  ASSERT_EQ(past.entries().size(), 1U);
  EXPECT_EQ(past.entries()[0].model, 9U);
  EXPECT_EQ(past.entries()[0].recency_mass().At({}, 0), 2);
  EXPECT_THROW(static_cast<void>(past.RecencyOf(5)), InternalError);
}

PastPeriods Example() {
  PastPeriods past;
  for (const ModelId model : {1U, 5U, 9U}) past.Close(model);
  past.DropOldest();
  past.Store(5, Rounded(1, 10));
  past.Store(9, Rounded(2, 20));
  past.AddRecency(9, {}, Two());
  return past;
}

TEST(PastPeriodsTest, SaveLoadIsExact) {
  const std::string bytes = Bytes(Example());
  PastPeriods restored;
  restored.Store(3, Rounded(3, 1));  // is overwritten
  ByteReader in(bytes);
  restored.Load(in, kPastLayout, false);
  in.ExpectEnd();
  ASSERT_TRUE(in.ok()) << in.status().ToString();
  EXPECT_EQ(Bytes(restored), bytes);
  EXPECT_EQ(restored.closed_count(), 3U);
  EXPECT_EQ(restored.ModelOf(0), kNoModel);
  EXPECT_EQ(restored.ModelOf(2), 9U);
  auto read = linalg::SufficientStats::OfColumns(false);
  restored.Read(9, read);
  EXPECT_EQ(Bytes(read), Bytes(Rounded(2, 20)));
}

TEST(PastPeriodsTest, DamagedBytesAreRefused) {
  const std::string bytes = Bytes(Example());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    ByteReader in(std::string_view(bytes).substr(0, size));
    PastPeriods past;
    past.Load(in, kPastLayout, false);
    EXPECT_FALSE(in.ok()) << size;
  }
  std::string twice = bytes;
  // forgotten, two models; then the models of the two entries.
  const std::size_t first = 4 + 3 * 8 + 8;
  // m, q, one run of columns, S and c.
  const std::size_t sums = 2 * 8 + 3 * 4 + 4 * (linalg::PackedSize(kPastDim) + kPastDim);
  const std::size_t entry = 8 + sums + 8 + 3 * 8;
  twice[first] = twice[first + entry];
  ByteReader in(twice);
  PastPeriods past;
  past.Load(in, kPastLayout, false);
  EXPECT_NE(in.status().message().find("past model appears twice"), std::string::npos)
      << in.status().ToString();
}

}  // namespace
}  // namespace codband
