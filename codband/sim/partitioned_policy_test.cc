#include "codband/sim/partitioned_policy.h"

#include <gtest/gtest.h>

#include "codband/sim/runner.h"
#include "codband/sim/synthetic.h"

namespace codband::sim {
namespace {

SyntheticOptions SmallPopulation(std::size_t partitions) {
  return {.users = 24,
          .models = 3,
          .rounds = 150,
          .period_min = 60,
          .period_max = 150,
          .pool = 50,
          .dim = 6,
          .partitions = partitions,
          .publish_min = 24,
          .publish_max = 480,
          .pool_delay = 24};
}

Result<Comparison> Play(const SyntheticOptions& environment, const RunnerOptions& options) {
  return Compare([&](std::uint64_t seed) { return MakeSynthetic(environment, seed); }, options);
}

double Regret(const SyntheticOptions& environment) {
  double sum = 0;
  const auto played = Play(environment, {.policies = {"codband"}, .seeds = 4, .threads = 2});
  for (const RunResult& run : played.value().policies[0].runs) sum += run.total_regret();
  return sum;
}

TEST(PartitionedPolicyTest, ResultsDoNotDependOnThreads) {
  const RunnerOptions options{.policies = {"codband", "codband:paper"}, .seeds = 2, .threads = 3};
  RunnerOptions alone = options;
  alone.threads = 1;
  const auto a = Play(SmallPopulation(4), options);
  const auto b = Play(SmallPopulation(4), alone);
  ASSERT_TRUE(a.ok());
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::size_t s = 0; s < 2; ++s) {
      EXPECT_EQ(a.value().policies[i].runs[s].regret, b.value().policies[i].runs[s].regret);
      EXPECT_EQ(a.value().policies[i].runs[s].models, b.value().policies[i].runs[s].models);
    }
  }
}

TEST(PartitionedPolicyTest, SharingPaysAndDelayCosts) {
  const double one = Regret(SmallPopulation(1));
  const double four = Regret(SmallPopulation(4));
  SyntheticOptions late = SmallPopulation(4);
  late.publish_min = late.publish_max = 100'000;  // never
  const double never = Regret(late);
  EXPECT_LT(four, 1.25 * one);
  EXPECT_GT(never, 1.4 * one);
}

TEST(PartitionedPolicyTest, APolicyThatSharesNothingIsRefused) {
  const auto played = Play(SmallPopulation(2), {.policies = {"linucb:lambda=1"}});
  ASSERT_FALSE(played.ok());
  EXPECT_NE(played.status().message().find("expected one that shares what it learns"),
            std::string::npos)
      << played.status().message();
}

}  // namespace
}  // namespace codband::sim
