// Compares a short run of every policy with its golden trace in tests/golden. A difference is
// either a bug or a change of behaviour that CHANGELOG.md must name; scripts/update_golden.sh
// regenerates the traces.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "codband/base/file.h"
#include "codband/policy/test_support.h"
#include "tests/policy_specs.h"

namespace codband {
namespace {

std::string Trace(const std::string& spec) {
  TestWorld world(1);
  const auto policy = MakeOrDie(spec, world.context());
  std::string trace =
      fmt::format("# {}\n# step user arm model period mean changed\n", policy->spec());
  for (std::uint64_t step = 0; step < 360; ++step) {
    const EventKey key{1, step};
    const std::vector<double> arms = world.Arms();
    const Decision decision =
        policy->Choose(step % TestWorld::kUsers, {arms, TestWorld::kDim}, key);
    const LearnOutcome outcome = policy->Learn(decision, world.Reward(decision), key);
    world.set_step(step + 1);
    // Every step affects the later ones, so a sample of them shows any divergence.
    if (step >= 60 && step % 10 != 0 && !outcome.change_detected) continue;
    trace += fmt::format("{} {} {} {} {} {:.6f} {}\n", step, decision.user, decision.arm,
                         decision.model == kNoModel ? "-" : fmt::format("{}", decision.model),
                         decision.period, decision.mean, outcome.change_detected ? "yes" : "no");
  }
  return trace;
}

class GoldenTest : public testing::TestWithParam<std::string> {};

TEST_P(GoldenTest, RunEqualsItsTrace) {
  const std::string path =
      fmt::format("{}/tests/golden/{}.txt", CODBAND_SOURCE_DIR, SpecAsName(GetParam(), '-'));
  const std::string trace = Trace(GetParam());
  if (std::getenv("CODBAND_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(WriteFileDurably(path, trace).ok());
  }
  const auto golden = ReadFile(path);
  ASSERT_TRUE(golden.ok()) << golden.status().message()
                           << "\nEvery policy has a trace; scripts/update_golden.sh writes it.";
  EXPECT_EQ(golden.value(), trace);
}

INSTANTIATE_TEST_SUITE_P(EveryPolicy, GoldenTest, testing::ValuesIn(RegisteredSpecs()), NameOfSpec);

}  // namespace
}  // namespace codband
