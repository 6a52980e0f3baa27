#include "codband/experiments/paper_runs.h"

#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <set>

namespace codband::experiments {
namespace {

// Two experiments small enough to be played.
PaperRecord SmallRecord(std::vector<std::string> policies = {"linucb", "random"}) {
  const sim::SyntheticOptions environment{.users = 4,
                                          .models = 2,
                                          .rounds = 20,
                                          .period_min = 5,
                                          .period_max = 10,
                                          .pool = 20,
                                          .dim = 4};
  sim::SyntheticOptions other = environment;
  other.models = 3;
  return {.first_seed = 3,
          .seeds = 2,
          .experiments = {{.name = "row1", .environment = environment},
                          {.name = "row5", .environment = other}},
          .policies = std::move(policies)};
}

// Runs in memory.
class MemoryArchive final : public sim::RunArchive {
 public:
  std::optional<sim::RunResult> Load(const std::string& identity) const override {
    const std::lock_guard lock(mutex_);
    const auto found = runs.find(identity);
    if (found == runs.end()) return std::nullopt;
    return found->second;
  }
  Status Save(const std::string& identity, const sim::RunResult& run) const override {
    const std::lock_guard lock(mutex_);
    runs[identity] = run;
    return {};
  }

  mutable std::map<std::string, sim::RunResult> runs;

 private:
  mutable std::mutex mutex_;
};

TEST(PaperRunsTest, PlansEveryExperimentPolicyAndSeedInThatOrder) {
  const PaperRecord record = SmallRecord();
  const auto runs = PlanPaperRuns(record);
  ASSERT_TRUE(runs.ok()) << runs.status().message();
  ASSERT_EQ(runs.value().size(), 8U);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(runs.value()[i].spec.policy, record.policies[i / 2 % 2]);
    EXPECT_EQ(runs.value()[i].seed, 3 + i % 2);
    EXPECT_EQ(runs.value()[i].spec.checkpoints, 150U);
    EXPECT_EQ(runs.value()[i].rounds, 20U);
  }
}

TEST(PaperRunsTest, OnlyTheFirstSeedOfTheStripChartsRecordsUsers) {
  const auto runs = PlanPaperRuns(SmallRecord({"codband", "linucb"}));
  ASSERT_TRUE(runs.ok()) << runs.status().message();
  for (std::size_t i = 0; i < runs.value().size(); ++i) {
    // Experiment row5, policy codband, seed 3.
    EXPECT_EQ(runs.value()[i].spec.record_users, i == 4) << i;
  }
}

TEST(PaperRunsTest, ThePapersParametersHoldInItsFirstSetting) {
  PaperRecord record = SmallRecord({"linucb"});
  record.experiments[0].environment.setting = sim::Setting::kDirichletProcess;
  const auto runs = PlanPaperRuns(record);
  EXPECT_EQ(runs.value()[0].spec.policy, "linucb:alpha=0.3");
  EXPECT_EQ(runs.value()[2].spec.policy, "linucb");
}

TEST(PaperRunsTest, PoliciesThatAreTheSameAreRefused) {
  const auto runs = PlanPaperRuns(SmallRecord({"linucb", "linucb:alpha=0.6"}));
  ASSERT_FALSE(runs.ok());
  EXPECT_EQ(runs.status().message(),
            "--policies: 'linucb' and 'linucb:alpha=0.6' are the same in row1");
  EXPECT_EQ(PlanPaperRuns(SmallRecord({"nosuch"})).status().code(), StatusCode::kInvalidArgument);
}

TEST(PaperRunsTest, ProductLikelihoodCostsMoreThanJointAndThatMoreThanNoPool) {
  const auto runs =
      PlanPaperRuns(SmallRecord({"linucb", "codband:paper", "codband:paper-product"}));
  ASSERT_TRUE(runs.ok()) << runs.status().message();
  EXPECT_LT(runs.value()[0].cost, runs.value()[2].cost);
  EXPECT_LT(runs.value()[2].cost, runs.value()[4].cost);
  // More models, more cost.
  EXPECT_LT(runs.value()[2].cost, runs.value()[8].cost);
}

TEST(PaperRunsTest, IdentityHoldsPopulationPolicySeedAndWhatIsRecorded) {
  const PaperRecord record = SmallRecord();
  const sim::SyntheticOptions environment = record.experiments[0].environment;
  const sim::PlannedRun run = PlanPaperRuns(record).value()[0];
  std::set<std::string> identities = {RunIdentity(environment, run)};
  const auto is_new = [&](const sim::SyntheticOptions& population, const sim::PlannedRun& changed) {
    return identities.insert(RunIdentity(population, changed)).second;
  };
  sim::SyntheticOptions drifting = environment;
  drifting.drift = true;
  EXPECT_TRUE(is_new(drifting, run));
  sim::SyntheticOptions clicks = environment;
  clicks.rewards = sim::RewardKind::kClicks;
  EXPECT_TRUE(is_new(clicks, run));
  sim::PlannedRun changed = run;
  changed.full_spec += ",x=1";
  EXPECT_TRUE(is_new(environment, changed));
  changed = run;
  changed.seed = 9;
  EXPECT_TRUE(is_new(environment, changed));
  changed = run;
  changed.spec.record_users = true;
  EXPECT_TRUE(is_new(environment, changed));
  changed = run;
  changed.spec.checkpoints = 7;
  EXPECT_TRUE(is_new(environment, changed));
}

TEST(PaperRunsTest, ResultsGoToTheirExperimentPolicyAndSeedAndAreResumed) {
  PaperRecord record = SmallRecord();
  const auto runs = PlanPaperRuns(record);
  const MemoryArchive archive;
  ASSERT_TRUE(PlayPaperRuns(runs.value(), {.threads = 2, .archive = &archive}, record).ok());
  EXPECT_EQ(record.resumed_runs, 0U);
  EXPECT_EQ(archive.runs.size(), 8U);
  ASSERT_EQ(record.results.size(), 2U);
  for (std::size_t e = 0; e < 2; ++e) {
    for (std::size_t p = 0; p < 2; ++p) {
      EXPECT_EQ(record.results[e][p].spec, record.policies[p]);
      for (std::size_t s = 0; s < 2; ++s) {
        const sim::PlannedRun& run = runs.value()[4 * e + 2 * p + s];
        const auto alone = sim::PlayOne(run.make_environment, run.spec, run.seed);
        EXPECT_EQ(record.results[e][p].runs[s].regret, alone.value().regret);
      }
    }
  }
  PaperRecord resumed = SmallRecord();
  archive.runs.erase(runs.value()[5].identity);
  ASSERT_TRUE(PlayPaperRuns(runs.value(), {.archive = &archive}, resumed).ok());
  EXPECT_EQ(resumed.resumed_runs, 7U);
  EXPECT_EQ(resumed.results[1][0].runs[1].regret, record.results[1][0].runs[1].regret);
}

TEST(PaperRunsTest, CommandRepeatsTheRecord) {
  PaperRecord record = SmallRecord();
  EXPECT_EQ(PaperCommand(record, "", ""), "codband paper --seed 3 --seeds 2");
  record.quick = true;
  EXPECT_EQ(PaperCommand(record, "row1,row5", "linucb"),
            "codband paper --quick --seed 3 --seeds 2 --rows row1,row5 --policies linucb");
}

}  // namespace
}  // namespace codband::experiments
