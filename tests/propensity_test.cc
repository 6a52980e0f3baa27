// What policies report about the probabilities of their choices is true. A policy is covered by
// being registered.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "codband/policy/streams.h"
#include "codband/policy/test_support.h"
#include "tests/policy_specs.h"
#include "tests/propensity_check.h"

namespace codband {
namespace {

constexpr std::size_t kDim = TestWorld::kDim;

std::string WrongPropensity(const Policy& policy, UserId user, std::span<const double> arms) {
  const ArmsView view{arms, kDim};
  for (const std::string& wrong : {WrongChoosePropensity(policy, user, view, 40),
                                   WrongRankProbability(policy, user, view, 41, 0),
                                   WrongRankProbability(policy, user, view, 42, 0.2)}) {
    if (!wrong.empty()) return wrong;
  }
  return {};
}

class PropensityConformanceTest : public testing::TestWithParam<std::string> {
 protected:
  void Learn(int steps) {
    for (int i = 0; i < steps; ++i) world_.Step(*policy_);
  }
  // The arms on offer, each `copies` times.
  std::vector<double> Offer(std::size_t count, std::size_t copies = 1) const {
    const std::vector<double> all = world_.Arms();
    std::vector<double> arms;
    for (std::size_t i = 0; i < copies; ++i) {
      arms.insert(arms.end(), all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count * kDim));
    }
    return arms;
  }
  std::string WrongFor(UserId user, std::span<const double> arms) const {
    return WrongPropensity(*policy_, user, arms);
  }

  TestWorld world_{43};
  std::unique_ptr<Policy> policy_ = MakeOrDie(GetParam(), world_.context());
};

TEST_P(PropensityConformanceTest, ReportsFrequenciesBeforeAnythingIsLearned) {
  EXPECT_EQ(WrongFor(0, Offer(TestWorld::kArms)), "");
}

TEST_P(PropensityConformanceTest, ReportsFrequenciesWhileLearning) {
  for (int i = 0; i < 3; ++i) {
    Learn(i == 0 ? 10 : 90);
    EXPECT_EQ(WrongFor(2, Offer(TestWorld::kArms)), "") << "after " << world_.step() << " steps";
  }
}

TEST_P(PropensityConformanceTest, ReportsFrequenciesForANewUserAmongKnownOnes) {
  Learn(120);
  EXPECT_EQ(WrongFor(1000, Offer(TestWorld::kArms)), "");
}

TEST_P(PropensityConformanceTest, ReportsFrequenciesForFewArms) {
  Learn(60);
  EXPECT_EQ(WrongFor(1, Offer(1)), "");
  EXPECT_EQ(WrongFor(1, Offer(2)), "");
}

TEST_P(PropensityConformanceTest, ReportsFrequenciesForEqualArms) {
  EXPECT_EQ(WrongFor(1, Offer(1, 4)), "") << "nothing learned";
  Learn(60);
  EXPECT_EQ(WrongFor(1, Offer(1, 4)), "");
  EXPECT_EQ(WrongFor(1, Offer(3, 2)), "");
}

INSTANTIATE_TEST_SUITE_P(EveryPolicy, PropensityConformanceTest,
                         testing::ValuesIn(RegisteredSpecs()), NameOfSpec);

// Draws an arm from fixed probabilities and reports what it is told to.
class FixedPolicy final : public Policy {
 public:
  using Report = Propensity (*)(std::span<const double> probabilities, std::uint32_t arm);
  FixedPolicy(std::vector<double> probabilities, Report report)
      : Policy(kDim), probabilities_(std::move(probabilities)), report_(report) {}

  bool Forget(UserId) override { return false; }
  std::size_t model_count() const override { return 0; }
  void DoSaveState(ByteWriter&) const override {}
  void DoLoadState(ByteReader&) override {}
  void DoGrow(std::size_t) override {}

 private:
  Propensity DoChoose(UserId, ArmsView arms, EventKey key, Decision& decision) const override {
    double left = StreamFor(key, DrawPurpose::kArm).Uniform();
    for (; decision.arm + 1 < arms.count(); ++decision.arm) {
      left -= probabilities_[decision.arm];
      if (left < 0) break;
    }
    return report_(probabilities_, decision.arm);
  }
  LearnOutcome DoLearn(const Decision&, double, EventKey, LearnMemo*) override { return {}; }

