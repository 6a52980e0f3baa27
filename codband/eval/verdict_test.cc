#include "codband/eval/verdict.h"

#include <gtest/gtest.h>

namespace codband::eval {
namespace {

Estimate MakeEstimate(Estimator estimator, std::optional<double> value) {
  Estimate estimate;
  estimate.estimator = estimator;
  estimate.value = value;
  return estimate;
}

TargetReport Target(const char* name, bool logged, double value, double half) {
  TargetReport target;
  target.name = name;
  target.on_policy = logged;
  target.effective_sample = 1000;
  target.mean_weight = 1;
  if (!logged) target.estimates.push_back(MakeEstimate(Estimator::kIps, 99));
  Estimate& estimate = target.estimates.emplace_back(
      MakeEstimate(logged ? Estimator::kMean : Estimator::kDr, value));
  estimate.bootstrap = BootstrapResult{.interval = {value - half, value + half}};
  return target;
}

std::string VerdictOf(std::vector<TargetReport> targets) {
  Evaluation evaluation;
  evaluation.targets = std::move(targets);
  return Verdict(evaluation, 0.95);
}

TEST(VerdictTest, NamesTheBestAndByHowMuch) {
  const std::string text =
      VerdictOf({Target("logged", true, 0.5, 0.01), Target("uniform", false, 0.25, 0.01),
                 Target("codband", false, 0.75, 0.05)});
  EXPECT_EQ(text,
            "codband would have earned 0.75 per decision (0.7 to 0.8), 50% more than what was "
            "logged, 0.5 per decision (0.49 to 0.51). The 95% intervals do not overlap.");
}

TEST(VerdictTest, SaysIfTheDifferenceMayBeChance) {
  const std::string text =
      VerdictOf({Target("logged", true, 0.5, 0.1), Target("linucb", false, 0.55, 0.1)});
  EXPECT_NE(text.find("may be chance"), std::string::npos) << text;
}

TEST(VerdictTest, SaysIfNothingIsBetter) {
  const std::string text =
      VerdictOf({Target("logged", true, 0.5, 0.1), Target("uniform", false, 0.2, 0.1)});
  EXPECT_TRUE(text.starts_with("No policy would have earned more than what was logged")) << text;
}

// With six of ten thousand choices a difference of 0.3 either way says nothing.
TEST(VerdictTest, DoesNotJudgeWhatTheLogHardlyShows) {
  for (const double value : {0.2, 0.9}) {
    TargetReport thin = Target("codband", false, value, 0.5);
    thin.effective_sample = 6;
    const std::string text =
        VerdictOf({Target("logged", true, 0.63, 0.01), thin, Target("uniform", false, 0.13, 0.13)});
    EXPECT_EQ(text,
              "No policy would have earned more than what was logged, 0.63 per decision (0.62 to "
              "0.64); the next is uniform with 0.13 per decision (0 to 0.26). The log says "
              "too little about codband: it contains too few of the choices that it would make.");
  }
  TargetReport thin = Target("codband", false, 0.9, 0.5);
  thin.effective_sample = 6;
  EXPECT_TRUE(VerdictOf({Target("logged", true, 0.5, 0.1), thin})
                  .starts_with("The log supports an estimate of no other policy"));
}

// A policy that the log agrees with now and then, and whose other choices it never made.
TEST(VerdictTest, DoesNotJudgeChoicesThatTheLogDoesNotHave) {
  TargetReport elsewhere = Target("codband", false, 0.81, 0.005);
  elsewhere.effective_sample = 71;
  elsewhere.mean_weight = 0.04;
  const std::string text = VerdictOf(
      {Target("logged", true, 0.65, 0.02), elsewhere, Target("uniform", false, 0.2, 0.1)});
  EXPECT_TRUE(text.starts_with("No policy would have earned more than what was logged")) << text;
  EXPECT_NE(text.find("says too little about codband"), std::string::npos) << text;
  elsewhere.mean_weight = 0.9;
  EXPECT_TRUE(VerdictOf({Target("logged", true, 0.65, 0.02), elsewhere})
                  .starts_with("codband would have earned 0.81"));
}

TEST(VerdictTest, NumbersAreAsExactAsTheirIntervals) {
  const std::string text = VerdictOf(
      {Target("logged", true, 0.630123, 0.009234), Target("uniform", false, 0.126600, 0.126354)});
  EXPECT_NE(text.find("0.63 per decision (0.621 to 0.639)"), std::string::npos) << text;
  EXPECT_NE(text.find("0.13 per decision (0 to 0.25)"), std::string::npos) << text;
}

TEST(VerdictTest, SaysIfTheLogSupportsNothing) {
  TargetReport unsupported;
  unsupported.name = "linucb";
  unsupported.estimates.push_back(MakeEstimate(Estimator::kDr, std::nullopt));
  EXPECT_TRUE(VerdictOf({Target("logged", true, 0.5, 0.1), unsupported})
                  .starts_with("The log supports an estimate of no other policy"));
}

TEST(VerdictTest, PointsAtWarnings) {
  TargetReport doubtful = Target("linucb", false, 0.9, 0.01);
  doubtful.warnings.emplace_back("few events");
  const std::string text = VerdictOf({Target("logged", true, 0.5, 0.1), doubtful});
  EXPECT_TRUE(text.ends_with("See the warnings.")) << text;
}

}  // namespace
}  // namespace codband::eval
