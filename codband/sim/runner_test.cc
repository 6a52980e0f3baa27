#include "codband/sim/runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "codband/sim/summary.h"
#include "codband/sim/synthetic.h"

namespace codband::sim {
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

TEST(RunnerTest, VisitsInRandomOrderAreThoseOfTheirUsers) {
  SyntheticOptions mixed = kSmall;
  mixed.order = VisitOrder::kRandom;
  const auto make = [&](std::uint64_t seed) { return MakeSynthetic(mixed, seed); };
  const RunResult run =
      std::move(PlayOne(make, {.policy = "oracle-linucb", .record_users = true}, 3)).value();
  // The oracle's groups are the true ones at the user's last visit. A change counts from the user's
  // next visit on; two changes before it count once.
  const auto environment = std::move(make(3)).value();
  const std::vector<std::size_t> checkpoints = CheckpointRounds(mixed.rounds, 100);
  std::vector<ModelId> models(mixed.users, kNoModel);
  std::vector<bool> changed(mixed.users);
  std::uint64_t met = 0;
  std::size_t happened = 0;
  std::size_t checkpoint = 0;
  Visit visit;
  for (std::size_t round = 0; round < mixed.rounds; ++round) {
    environment->StartRound(round);
    for (UserId user = 0; user < mixed.users; ++user) {
      changed[user] = changed[user] || environment->changed(user);
      happened += environment->changed(user);
    }
    for (std::size_t slot = 0; slot < mixed.users; ++slot) {
      environment->MakeVisit(slot, visit);
      met += changed[visit.user];
      changed[visit.user] = false;
      models[visit.user] = environment->model_of(visit.user);
    }
    if (round + 1 == checkpoints[checkpoint]) {
      EXPECT_EQ(run.user_models[checkpoint], models);
      ++checkpoint;
    }
  }
  EXPECT_EQ(run.changes.true_changes, met);
  EXPECT_EQ(run.true_changes.size(), happened);
}

TEST(RunnerTest, SeveralKindsOfEnvironmentsGiveWhatEachGivesAlone) {
  SyntheticOptions clicks = kSmall;
  clicks.rewards = RewardKind::kClicks;
  clicks.rounds = 40;
  const auto make = [](const SyntheticOptions& options) -> MakeEnvironment {
    return [options](std::uint64_t seed) { return MakeSynthetic(options, seed); };
  };
  const RunnerOptions options{.policies = {"linucb", "lints"}, .seeds = 2, .threads = 3};
  const auto all = CompareAll(std::vector{make(kSmall), make(clicks)}, options);
  ASSERT_EQ(all.value().size(), 2U);
  for (const auto& [together, alone] : {std::pair{all.value()[0], Play(options)},
                                        std::pair{all.value()[1], Play(options, clicks)}}) {
    EXPECT_EQ(together.checkpoint_rounds, alone.checkpoint_rounds);
    for (std::size_t p = 0; p < 2; ++p) {
      EXPECT_EQ(together.policies[p].spec, alone.policies[p].spec);
      for (std::size_t s = 0; s < 2; ++s) {
        ExpectSameRun(together.policies[p].runs[s], alone.policies[p].runs[s]);
      }
    }
  }
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

// Runs in memory; `fails` refuses to save.
class MemoryArchive final : public RunArchive {
 public:
  std::optional<RunResult> Load(const std::string& identity) const override {
    const auto found = runs.find(identity);
    if (found == runs.end()) return std::nullopt;
    return found->second;
  }
  Status Save(const std::string& identity, const RunResult& run) const override {
    if (fails) return Status::IoError("disk is full");
    const std::lock_guard lock(mutex);
    runs[identity] = run;
    return {};
  }

  bool fails = false;
  mutable std::mutex mutex;
  mutable std::map<std::string, RunResult> runs;
};

std::vector<PlannedRun> PlanSmall(std::size_t count) {
  std::vector<PlannedRun> runs;
  for (std::size_t i = 0; i < count; ++i) {
    runs.push_back(PlanRun([](std::uint64_t seed) { return MakeSynthetic(kSmall, seed); },
                           {.policy = "linucb", .checkpoints = 4}, i)
                       .value());
    runs.back().identity = "run " + std::to_string(i);
  }
  return runs;
}

TEST(PlayRunsTest, PlanHoldsTheFullSpecAndTheSizeOfTheRun) {
  const PlannedRun run = PlanSmall(1).front();
  EXPECT_NE(run.full_spec.find("linucb:"), std::string::npos) << run.full_spec;
  EXPECT_EQ(run.rounds, kSmall.rounds);
  EXPECT_EQ(run.users, kSmall.users);
  const auto make = [](std::uint64_t seed) { return MakeSynthetic(kSmall, seed); };
  EXPECT_EQ(PlanRun(make, {.policy = "nosuch"}, 1).status().code(), StatusCode::kInvalidArgument);
}

TEST(PlayRunsTest, OnlyWhatTheArchiveLacksIsPlayed) {
  const std::vector<PlannedRun> runs = PlanSmall(3);
  MemoryArchive archive;
  const PlayedRuns first = PlayRuns(runs, {.threads = 2, .archive = &archive}).value();
  EXPECT_EQ(first.resumed, 0U);
  EXPECT_EQ(archive.runs.size(), 3U);
  archive.runs.erase("run 1");
  std::vector<std::uint64_t> started;
  std::size_t told = 99;
  const PlayedRuns second =
      PlayRuns(runs, {.archive = &archive,
                      .resumed = [&](std::size_t resumed) { told = resumed; },
                      .started = [&](const PlannedRun& run) { started.push_back(run.seed); }})
          .value();
  EXPECT_EQ(second.resumed, 2U);
  EXPECT_EQ(told, 2U);
  EXPECT_EQ(started, std::vector<std::uint64_t>{1});
  for (std::size_t i = 0; i < runs.size(); ++i) {
    ExpectSameRun(first.results[i], second.results[i]);
  }
}

TEST(PlayRunsTest, RunOfAnotherShapeIsPlayedAgain) {
  const std::vector<PlannedRun> runs = PlanSmall(1);
  MemoryArchive archive;
  const RunResult whole = PlayRuns(runs, {.archive = &archive}).value().results[0];
  const auto resumed = [&](const RunResult& kept) {
    archive.runs["run 0"] = kept;
    const PlayedRuns played = PlayRuns(runs, {.archive = &archive}).value();
    ExpectSameRun(played.results[0], whole);
    return played.resumed;
  };
  EXPECT_EQ(resumed(whole), 1U);
  RunResult shorter = whole;
  shorter.regret.pop_back();
  EXPECT_EQ(resumed(shorter), 0U);
  RunResult with_users = whole;
  with_users.user_models.assign(whole.regret.size(), std::vector<ModelId>(kSmall.users));
  EXPECT_EQ(resumed(with_users), 0U);
}

TEST(PlayRunsTest, RecordedUsersMustBeAsManyAsThereAre) {
  std::vector<PlannedRun> runs = PlanSmall(1);
  runs[0].spec.record_users = true;
  MemoryArchive archive;
  ASSERT_TRUE(PlayRuns(runs, {.archive = &archive}).ok());
  EXPECT_EQ(PlayRuns(runs, {.archive = &archive}).value().resumed, 1U);
  archive.runs["run 0"].user_models[2].pop_back();
  EXPECT_EQ(PlayRuns(runs, {.archive = &archive}).value().resumed, 0U);
}

TEST(PlayRunsTest, RunsWithoutAnIdentityAreNotKept) {
  std::vector<PlannedRun> runs = PlanSmall(1);
  runs[0].identity.clear();
  const MemoryArchive archive;
  ASSERT_TRUE(PlayRuns(runs, {.archive = &archive}).ok());
  EXPECT_TRUE(archive.runs.empty());
}

TEST(PlayRunsTest, FailureToSaveEndsTheWork) {
  MemoryArchive archive;
  archive.fails = true;
  std::size_t started = 0;
  const auto played = PlayRuns(
      PlanSmall(4), {.archive = &archive, .started = [&](const PlannedRun&) { ++started; }});
  ASSERT_FALSE(played.ok());
  EXPECT_EQ(played.status().message(), "disk is full");
  EXPECT_EQ(started, 1U);
}

TEST(PlayRunsTest, MostExpensiveRunStartsFirst) {
  std::vector<PlannedRun> runs = PlanSmall(3);
  runs[1].cost = 5;
  runs[2].cost = 2;
  std::vector<std::uint64_t> started;
  ASSERT_TRUE(
      PlayRuns(runs, {.started = [&](const PlannedRun& run) { started.push_back(run.seed); }})
          .ok());
  EXPECT_EQ(started, (std::vector<std::uint64_t>{1, 2, 0}));
}

}  // namespace
}  // namespace codband::sim
