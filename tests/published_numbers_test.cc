// The numbers of the synthetic section: the paper's table (setting 2, 100 users, 3000 rounds), and
// the yardsticks measured for it by an independent implementation. Minutes; label slow.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "codband/sim/runner.h"
#include "codband/sim/summary.h"
#include "codband/sim/synthetic.h"

namespace codband {
namespace {

struct Row {
  std::size_t models;
  std::size_t period_min;
  std::size_t period_max;
  double noise;
  double oracle_linucb;
  double oracle_greedy;
  double oracle_filter;
};

constexpr Row kRows[] = {
    {10, 500, 3000, 0.10, 137, 115, 196},  {50, 500, 3000, 0.10, 563, 463, 276},
    {100, 500, 3000, 0.10, 943, 795, 336}, {10, 200, 500, 0.10, 137, 114, 811},
    {10, 500, 800, 0.10, 138, 116, 446},   {10, 800, 1100, 0.10, 138, 115, 329},
    {10, 500, 3000, 0.13, 196, 162, 262},  {10, 500, 3000, 0.16, 267, 229, 346},
};

sim::Comparison Play(const Row& row, std::vector<std::string> policies) {
  const sim::SyntheticOptions environment{.models = row.models,
                                          .period_min = row.period_min,
                                          .period_max = row.period_max,
                                          .noise = row.noise};
  return std::move(
             sim::Compare([&](std::uint64_t seed) { return sim::MakeSynthetic(environment, seed); },
                          {.policies = std::move(policies), .seeds = 5, .threads = 2}))
      .value();
}

class YardsticksTest : public testing::TestWithParam<Row> {};

TEST_P(YardsticksTest, AreWithinTwelvePercent) {
  const Row& row = GetParam();
  const sim::Comparison played = Play(row, {"oracle-linucb", "oracle-greedy", "oracle-filter"});
  EXPECT_NEAR(sim::Summarise(played.policies[0]).mean_regret / row.oracle_linucb, 1, 0.12);
  EXPECT_NEAR(sim::Summarise(played.policies[1]).mean_regret / row.oracle_greedy, 1, 0.12);
  EXPECT_NEAR(sim::Summarise(played.policies[2]).mean_regret / row.oracle_filter, 1, 0.12);
}

TEST_P(YardsticksTest, DefaultPaysAtMostAThirdMoreThanTheLimit) {
  const sim::Comparison played = Play(GetParam(), {"codband", "oracle-greedy", "oracle-filter"});
  EXPECT_LT(sim::Summarise(played.policies[0]).mean_regret,
            1.35 * (sim::Summarise(played.policies[1]).mean_regret +
                    sim::Summarise(played.policies[2]).mean_regret));
}

INSTANTIATE_TEST_SUITE_P(PaperTable, YardsticksTest, testing::ValuesIn(kRows),
                         [](const auto& row) { return fmt::format("row{}", row.index + 1); });

TEST(PublishedNumbersTest, CoDBandOfThePaperInTheFirstRow) {
  const sim::Comparison played = Play(kRows[0], {"codband:paper"});
  for (const sim::PolicyResults& policy : played.policies) {
    EXPECT_GT(sim::Summarise(policy).mean_regret, 800) << policy.spec;
    EXPECT_LT(sim::Summarise(policy).mean_regret, 1500) << policy.spec;
  }
}

TEST(PublishedNumbersTest, CoDBandOfThePaperWithShortPeriods) {
  const sim::Comparison played = Play(kRows[3], {"codband:paper"});
  for (const sim::PolicyResults& policy : played.policies) {
    EXPECT_GT(sim::Summarise(policy).mean_regret, 3500) << policy.spec;
    EXPECT_LT(sim::Summarise(policy).mean_regret, 7000) << policy.spec;
    const sim::ChangeMetrics changes = sim::Summarise(policy).changes;
    EXPECT_GE(static_cast<double>(changes.detected),
              0.95 * static_cast<double>(changes.true_changes))
        << policy.spec;
  }
}

}  // namespace
}  // namespace codband