  std::vector<double> probabilities_;
  Report report_;
};

using Probabilities = std::span<const double>;

std::string WrongOf(std::vector<double> probabilities, FixedPolicy::Report report) {
  const std::vector<double> arms(probabilities.size() * kDim, 1.0);
  return WrongPropensity(FixedPolicy(std::move(probabilities), report), 0, arms);
}

const std::vector<double> kEighths(8, 0.125);
const std::vector<double> kEpsilonGreedy = {0.05, 0.05, 0.85, 0.05};  // epsilon = 0.2, greedy = 2
const std::vector<double> kUneven = {0.5, 0.1, 0.3, 0.1};

TEST(PropensityCheckTest, BelievesTrueReports) {
  EXPECT_EQ(WrongOf(kEighths, [](Probabilities, auto) { return Propensity::Uniform(); }), "");
  EXPECT_EQ(WrongOf(kUneven, [](Probabilities, auto) { return Propensity::Sampled(); }), "");
  EXPECT_EQ(WrongOf(kUneven, [](Probabilities p, auto arm) { return Propensity::Of(p[arm]); }), "");
  EXPECT_EQ(WrongOf({0, 0, 1, 0}, [](Probabilities, auto) { return Propensity::Certain(); }), "");
  EXPECT_EQ(WrongOf(kEpsilonGreedy,
                    [](Probabilities, auto) { return Propensity::EpsilonGreedy(0.2, 2); }),
            "");
}

TEST(PropensityCheckTest, CatchesAReportOfOneForAChoiceMadeWithOneEighth) {
  const auto liar = [](Probabilities, auto) { return Propensity::Certain(); };
  const FixedPolicy policy(kEighths, liar);
  const std::vector<double> arms(8 * kDim, 1.0);
  const std::string of_choose = WrongChoosePropensity(policy, 0, {arms, kDim}, 1);
  EXPECT_NE(of_choose.find("times of 3000, reported probability 1.0000"), std::string::npos)
      << of_choose;
  const std::string of_rank = WrongRankProbability(policy, 0, {arms, kDim}, 1, 0);
  EXPECT_NE(of_rank.find("at one key, 0.12"), std::string::npos) << of_rank;
}

TEST(PropensityCheckTest, CatchesSmallerLies) {
  EXPECT_NE(WrongOf(kEpsilonGreedy,
                    [](Probabilities, auto) { return Propensity::EpsilonGreedy(0.1, 2); }),
            "")
      << "explores twice as often as it says";
  EXPECT_NE(WrongOf(kEpsilonGreedy,
                    [](Probabilities, auto arm) { return Propensity::EpsilonGreedy(0.2, arm); }),
            "")
      << "takes the chosen arm for the greedy one";
  EXPECT_NE(WrongOf(kUneven, [](Probabilities, auto) { return Propensity::Uniform(); }), "");
  EXPECT_NE(WrongOf(kUneven, [](Probabilities p, auto) { return Propensity::Of(p[0]); }), "");
  // A single choice in a thousand refutes certainty.
  EXPECT_NE(WrongOf({0.001, 0.999}, [](Probabilities, auto) { return Propensity::Certain(); }), "");
}

// Chooses one of two arms with equal probability; at every other key reports `high` for the first
// and 1 - `high` for the second, at the others the reverse, as if estimated from 64 draws.
class FicklePolicy final : public Policy {
 public:
  explicit FicklePolicy(double high) : Policy(kDim), high_(high) {}
  bool Forget(UserId) override { return false; }
  std::size_t model_count() const override { return 0; }
  void DoSaveState(ByteWriter&) const override {}
  void DoLoadState(ByteReader&) override {}
  void DoGrow(std::size_t) override {}

 private:
  Propensity DoChoose(UserId, ArmsView arms, EventKey key, Decision& decision) const override {
    RandomStream random = StreamFor(key, DrawPurpose::kArm);
    decision.arm = static_cast<std::uint32_t>(random.Below(arms.count()));
    return Propensity::Sampled();
  }
  void DoRank(UserId user, ArmsView arms, EventKey key, Ranking& ranking) const override {
    static_cast<void>(DoChoose(user, arms, key, ranking.decision));
    const std::size_t first = key.event % 2;
    ranking.arms[first].probability = high_;
    ranking.arms[1 - first].probability = 1 - high_;
    ranking.draws = 64;
  }
  LearnOutcome DoLearn(const Decision&, double, EventKey, LearnMemo*) override { return {}; }

  double high_;
};

TEST(PropensityCheckTest, CatchesRankProbabilitiesThatAreRightOnAverageOnly) {
  const std::vector<double> arms(2 * kDim, 1.0);
  const auto wrong = [&](double high) {
    return WrongRankProbability(FicklePolicy(high), 0, {arms, kDim}, 1, 0);
  };
  EXPECT_EQ(wrong(0.5), "");
  EXPECT_NE(wrong(0.8).find("times of 400, reported probability 0.2000"), std::string::npos)
      << wrong(0.8);
  EXPECT_NE(wrong(0.99).find("0.5000 on average, from 64 draws"), std::string::npos) << wrong(0.99);
}

TEST(PropensityCheckTest, CoinDivergenceHasItsKnownValues) {
  EXPECT_EQ(CoinDivergence(0.3, 0.3), 0);
  EXPECT_NEAR(CoinDivergence(0.5, 0.25), 0.5 * std::log(4.0 / 3), 1e-15);
  EXPECT_EQ(CoinDivergence(1, 1), 0);
  EXPECT_EQ(CoinDivergence(0, 0), 0);
  EXPECT_TRUE(std::isinf(CoinDivergence(0.999, 1)));
  EXPECT_TRUE(std::isinf(CoinDivergence(0.001, 0)));
}

}  // namespace
}  // namespace codband
