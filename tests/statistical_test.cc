// Facts that hold on average. Seeds are fixed: a test fails because the code changed, not by
// chance.
#include <gtest/gtest.h>

#include <map>

#include "codband/sim/runner.h"
#include "codband/sim/summary.h"
#include "codband/sim/synthetic.h"

namespace codband {
namespace {

std::map<std::string, sim::PolicyResults> Play(const sim::SyntheticOptions& environment,
                                               std::vector<std::string> policies,
                                               std::size_t seeds) {
  sim::Comparison comparison =
      std::move(
          sim::Compare([&](std::uint64_t seed) { return sim::MakeSynthetic(environment, seed); },
                       {.policies = std::move(policies), .seeds = seeds, .threads = 2}))
          .value();
  std::map<std::string, sim::PolicyResults> by_name;
  for (sim::PolicyResults& policy : comparison.policies) by_name[policy.spec] = std::move(policy);
  return by_name;
}

TEST(StatisticalTest, CoDBandLiesBetweenTheOracleAndTheLearnersThatNeverForget) {
  const sim::SyntheticOptions environment{
      .users = 20, .models = 4, .rounds = 800, .period_min = 200, .period_max = 400, .dim = 10};
  const auto results = Play(environment,
                            {"random", "oracle-linucb", "oracle-greedy", "linucb", "lints",
                             "uniform-linucb", "codband", "codband:paper"},
                            2);
  const auto regret = [&](const char* policy) {
    return sim::Summarise(results.at(policy)).mean_regret;
  };
  EXPECT_LT(regret("oracle-greedy"), regret("codband"));
  EXPECT_LT(regret("oracle-linucb"), regret("codband"));
  EXPECT_LT(3 * regret("codband"), regret("linucb"));
  EXPECT_LT(3 * regret("codband:paper"), regret("linucb"));
  EXPECT_LT(3 * regret("codband:paper"), regret("lints"));
  EXPECT_LT(regret("linucb"), regret("random"));
  EXPECT_LT(regret("uniform-linucb"), regret("random"));
  const sim::ChangeMetrics changes = sim::Summarise(results.at("codband:paper")).changes;
  EXPECT_GE(static_cast<double>(changes.detected),
            0.95 * static_cast<double>(changes.true_changes));
  EXPECT_LT(changes.false_alarms_per_1000(), 1);
}

TEST(StatisticalTest, DefaultComesCloseToTheLimit) {
  const sim::SyntheticOptions environment{
      .users = 50, .models = 5, .rounds = 600, .period_min = 150, .period_max = 400};
  const auto results =
      Play(environment, {"codband", "codband:paper", "oracle-greedy", "oracle-filter"}, 2);
  const auto regret = [&](const char* policy) {
    return sim::Summarise(results.at(policy)).mean_regret;
  };
  EXPECT_LT(regret("codband"), 1.35 * (regret("oracle-greedy") + regret("oracle-filter")));
  EXPECT_LT(2 * regret("codband"), regret("codband:paper"));
  const sim::ChangeMetrics changes = sim::Summarise(results.at("codband")).changes;
  EXPECT_EQ(changes.detected, changes.true_changes);
  EXPECT_LT(changes.false_alarms_per_1000(), 0.2);
}

TEST(StatisticalTest, SharingPaysInAStationaryPopulation) {
  sim::SyntheticOptions environment = sim::SyntheticOptions::Paper(sim::Setting::kStationary);
  environment.users = 60;
  environment.rounds = 300;
  environment.dim = 10;
  const auto results = Play(environment, {"linucb", "codband:paper"}, 2);
  EXPECT_LT(2 * sim::Summarise(results.at("codband:paper")).mean_regret,
            sim::Summarise(results.at("linucb")).mean_regret);
}

}  // namespace
}  // namespace codband
