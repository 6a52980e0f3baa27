#include "codband/policy/codband/belief.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <vector>

namespace codband {
namespace {

ModelPool PoolOf(std::size_t models) {
  ModelPool pool(linalg::LinearPrior::Isotropic(1, 1, 1));
  for (std::size_t k = 0; k < models; ++k)
    pool.AddPeriods(pool.Create(), 1, linalg::SufficientStats(1));
  return pool;
}

double Sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

std::vector<double> Expanded(const Belief& belief, const ModelPool& pool,
                             const std::vector<double>& prior_weights) {
  // Whatever was there before is overwritten.
  std::vector<double> chances(pool.size() + 1, 7.0);
  belief.Expand(pool, prior_weights, chances);
  return chances;
}

TEST(BeliefTest, NewBeliefIsAllRest) {
  const Belief belief;
  EXPECT_EQ(belief.size(), 0U);
  EXPECT_EQ(belief.fresh(), 0);
  EXPECT_EQ(belief.rest(), 1);
}

TEST(BeliefTest, KeepsTheLikeliestInOrderAndLeavesOutNegligibleOnes) {
  const ModelPool pool = PoolOf(4);
  Belief belief;
  belief.Assign(pool, std::vector<double>{0.2, 0.5, 1e-9, 0.2, 0.1 - 1e-9});
  ASSERT_EQ(belief.size(), 3U);
  EXPECT_EQ(belief.model(0), pool.model(1).id);
  EXPECT_EQ(belief.chance(0), 0.5);
  EXPECT_EQ(belief.model(1), pool.model(0).id);  // the older one where equal
  EXPECT_EQ(belief.model(2), pool.model(3).id);
  EXPECT_NEAR(belief.fresh(), 0.1, 1e-6);
  EXPECT_NEAR(belief.rest(), 1e-9, 1e-6);
}

TEST(BeliefTest, OfMoreModelsThanItHoldsTheLeastLikelyFallOut) {
  constexpr std::size_t kModels = Belief::kEntries + 9;
  const ModelPool pool = PoolOf(kModels);
  // In no order: 7 and 25 have no common factor.
  std::vector<double> chances;
  for (std::size_t k = 0; k < kModels; ++k) {
    chances.push_back(static_cast<double>(k * 7 % kModels + 1));
  }
  chances.push_back(0);
  const double total = Sum(chances);
  for (double& chance : chances) chance /= total;
  Belief belief;
  belief.Assign(pool, chances);
  ASSERT_EQ(belief.size(), Belief::kEntries);
  double kept = 0;
  for (std::size_t i = 0; i < Belief::kEntries; ++i) {
    EXPECT_NEAR(belief.chance(i), static_cast<double>(kModels - i) / total, 1e-7);
    EXPECT_NEAR(belief.chance(i), chances[pool.IndexOf(belief.model(i)).value()], 1e-7);
    kept += belief.chance(i);
  }
  EXPECT_NEAR(belief.rest(), 1 - kept, 1e-6);
  // The others share what is left by their prior weights.
  std::vector<double> prior(kModels + 1, 1.0);
  const std::vector<double> expanded = Expanded(belief, pool, prior);
  EXPECT_NEAR(Sum(expanded), 1, 1e-6);
  for (std::size_t k = 0; k < kModels; ++k) {
    const bool listed = chances[k] * total > 9.5;
    EXPECT_NEAR(expanded[k], listed ? chances[k] : (1 - kept) / 9, 1e-6) << k;
  }
}

TEST(BeliefTest, RestIsSpreadByThePriorOverModelsNotListed) {
  const ModelPool pool = PoolOf(3);
  Belief belief;
  belief.Assign(pool, std::vector<double>{0, 0.6, 0, 0.1});
  EXPECT_NEAR(belief.rest(), 0.3, 1e-6);
  const std::vector<double> chances = Expanded(belief, pool, {2, 50, 1, 99});
  EXPECT_NEAR(chances[0], 0.2, 1e-6);
  EXPECT_NEAR(chances[1], 0.6, 1e-6);
  EXPECT_NEAR(chances[2], 0.1, 1e-6);
  EXPECT_NEAR(chances[3], 0.1, 1e-6);
}

TEST(BeliefTest, ChancesAddUpToOneWhateverIsLeftOfThePool) {
  ModelPool pool = PoolOf(3);
  Belief belief;
  belief.Assign(pool, std::vector<double>{0.5, 0.2, 0.2, 0.1});
  EXPECT_NEAR(Sum(Expanded(belief, pool, {1, 1, 1, 1})), 1, 1e-6);
  // Everything is listed, one of them goes: nobody else is there to take over its chance.
  pool.RemovePeriods(pool.model(0).id, 1, linalg::SufficientStats(1));
  std::vector<double> chances = Expanded(belief, pool, {1, 1, 1});
  EXPECT_NEAR(chances[0], 0.4, 1e-6);
  EXPECT_NEAR(chances[1], 0.4, 1e-6);
  EXPECT_NEAR(chances[2], 0.2, 1e-6);
  // A model that came later inherits it.
  pool.AddPeriods(pool.Create(), 1, linalg::SufficientStats(1));
  chances = Expanded(belief, pool, {1, 1, 1, 1});
  EXPECT_NEAR(chances[0], 0.2, 1e-6);
  EXPECT_NEAR(chances[2], 0.5, 1e-6);
  EXPECT_NEAR(Sum(chances), 1, 1e-6);
  // But not where the prior rules it out.
  chances = Expanded(belief, pool, {1, 1, 0, 1});
  EXPECT_EQ(chances[2], 0);
  EXPECT_NEAR(Sum(chances), 1, 1e-6);
}

TEST(BeliefTest, ChancesAddUpToOneWhereNothingIsListed) {
  const ModelPool pool = PoolOf(2);
  const std::vector<double> chances = Expanded(Belief(), pool, {3, 1, 5});
  EXPECT_NEAR(chances[0], 0.75, 1e-6);
  EXPECT_NEAR(chances[1], 0.25, 1e-6);
  EXPECT_EQ(chances[2], 0);
  EXPECT_EQ(Expanded(Belief(), pool, {0, 0, 1}), (std::vector<double>{0, 0, 1}));
}

TEST(BeliefTest, EmptyPoolLeavesAFreshParameter) {
  const ModelPool empty = PoolOf(0);
  EXPECT_EQ(Expanded(Belief(), empty, {1}), std::vector<double>{1});
  Belief settled;
  settled.Settle(42);
  EXPECT_EQ(Expanded(settled, empty, {1}), std::vector<double>{1});
  Belief fresh;
  fresh.Assign(empty, std::vector<double>{1});
  EXPECT_EQ(fresh.fresh(), 1);
  EXPECT_EQ(Expanded(fresh, empty, {1}), std::vector<double>{1});
}

TEST(BeliefTest, SettledIsAllOnOneModel) {
  const ModelPool pool = PoolOf(3);
  Belief belief;
  belief.Assign(pool, std::vector<double>{0.5, 0.2, 0.2, 0.1});
  belief.Settle(pool.model(2).id);
  EXPECT_EQ(Expanded(belief, pool, {1, 1, 1, 1}), (std::vector<double>{0, 0, 1, 0}));
  belief.Clear();
  EXPECT_EQ(belief.rest(), 1);
}

std::string Bytes(const Belief& belief) {
  ByteWriter out;
  belief.Save(out);
  return out.Take();
}

TEST(BeliefTest, SaveLoadIsExact) {
  const ModelPool pool = PoolOf(3);
  Belief belief;
  belief.Assign(pool, std::vector<double>{1.0 / 3, 0.2, 0, 0.1});
  Belief restored;
  restored.Settle(99);  // is overwritten
  const std::string bytes = Bytes(belief);
  ByteReader in(bytes);
  restored.Load(in);
  in.ExpectEnd();
  ASSERT_TRUE(in.ok()) << in.status().ToString();
  EXPECT_EQ(Bytes(restored), bytes);
  EXPECT_EQ(restored.size(), 2U);
  EXPECT_NEAR(restored.fresh(), 0.1, 1e-7);
}

TEST(BeliefTest, DamagedBytesAreRefused) {
  const auto error_of = [](std::uint32_t count, double chance, double fresh) {
    ByteWriter out;
    out.U32(count);
    for (std::uint32_t i = 0; i < count; ++i) out.U64(i);
    out.Floats(std::vector<float>(count, static_cast<float>(chance)));
    out.Floats(std::vector<float>{static_cast<float>(fresh)});
    ByteReader in(out.bytes());
    Belief().Load(in);
    return in.status().message();
  };
  EXPECT_EQ(error_of(2, 0.5, 0), "");
  EXPECT_EQ(error_of(17, 0.01, 0), "number of beliefs is 17, expected at most 16 (before byte 4)");
  EXPECT_EQ(error_of(1, -0.5, 0),
            "beliefs add up to -0.5, expected chances of at most 1 in all (before byte 20)");
  EXPECT_EQ(error_of(2, 0.75, 0),
            "beliefs add up to 1.5, expected chances of at most 1 in all (before byte 32)");
  EXPECT_NE(error_of(1, 0.5, 2), "");
  EXPECT_NE(error_of(1, std::numeric_limits<double>::quiet_NaN(), 0), "");
  ByteReader cut("\x01");
  Belief belief;
  belief.Load(cut);
  EXPECT_FALSE(cut.ok());
}

}  // namespace
}  // namespace codband
