#include "codband/eval/estimators.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "codband/eval/test_support.h"
#include "codband/policy/registry.h"

namespace codband::eval {
namespace {

constexpr std::array kAll = {Estimator::kReplay, Estimator::kIps, Estimator::kSnips, Estimator::kDr,
                             Estimator::kDm};

std::vector<ScoredEvent> Score(const LoggedDecisions& log, Target& target, double smallest = 0.01) {
  return ScoreEvents(log, target, {.range = {}, .smallest_propensity = smallest}).events;
}

std::unique_ptr<Target> Table(const LoggedDecisions& log, std::span<const double> chances) {
  ChanceTable table;
  for (std::size_t b = 0; b < chances.size(); ++b) {
    table[{"", "a" + std::to_string(b)}] = chances[b];
  }
  return MakeTableTarget("table", table, log).value();
}

// Calls visit(log, chance) with every log of `events` decisions that the bandit can make.
template <typename Visit>
void ForEachLog(const SmallBandit& bandit, std::size_t events, Visit visit) {
  const std::size_t actions = bandit.p.size();
  std::size_t logs = 1;
  for (std::size_t i = 0; i < events; ++i) logs *= actions;
  for (std::size_t code = 0; code < logs; ++code) {
    LoggedDecisions log = bandit.EmptyLog();
    double chance = 1;
    for (std::size_t i = 0, rest = code; i < events; ++i, rest /= actions) {
      bandit.Append(log, rest % actions, bandit.mean[rest % actions]);
      chance *= bandit.p[rest % actions];
    }
    visit(log, chance);
  }
}

// Two actions with known propensities: expectation and variance in closed form.
TEST(EstimatorsTest, IpsHasTheExactExpectationAndVariance) {
  const SmallBandit bandit{.p = {0.25, 0.75}, .mean = {1, 0.2}, .exact = true};
  const std::vector<double> chances = {0.6, 0.4};
  double mean = 0;
  double square = 0;
  ForEachLog(bandit, 3, [&](const LoggedDecisions& log, double chance) {
    const double estimate = *EstimateValue(Estimator::kIps, Score(log, *Table(log, chances)));
    mean += chance * estimate;
    square += chance * estimate * estimate;
  });
  const double value = 0.6 * 1 + 0.4 * 0.2;
  const double one = 0.6 * 0.6 / 0.25 * 1 + 0.4 * 0.4 / 0.75 * 0.04 - value * value;
  EXPECT_NEAR(mean, value, 1e-12);
  EXPECT_NEAR(square - mean * mean, one / 3, 1e-12);
}

// The same for a policy that learns, and the reward model that learns with it: the expectation,
// over all logs, of the estimate minus the mean value of the policy while it learned is 0. It would
// not be if the policy or the model had seen the reward of an event before the event was scored.
TEST(EstimatorsTest, IpsAndDrAreUnbiasedForPoliciesThatLearn) {
  const SmallBandit bandit{.p = {0.3, 0.6, 0.1}, .mean = {0.5, 0.1, 0.9}, .exact = true};
  for (const char* spec : {"linucb", "codband", "lints"}) {
    const auto make = [&] {
      return MakePolicyTarget(spec, MakePolicy(spec, {.dim = 3}).value(), {});
    };
    double ips = 0;
    double dr = 0;
    double spread = 0;
    ForEachLog(bandit, 5, [&](const LoggedDecisions& log, double chance) {
      const auto played = make();
      double value = 0;
      std::vector<double> chances(3);
      for (std::size_t i = 0; i < log.size(); ++i) {
        played->Chances(log, i, chances);
        played->Learn(log, i);
        value += bandit.Value(chances) / static_cast<double>(log.size());
      }
      const auto events = Score(log, *make());
      ips += chance * (*EstimateValue(Estimator::kIps, events) - value);
      dr += chance * (*EstimateValue(Estimator::kDr, events) - value);
      spread += chance * std::abs(*EstimateValue(Estimator::kDr, events) - value);
    });
    EXPECT_NEAR(ips, 0, 1e-12) << spec;
    EXPECT_NEAR(dr, 0, 1e-12) << spec;
    EXPECT_GT(spread, 0.05) << spec;
  }
}

TEST(EstimatorsTest, DrWithAModelOfZeroIsIps) {
  const SmallBandit bandit{.p = {0.2, 0.8}, .mean = {0.7, 0.3}};
  const LoggedDecisions log = bandit.Log(200, 1);
  auto events = Score(log, *MakeFirstTarget());
  EXPECT_NE(*EstimateValue(Estimator::kDr, events), *EstimateValue(Estimator::kIps, events));
  for (ScoredEvent& event : events) event.predicted = event.value = 0;
  EXPECT_EQ(*EstimateValue(Estimator::kDr, events), *EstimateValue(Estimator::kIps, events));
}

TEST(EstimatorsTest, SnipsShiftsWithTheRewardsAndIgnoresTheScaleOfWeights) {
  const SmallBandit bandit{.p = {0.2, 0.8}, .mean = {0.7, 0.3}};
  auto events = Score(bandit.Log(200, 1), *MakeFirstTarget());
  const double before = *EstimateValue(Estimator::kSnips, events);
  const double ips = *EstimateValue(Estimator::kIps, events);
  for (ScoredEvent& event : events) {
    event.reward += 10;
    event.weight *= 3;
  }
  EXPECT_NEAR(*EstimateValue(Estimator::kSnips, events), before + 10, 1e-12);
  EXPECT_GT(std::abs(*EstimateValue(Estimator::kIps, events) - (ips + 10)), 1);
}

TEST(EstimatorsTest, ReplayOfAUniformLogIsTheMeanOverMatches) {
  const SmallBandit bandit{.p = {0.25, 0.25, 0.25, 0.25}, .mean = {0.7, 0.3, 0.2, 0.1}};
  const LoggedDecisions log = bandit.Log(400, 3);
  double matched = 0;
  double sum = 0;
  for (std::size_t i = 0; i < log.size(); ++i) {
    if (log.event(i).chosen != 0) continue;
    matched += 1;
    sum += log.event(i).reward;
  }
  const auto events = Score(log, *MakeFirstTarget(), 0.25);
  EXPECT_DOUBLE_EQ(*EstimateValue(Estimator::kReplay, events), sum / matched);
  EXPECT_EQ(std::ranges::count_if(events, &ScoredEvent::accepted), matched);
  // For the policy that made the log, every event is accepted.
  const auto uniform = Score(log, *MakeUniformTarget(), 0.25);
  EXPECT_EQ(std::ranges::count_if(uniform, &ScoredEvent::accepted), 400);
}

TEST(EstimatorsTest, ReplayCorrectsASkewedLog) {
  const SmallBandit bandit{.p = {0.1, 0.9}, .mean = {0.9, 0.1}, .exact = true};
  const LoggedDecisions log = bandit.Log(20'000, 5);
  // Of accepted events half are of each action: 0.5 ± 4 · 0.4/√4000.
  EXPECT_NEAR(*EstimateValue(Estimator::kReplay, Score(log, *MakeUniformTarget())), 0.5, 0.026);
}

TEST(EstimatorsTest, LearningFromAcceptedEventsLeavesTheOthersOut) {
  const SmallBandit bandit{.p = {0.5, 0.5}, .mean = {0.2, 0.8}};
  const LoggedDecisions log = bandit.Log(300, 2);
  struct Counting final : Target {
    Counting() : Target("counting") {}
    void Chances(const LoggedDecisions&, std::size_t, std::span<double> out) override {
      out[0] = 1;
      out[1] = 0;
    }
    void Learn(const LoggedDecisions& l, std::size_t i) override {
      ones += l.event(i).chosen;
      ++n;
    }
    std::size_t ones = 0;
    std::size_t n = 0;
  };
  Counting all;
  ScoreEvents(log, all, {.range = {}, .smallest_propensity = 0.5});
  EXPECT_EQ(all.n, 300u);
  Counting accepted;
  const ScoredLog scored = ScoreEvents(
      log, accepted, {.range = {}, .smallest_propensity = 0.5, .learn = LearnFrom::kAccepted});
  EXPECT_EQ(accepted.ones, 0u);
  EXPECT_EQ(accepted.n,
            static_cast<std::size_t>(std::ranges::count_if(scored.events, &ScoredEvent::accepted)));
}

TEST(EstimatorsTest, NoWeightMeansNoValue) {
  const SmallBandit bandit{.p = {0, 1}, .mean = {0.7, 0.3}};
  const auto events = Score(bandit.Log(50, 1), *MakeFirstTarget());
  EXPECT_FALSE(EstimateValue(Estimator::kSnips, events).has_value());
  EXPECT_FALSE(EstimateValue(Estimator::kReplay, events).has_value());
  EXPECT_EQ(EstimateValue(Estimator::kIps, events), 0);
  EXPECT_EQ(EffectiveSampleSize(events), 0);
  EXPECT_EQ(events[0].unsupported, 1);
}

TEST(EstimatorsTest, EffectiveSampleSizeInClosedForm) {
  std::vector<ScoredEvent> events(4);
  events[0].weight = events[1].weight = 2;
  EXPECT_DOUBLE_EQ(EffectiveSampleSize(events), 2);
  events[2].weight = 1;
  EXPECT_DOUBLE_EQ(EffectiveSampleSize(events), 25.0 / 9);
}

TEST(EstimatorsTest, EveryEstimatorHasAName) {
  std::vector<std::string_view> names;
  for (const Estimator estimator : kAll) names.push_back(EstimatorName(estimator));
  EXPECT_EQ(names, (std::vector<std::string_view>{"replay", "ips", "snips", "dr", "dm"}));
  EXPECT_EQ(EstimatorName(Estimator::kMean), "mean");
}

}  // namespace
}  // namespace codband::eval
