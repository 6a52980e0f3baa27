#include "codband/eval/target.h"

#include <gtest/gtest.h>

#include <cmath>

#include "codband/eval/test_support.h"
#include "codband/policy/registry.h"

namespace codband::eval {
namespace {

std::vector<double> Chances(Target& target, const LoggedDecisions& log, std::size_t i) {
  std::vector<double> out(log.candidate_count(i));
  target.Chances(log, i, out);
  return out;
}

TEST(TargetTest, ConstantTargets) {
  const SmallBandit bandit{.p = {0.25, 0.75}, .mean = {0.5, 0.5}};
  const LoggedDecisions log = bandit.Log(1, 1);
  EXPECT_EQ(Chances(*MakeFirstTarget(), log, 0), (std::vector<double>{1, 0}));
  EXPECT_EQ(Chances(*MakeUniformTarget(), log, 0), (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(Chances(*MakeLoggedTarget(), log, 0), (std::vector<double>{0.25, 0.75}));
  EXPECT_TRUE(MakeLoggedTarget()->on_policy());
  EXPECT_FALSE(MakeUniformTarget()->on_policy());
  const SmallBandit silent{.p = {0.25, 0.75}, .mean = {0.5, 0.5}, .all_probabilities = false};
  EXPECT_TRUE(std::isnan(Chances(*MakeLoggedTarget(), silent.Log(1, 1), 0)[0]));
}

TEST(TargetTest, TableGoesByGroupAndSharesAmongCandidates) {
  LoggedDecisions log(1);
  for (const char* name : {"x", "y", "z"}) log.action_names.Add(name);
  for (const char* name : {"left", "right"}) log.groups.Add(name);
  const std::vector<std::uint32_t> actions = {2, 0};
  const std::vector<double> features = {0, 0};
  for (const std::uint32_t group : {0, 1}) {
    ASSERT_TRUE(log.Add({.group = group, .propensity = 0.5}, {actions, features}).ok());
  }
  const ChanceTable table = {
      {{"", "x"}, 0.1}, {{"", "z"}, 0.3}, {{"right", "x"}, 0.5}, {{"right", "y"}, 0.5}};
  const auto target = MakeTableTarget("t", table, log).value();
  const std::vector<double> left = Chances(*target, log, 0);
  EXPECT_DOUBLE_EQ(left[0], 0.75);
  EXPECT_DOUBLE_EQ(left[1], 0.25);
  EXPECT_EQ(Chances(*target, log, 1), (std::vector<double>{0, 1}));

  const auto bad = MakeTableTarget("t", {{{"", "x"}, 1}, {{"right", "y"}, 1}}, log);
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.status().message(),
            "no candidate of event 2 has a probability, expected one above 0");
}

TEST(TargetTest, PolicyLearnsFromTheLogsChoiceNotFromItsOwn) {
  // The log mostly chooses action 2, which alone brings something; the policy must come to prefer
  // it.
  const SmallBandit bandit{.p = {0.2, 0.2, 0.6}, .mean = {0, 0, 1}};
  const LoggedDecisions log = bandit.Log(50, 1);
  for (const char* spec : {"linucb:alpha=0.1", "codband", "club"}) {
    const auto target =
        MakePolicyTarget(spec, MakePolicy(spec, {.dim = 3}).value(), {.seed = 1, .floor = 0.3});
    for (std::size_t i = 0; i + 1 < log.size(); ++i) {
      const std::vector<double> chances = Chances(*target, log, i);
      EXPECT_NEAR(chances[0] + chances[1] + chances[2], 1, 1e-9);
      EXPECT_GE(chances[0], 0.1 - 1e-9) << spec;  // the floor
      target->Learn(log, i);
    }
    EXPECT_GT(Chances(*target, log, log.size() - 1)[2], 0.6) << spec;
  }
}

}  // namespace
}  // namespace codband::eval
