// The numbers that every policy carries: features and rewards of up to 1e15 in any mixture, and
// nothing beyond. No such number fails a check, and whatever comes out is a number.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "codband/policy/test_support.h"
#include "tests/policy_specs.h"

namespace codband {
namespace {

constexpr std::size_t kColumns = 4;
constexpr std::size_t kChoices = 3;
constexpr double kEdge = kLargestNumber;

class NumericalContractTest : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Policy> Make() const {
    return MakeOrDie(GetParam(), {.dim = kColumns, .truth = &world_});
  }

  class Truth final : public GroundTruth {
   public:
    std::size_t model_count() const override { return 1; }
    std::span<const double> parameter(std::size_t) const override { return parameter_; }
    std::size_t model_of(UserId) const override { return 0; }
    double hazard() const override { return 0.01; }

   private:
    std::vector<double> parameter_ = {1, -1, 0.5, 0};
  };
  Truth world_;
};

// Numbers of all sizes; at the edge now and then.
double AnyNumber(RandomStream& random) {
  const double sign = random.Uniform() < 0.5 ? -1 : 1;
  switch (random.Below(8)) {
    case 0:
      return 0;
    case 1:
      return sign * kEdge;
    case 2:
      return sign * std::numeric_limits<double>::denorm_min();
    case 3:
      return sign * std::pow(10, -300 * random.Uniform());
    case 4:
      return sign * std::pow(10, 15 * random.Uniform());
    default:
      return random.Normal();
  }
}

void ExpectNumbers(const Policy& policy, UserId user, ArmsView arms, EventKey key) {
  Ranking ranking;
  policy.Rank(user, arms, key, 0.1, ranking);
  double sum = 0;
  for (const Ranking::Arm& arm : ranking.arms) {
    ASSERT_TRUE(std::isfinite(arm.mean) && std::isfinite(arm.width) && std::isfinite(arm.score));
    ASSERT_GE(arm.probability, 0);
    sum += arm.probability;
  }
  ASSERT_NEAR(sum, 1, 1e-9);
}

TEST_P(NumericalContractTest, AnyMixtureOfNumbersIsCarried) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const auto policy = Make();
    for (std::uint64_t i = 0; i < 400; ++i) {
      RandomStream random({seed, i}, 960);
      std::vector<double> arms(kColumns * kChoices);
      // Ten usual visits first; then one in eight is anything.
      const bool any = i >= 10 && random.Below(8) == 0;
      for (double& value : arms) value = any ? AnyNumber(random) : random.Normal();
      const double reward = any ? AnyNumber(random) : random.Normal();
      const UserId user = random.Below(5);
      const Decision decision = policy->Choose(user, {arms, kColumns}, {seed, i});
      ASSERT_TRUE(std::isfinite(decision.mean) && std::isfinite(decision.width)) << i;
      ASSERT_NO_THROW(policy->Learn(decision, reward, {seed, i})) << i;
      if (i % 7 == 0) ExpectNumbers(*policy, user, {arms, kColumns}, {seed, i});
      if (i % 97 == 96) policy->Forget(user);
      if (HasFatalFailure()) return;
    }
    ByteWriter out;
    policy->SaveState(out);
    const auto restored = Make();
    ByteReader in(out.bytes());
    restored->LoadState(in);
    in.ExpectEnd();
    ASSERT_TRUE(in.ok()) << in.status().ToString();
  }
}

TEST_P(NumericalContractTest, OneVisitAtTheEdgeAmongUsualOnesIsCarried) {
  for (const double size : {1e8, 1e9, 1e15}) {
    for (const std::uint64_t at : {0, 1, 10, 100}) {
      const auto policy = Make();
      for (std::uint64_t i = 0; i < 200; ++i) {
        RandomStream random({1, i}, 961);
        std::vector<double> arms(kColumns * kChoices);
        random.FillNormal(arms);
        if (i == at) std::ranges::fill(arms, size);
        const Decision decision = policy->Choose(i % 3, {arms, kColumns}, {1, i});
        ASSERT_NO_THROW(policy->Learn(decision, 1, {1, i})) << size << " at " << at << ", " << i;
        ExpectNumbers(*policy, i % 3, {arms, kColumns}, {1, i});
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Catalogues of two kinds, say: a third of all arms is so much larger that sums lose the others.
TEST_P(NumericalContractTest, VisitsOfTwoSizesAreCarried) {
  for (const double size : {1e4, 1e8, 1e12}) {
    for (const double largest_reward : {1.0, 1e4, 1e12}) {
      for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        const auto policy = Make();
        for (std::uint64_t i = 0; i < 200; ++i) {
          RandomStream random({seed, i}, 961);
          std::vector<double> arms(kColumns * kChoices);
          const double scale = random.Below(3) == 0 ? size : 1;
          for (double& value : arms) value = scale * random.Normal();
          const double rewards[] = {0, 1, largest_reward};
          const Decision decision = policy->Choose(random.Below(3), {arms, kColumns}, {seed, i});
          policy->Learn(decision, rewards[random.Below(3)], {seed, i});
          if (i % 50 == 49) ExpectNumbers(*policy, 1, {arms, kColumns}, {seed, i});
        }
      }
    }
  }
}

TEST_P(NumericalContractTest, OneStepPastTheEdgeIsRefusedAndChangesNothing) {
  const auto policy = Make();
  std::vector<double> arms(kColumns * kChoices, 1.0);
  Decision decision = policy->Choose(1, {arms, kColumns}, {1, 1});
  policy->Learn(decision, 0.5, {1, 1});
  const std::string before = Saved(*policy);
  for (const double past :
       {std::nextafter(kEdge, 2 * kEdge), -std::nextafter(kEdge, 2 * kEdge),
        std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW(policy->Learn(decision, past, {1, 2}), std::invalid_argument);
    Decision far = decision;
    far.features[2] = past;
    EXPECT_THROW(policy->Learn(far, 1, {1, 2}), std::invalid_argument);
    arms[5] = past;
    EXPECT_THROW(policy->Choose(1, {arms, kColumns}, {1, 2}), std::invalid_argument);
    arms[5] = 1;
  }
  EXPECT_EQ(Saved(*policy), before);
}

INSTANTIATE_TEST_SUITE_P(EveryPolicy, NumericalContractTest, testing::ValuesIn(RegisteredSpecs()),
                         NameOfSpec);

}  // namespace
}  // namespace codband
