#include "codband/eval/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "codband/eval/test_support.h"
#include "codband/policy/registry.h"

namespace codband::eval {
namespace {

std::vector<std::unique_ptr<Target>> Targets() {
  std::vector<std::unique_ptr<Target>> targets;
  targets.push_back(MakeLoggedTarget());
  targets.push_back(MakeFirstTarget());
  targets.push_back(MakeUniformTarget());
  return targets;
}

bool Warns(const std::vector<std::string>& warnings, std::string_view text) {
  for (const std::string& warning : warnings) {
    if (warning.find(text) != std::string::npos) return true;
  }
  return false;
}

TEST(EvaluateTest, EveryIntervalHoldsItsEstimateAndTheTruth) {
  const SmallBandit bandit{.p = {0.2, 0.3, 0.5}, .mean = {0.6, 0.3, 0.2}};
  const LoggedDecisions log = bandit.Log(5000, 1);
  const Evaluation evaluation = Evaluate(log, Targets(), {.resamples = 300}).value();
  EXPECT_EQ(evaluation.events, 5000u);
  EXPECT_TRUE(evaluation.all_probabilities);
  EXPECT_EQ(evaluation.smallest_propensity, 0.2);
  const std::array truths = {0.31, 0.6, 1.1 / 3};
  for (std::size_t t = 0; t < 3; ++t) {
    const TargetReport& report = evaluation.targets[t];
    EXPECT_EQ(report.estimates.size(), t == 0 ? 1u : 5u);
    EXPECT_TRUE(report.warnings.empty()) << report.warnings[0];
    for (const Estimate& estimate : report.estimates) {
      const std::string name = report.name + " " + std::string(EstimatorName(estimate.estimator));
      ASSERT_TRUE(estimate.value && estimate.bootstrap) << name;
      EXPECT_NEAR(*estimate.value, truths[t], 0.06) << name;
      EXPECT_LE(estimate.bootstrap->interval.low, *estimate.value) << name;
      EXPECT_GE(estimate.bootstrap->interval.high, *estimate.value) << name;
      if (!estimate.guaranteed) continue;
      EXPECT_LT(estimate.guaranteed->low, truths[t]) << name;
      EXPECT_GT(estimate.guaranteed->high, truths[t]) << name;
    }
  }
  EXPECT_NEAR(evaluation.targets[1].largest_weight, 5, 1e-12);
  EXPECT_NEAR(evaluation.targets[1].weight_bound, 5, 1e-12);
  EXPECT_EQ(evaluation.targets[0].effective_sample, 5000);
}

TEST(EvaluateTest, TargetsDoNotInfluenceEachOther) {
  const SmallBandit bandit{.p = {0.4, 0.6}, .mean = {0.6, 0.3}};
  const LoggedDecisions log = bandit.Log(200, 1);
  const auto targets = [&](bool more) {
    std::vector<std::unique_ptr<Target>> out;
    if (more) out.push_back(MakeUniformTarget());
    out.push_back(MakePolicyTarget("codband", MakePolicy("codband", {.dim = 2}).value(), {}));
    return out;
  };
  const EvaluationOptions options{.resamples = 50};
  const TargetReport alone = Evaluate(log, targets(false), options).value().targets[0];
  EvaluationOptions parallel = options;
  parallel.threads = 3;
  const TargetReport beside = Evaluate(log, targets(true), parallel).value().targets[1];
  for (std::size_t e = 0; e < alone.estimates.size(); ++e) {
    EXPECT_EQ(alone.estimates[e].value, beside.estimates[e].value);
    EXPECT_EQ(alone.estimates[e].bootstrap->interval.low,
              beside.estimates[e].bootstrap->interval.low);
  }
}

TEST(EvaluateTest, WarnsInPlainWords) {
  const auto report = [](const SmallBandit& bandit, std::size_t events) {
    return Evaluate(bandit.Log(events, 1), Targets(), {.resamples = 20}).value();
  };
  // Few effective events.
  const Evaluation thin = report({.p = {0.01, 0.99}, .mean = {0.5, 0.5}}, 1000);
  EXPECT_TRUE(Warns(thin.targets[1].warnings, "rewarded event"));
  EXPECT_TRUE(Warns(thin.targets[1].warnings, "thin support"));
  EXPECT_TRUE(Warns(thin.targets[1].warnings, "replay rests on"));
  EXPECT_TRUE(Warns(thin.targets[1].warnings, "one event carries"));
  EXPECT_TRUE(thin.targets[0].warnings.empty());
  // A target outside the log's choices.
  const Evaluation outside = report({.p = {0, 0.5, 0.5}, .mean = {0.5, 0.5, 0.5}}, 1000);
  EXPECT_TRUE(Warns(outside.targets[1].warnings, "no support"));
  EXPECT_TRUE(Warns(outside.targets[2].warnings, "33.3% of this policy's choices"));
  EXPECT_NEAR(*outside.targets[2].unsupported, 1.0 / 3, 1e-12);
  // The same where the log does not say so: the weights do.
  const Evaluation silent =
      report({.p = {0, 0.5, 0.5}, .mean = {0.5, 0.5, 0.5}, .all_probabilities = false}, 1000);
  EXPECT_TRUE(Warns(silent.targets[2].warnings, "the weights average 0.667"));
  EXPECT_FALSE(silent.targets[2].unsupported.has_value());
  // Many events, few clicks.
  const Evaluation rare = report({.p = {0.5, 0.5}, .mean = {0.002, 0.002}}, 1000);
  EXPECT_TRUE(Warns(rare.targets[1].warnings, "rewarded event"));
  EXPECT_TRUE(Warns(rare.targets[0].warnings, "rewarded event"));
  // A log that never explores.
  EXPECT_TRUE(Warns(report({.p = {1, 0}, .mean = {0.5, 0.5}}, 100).warnings, "propensity 1"));
}

TEST(EvaluateTest, SaysWhatIsWrongWithTheOptions) {
  const SmallBandit bandit{.p = {0.4, 0.6}, .mean = {0.6, 0.3}};
  const LoggedDecisions log = bandit.Log(100, 1);
  const auto error = [&](const EvaluationOptions& options) {
    return Evaluate(log, Targets(), options).status().message();
  };
  EXPECT_EQ(error({.confidence = 1}), "confidence = 1, expected a number from 0.5 to 0.9999");
  EXPECT_EQ(error({.ridge = 0}), "ridge = 0, expected a number above 0 and at most 1e9");
  EXPECT_NE(error({.reward_high = 0.5}).find("reward-max = 0.5, expected at least 1"),
            std::string::npos);
  EXPECT_NE(error({.reward_low = 0.5}).find("reward-min = 0.5, expected at most 0"),
            std::string::npos);
  EXPECT_NE(error({.smallest_propensity = 0.5}).find("min-propensity = 0.5"), std::string::npos);
  EXPECT_EQ(Evaluate(bandit.EmptyLog(), Targets(), {}).status().message(),
            "the log has no decisions");
}

}  // namespace
}  // namespace codband::eval
