#include "codband/sim/runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>

#include "codband/sim/summary.h"
#include "codband/sim/synthetic.h"

namespace codband {
namespace {

const SyntheticOptions kSmall{.users = 8,
                              .models = 3,
                              .rounds = 120,
                              .period_min = 30,
                              .period_max = 60,
                              .pool = 50,
                              .dim = 6};

Comparison Play(const RunnerOptions& options, const SyntheticOptions& environment = kSmall) {
  return std::move(
             Compare([&](std::uint64_t seed) { return MakeSynthetic(environment, seed); }, options))
      .value();
}

void ExpectSameRun(const RunResult& a, const RunResult& b) {
  EXPECT_EQ(a.regret, b.regret);
  EXPECT_EQ(a.changes.delays, b.changes.delays);
  EXPECT_EQ(a.changes.false_alarms, b.changes.false_alarms);
  EXPECT_EQ(a.clusters.same_both, b.clusters.same_both);
  EXPECT_EQ(a.models, b.models);
}

TEST(RunnerTest, ResultsDependNeitherOnThreadsNorOnOtherPoliciesNorOnTheNumberOfSeeds) {
  const Comparison all = Play({.policies = {"random", "linucb", "codband", "oracle-filter"},
                               .first_seed = 4,
                               .seeds = 3,
                               .threads = 3});
  const Comparison alone = Play({.policies = {"codband"}, .first_seed = 5, .threads = 1});
  const Comparison oracle = Play({.policies = {"oracle-filter"}, .first_seed = 6, .threads = 1});
  ExpectSameRun(all.policies[2].runs[1], alone.policies[0].runs[0]);
  ExpectSameRun(all.policies[3].runs[2], oracle.policies[0].runs[0]);
}

TEST(RunnerTest, RegretOfTheRandomPolicyIsTheGapToTheBestArm) {
  // Replayed by hand from the environment, with the same key for the policy's draw.
  const Comparison played = Play({.policies = {"random"}, .first_seed = 2});
  const auto environment = std::move(MakeSynthetic(kSmall, 2)).value();
  double regret = 0;
  Visit visit;
  for (std::size_t round = 0; round < kSmall.rounds; ++round) {
    environment->StartRound(round);
    for (UserId user = 0; user < kSmall.users; ++user) {
      environment->MakeVisit(user, visit);
      RandomStream random({2, round * kSmall.users + user}, 1);
      double best = visit.means[0];
      for (const double mean : visit.means) best = std::max(best, mean);
      regret += best - visit.means[random.Below(visit.means.size())];
    }
  }
  EXPECT_DOUBLE_EQ(Summarise(played.policies[0]).mean_regret, regret);
  EXPECT_EQ(played.checkpoint_rounds.back(), kSmall.rounds);
}

TEST(RunnerTest, OracleKnowsTheGroupsExactly) {
  const Comparison played = Play({.policies = {"oracle-linucb", "linucb"}});
  const ClusterMetrics& oracle = played.policies[0].runs[0].clusters;
  EXPECT_EQ(oracle.precision(), 1);
  EXPECT_EQ(oracle.recall(), 1);
  EXPECT_EQ(played.policies[1].runs[0].clusters.recall(), 0);
  EXPECT_LT(Summarise(played.policies[0]).mean_regret, Summarise(played.policies[1]).mean_regret);
}

TEST(RunnerTest, ProgressAddsUpToOne) {
  std::mutex mutex;
  double done = 0;
  Play({.policies = {"random", "linucb"}, .seeds = 2, .threads = 2, .progress = [&](double share) {
          const std::lock_guard lock(mutex);
          done += share;
        }});
  EXPECT_NEAR(done, 1, 1e-9);
}

TEST(RunnerTest, WhatIsWrongIsFoundBeforeAnythingIsPlayed) {
  int made = 0;
  const auto make = [&](std::uint64_t seed) {
    ++made;
    return MakeSynthetic(kSmall, seed);
  };
  EXPECT_EQ(Compare(make, {.policies = {"random", "nosuch"}}).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_LE(made, 2);  // one for each policy, to see whether it can be made
  EXPECT_FALSE(Compare(make, {.policies = {}}).ok());
  EXPECT_FALSE(Compare(make, {.policies = {"random"}, .seeds = 0}).ok());
}

TEST(RunnerTest, FewRoundsGiveFewCheckpoints) {
  SyntheticOptions tiny = kSmall;
  tiny.rounds = 3;
  const Comparison played = Play({.policies = {"random"}}, tiny);
  EXPECT_EQ(played.checkpoint_rounds, (std::vector<std::size_t>{1, 2, 3}));
  EXPECT_EQ(played.policies[0].runs[0].regret.size(), 3U);
}

}  // namespace
}  // namespace codband
