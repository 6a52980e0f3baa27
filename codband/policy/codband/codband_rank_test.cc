#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "codband/policy/codband/test_support.h"
#include "codband/policy/test_support.h"

namespace codband {
namespace {

TEST(CoDBandRankTest, BetterArmOfAFixedPairIsFoundWhereGreedWouldNot) {
  // The first arm brings 1, the second 2; both are expected to bring 0, and the first of equals is
  // taken.
  const auto second_of_last_100 = [](CoDBandOptions options) {
    options.hyper = "fixed";
    options.intercept = false;
    options.lambda = 1;
    const auto policy = MakeCoDBand(kTwoFeatures, options);
    int taken = 0;
    for (std::uint64_t event = 0; event < 400; ++event) {
      const Decision decision = policy->Choose(0, kUnitView, {1, event});
      const double noise = 0.1 * RandomStream({1, event}, 507).Normal();
      policy->Learn(decision, (decision.arm == 0 ? 1 : 2) + noise, {1, event});
      if (event >= 300) taken += static_cast<int>(decision.arm);
    }
    return taken;
  };
  EXPECT_EQ(second_of_last_100({.explore = "thompson", .v = 0}), 0);
  EXPECT_EQ(second_of_last_100({.explore = "adaptive"}), 100);
  EXPECT_EQ(second_of_last_100({.explore = "thompson"}), 100);
}

TEST(CoDBandRankTest, DefaultFindsTheBetterArmOfAFixedPair) {
  int taken = 0;
  const auto policy = MakeOrDie("codband", {.dim = kTwoFeatures});
  for (std::uint64_t event = 0; event < 400; ++event) {
    const Decision decision = policy->Choose(0, kUnitView, {1, event});
    const double noise = 0.1 * RandomStream({1, event}, 507).Normal();
    policy->Learn(decision, (decision.arm == 0 ? 1 : 2) + noise, {1, event});
    if (event >= 300) taken += static_cast<int>(decision.arm);
  }
  EXPECT_GE(taken, 95);
}

// The chances by integration against repeated draws of Choose, for a policy that always draws.
TEST(CoDBandRankTest, ProbabilitiesAreThoseOfThompsonSampling) {
  constexpr int kDraws = 20000;
  const std::vector<double> arms = {1, 0, 0, 1, 0.7, 0.7, -1, 0.5};
  const ArmsView view{arms, kTwoFeatures};
  const auto policy = MakeCoDBand(kTwoFeatures, {.explore = "thompson"});
  std::uint64_t event = 0;
  for (int round = 0; round < 4; ++round) {
    for (UserId user = 0; user < 6; ++user) Teach(*policy, user, user % 2 == 0 ? 2 : -2, event++);
  }
  for (const UserId user : {UserId{0}, UserId{1}, UserId{77}}) {  // the last one is new
    std::vector<double> chosen(4);
    for (std::uint64_t i = 0; i < kDraws; ++i) {
      chosen[policy->Choose(user, view, {3, i}).arm] += 1.0 / kDraws;
    }
    Ranking ranking;
    policy->Rank(user, view, {3, 0}, 0, ranking);
    EXPECT_EQ(ranking.draws, 128U);
    // 128 points know a chance to about 0.04; models get their share in steps of 1/64.
    for (std::size_t arm = 0; arm < 4; ++arm) {
      EXPECT_NEAR(ranking.arms[arm].probability, chosen[arm], 0.08) << user << " " << arm;
    }
  }
}

// More arms than are looked at together: the others are copies of the first, which wins a tie.
TEST(CoDBandRankTest, ProbabilitiesDoNotDependOnHowManyOthersThereAre) {
  const std::vector<double> four = {1, 0, 0, 1, 0.7, 0.7, -1, 0.5};
  constexpr std::array<std::size_t, 4> kPlaces = {0, 63, 64, 199};
  std::vector<double> many;
  for (std::size_t i = 0; i < 200; ++i) many.insert(many.end(), {four[0], four[1]});
  for (std::size_t arm = 0; arm < 4; ++arm) {
    for (std::size_t j = 0; j < kTwoFeatures; ++j)
      many[kPlaces[arm] * kTwoFeatures + j] = four[arm * kTwoFeatures + j];
  }
  const auto policy = MakeCoDBand(kTwoFeatures, {.explore = "thompson"});
  std::uint64_t event = 0;
  for (int round = 0; round < 30; ++round) {
    for (UserId user = 0; user < 6; ++user) {
      Decision decision = policy->Choose(user, kUnitView, {1, event});
      decision.features = round % 2 == 0 ? std::vector<double>{1, 0} : std::vector<double>{0, 1};
      const double reward = round % 2 == 0 ? 2 : user % 2 == 0 ? 1 : 2.5;
      policy->Learn(decision, reward + RandomStream({1, event}, 511).Normal(), {1, event});
      ++event;
    }
  }
  Ranking among_four;
  Ranking among_many;
  for (const UserId user : {UserId{0}, UserId{1}, UserId{77}}) {
    policy->Rank(user, {four, kTwoFeatures}, {3, user}, 0, among_four);
    policy->Rank(user, {many, kTwoFeatures}, {3, user}, 0, among_many);
    double sum = 0;
    for (std::size_t arm = 0; arm < 4; ++arm) {
      EXPECT_DOUBLE_EQ(among_many.arms[kPlaces[arm]].probability, among_four.arms[arm].probability);
      sum += among_four.arms[arm].probability;
    }
    EXPECT_NEAR(sum, 1, 1e-12);
    EXPECT_EQ(among_many.decision.arm, kPlaces[among_four.decision.arm]);
  }
}

TEST(CoDBandRankTest, RankingAgreesWithChoosingWhereNothingIsDrawn) {
  const auto policy = MakeCoDBand(kTwoFeatures, {});
  std::uint64_t event = 0;
  for (int round = 0; round < 40; ++round) {
    for (UserId user = 0; user < 6; ++user) {
      Decision decision = policy->Choose(user, kUnitView, {1, event});
      decision.features = round % 2 == 0 ? std::vector<double>{1, 0} : std::vector<double>{0, 1};
      policy->Learn(decision, user % 2 == 0 ? decision.features[0] : decision.features[1],
                    {1, event++});
    }
  }
  Ranking ranking;
  for (UserId user = 0; user < 6; ++user) {
    const Decision decision = policy->Choose(user, kUnitView, {1, 5});
    policy->Rank(user, kUnitView, {1, 5}, 0, ranking);
    EXPECT_EQ(ranking.draws, 0U);
    EXPECT_EQ(ranking.decision.arm, decision.arm);
    EXPECT_EQ(ranking.decision.model, decision.model);
    EXPECT_EQ(ranking.arms[decision.arm].probability, 1);
    EXPECT_EQ(ranking.arms[1 - decision.arm].probability, 0);
    EXPECT_NEAR(ranking.decision.mean, decision.mean, 1e-12);
    EXPECT_NEAR(ranking.decision.width, decision.width, 1e-12);
  }
}

TEST(CoDBandRankTest, EqualArmsShareTheirChance) {
  const auto policy = MakeCoDBand(kTwoFeatures, {});
  const std::vector<double> arms = {1, 0, 0, 1, 1, 1};
  Ranking ranking;
  std::vector<int> chosen(3);
  for (std::uint64_t i = 0; i < 300; ++i) {
    policy->Rank(1, {arms, kTwoFeatures}, {1, i}, 0, ranking);  // nothing is known: all means are 0
    EXPECT_DOUBLE_EQ(ranking.arms[0].probability, 1.0 / 3);
    ++chosen[ranking.decision.arm];
  }
  for (const int count : chosen) EXPECT_NEAR(count, 100, 41);  // five standard deviations
}

}  // namespace
}  // namespace codband
