// Coverage of the intervals over many simulated logs. Seeds are fixed.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>

#include "codband/eval/evaluate.h"
#include "codband/eval/test_support.h"

namespace codband::eval {
namespace {

constexpr std::uint64_t kLogs = 400;

struct Tally {
  double error = 0;   // sum of estimate − truth
  double square = 0;  // of its square
  double bootstrap = 0;
  double guaranteed = 0;
};

std::map<Estimator, Tally> Simulate(const SmallBandit& bandit, std::size_t events, double truth) {
  std::map<Estimator, Tally> tallies;
  const auto holds = [&](const Interval& interval) {
    return interval.low <= truth && truth <= interval.high ? 1.0 : 0.0;
  };
  for (std::uint64_t seed = 1; seed <= kLogs; ++seed) {
    const LoggedDecisions log = bandit.Log(events, seed);
    std::vector<std::unique_ptr<Target>> targets;
    targets.push_back(MakeFirstTarget());
    const auto evaluation = Evaluate(log, targets, {.resamples = 400, .seed = seed}).value();
    for (const Estimate& estimate : evaluation.targets[0].estimates) {
      Tally& tally = tallies[estimate.estimator];
      const double error = *estimate.value - truth;
      tally.error += error / kLogs;
      tally.square += error * error / kLogs;
      tally.bootstrap += holds(estimate.bootstrap->interval) / kLogs;
      if (estimate.guaranteed) tally.guaranteed += holds(*estimate.guaranteed) / kLogs;
    }
  }
  return tallies;
}

class CoverageTest : public testing::TestWithParam<bool> {};

TEST_P(CoverageTest, EstimatesAreUnbiasedAndIntervalsHoldTheTruth) {
  const SmallBandit bandit{
      .p = {0.2, 0.3, 0.5}, .mean = {0.4, 0.1, 0.2}, .all_probabilities = GetParam()};
  const auto tallies = Simulate(bandit, 500, 0.4);
  for (const Estimator estimator :
       {Estimator::kReplay, Estimator::kIps, Estimator::kSnips, Estimator::kDr}) {
    const Tally& tally = tallies.at(estimator);
    // Four standard errors: a false alarm in 16,000.
    EXPECT_LT(std::abs(tally.error), 4 * std::sqrt(tally.square / kLogs))
        << EstimatorName(estimator);
    // 400 logs: below 0.90 with probability 0.0001 if the coverage were 95%.
    EXPECT_GE(tally.bootstrap, 0.90) << EstimatorName(estimator);
    EXPECT_LE(tally.bootstrap, 0.99) << EstimatorName(estimator);
  }
  for (const Estimator estimator : {Estimator::kIps, Estimator::kDr}) {
    EXPECT_GE(tallies.at(estimator).guaranteed, 0.95) << EstimatorName(estimator);
  }
  // Weights add variance; normalising and a reward model reduce it.
  EXPECT_LT(tallies.at(Estimator::kSnips).square, 0.8 * tallies.at(Estimator::kIps).square);
  EXPECT_LT(tallies.at(Estimator::kDr).square, 0.8 * tallies.at(Estimator::kIps).square);
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutAllProbabilities, CoverageTest, testing::Bool());

}  // namespace
}  // namespace codband::eval
