// Of clicks the length of a feature vector counts by its square root.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "codband/base/bytes.h"
#include "codband/linalg/kernels.h"
#include "codband/linalg/test_support.h"
#include "codband/policy/codband/codband.h"
#include "codband/policy/codband/hyper_parameters.h"
#include "codband/policy/registry.h"

namespace codband {
namespace {

constexpr std::size_t kLengthsDim = 6;
constexpr std::size_t kLengthsArms = 10;
constexpr UserId kLengthsUsers = 5;

std::unique_ptr<Policy> MakeForLengths(const std::string& spec) {
  return std::move(MakePolicy(spec, {.dim = kLengthsDim})).value();
}

// Items whose vectors differ tenfold in length, which says nothing of them.
std::vector<double> DrawLongAndShort(RandomStream& random) {
  std::vector<double> arms;
  for (std::size_t i = 0; i < kLengthsArms; ++i) {
    std::vector<double> arm = linalg::RandomVector(random, kLengthsDim);
    const double length = std::exp(1.2 * random.Normal()) / std::sqrt(linalg::Dot(arm, arm));
    for (const double value : arm) arms.push_back(length * value);
  }
  return arms;
}

// How far the arm is in the direction that all users like.
double CosineOf(std::span<const double> arm) { return arm[0] / std::sqrt(linalg::Dot(arm, arm)); }

enum class LengthsReward { kOfClick, kOfNumber };

// Visits of a few users in turn, from `first` on. Returns the sum of rewards.
double PlayVisits(Policy& policy, LengthsReward kind, std::uint64_t seed, std::uint64_t first,
                  std::uint64_t count) {
  double sum = 0;
  for (std::uint64_t event = first; event < first + count; ++event) {
    RandomStream random({seed, event}, 5);
    const std::vector<double> arms = DrawLongAndShort(random);
    const EventKey key{seed, event};
    const Decision decision = policy.Choose(event % kLengthsUsers, {arms, kLengthsDim}, key);
    const double cosine = CosineOf(ArmsView{arms, kLengthsDim}.arm(decision.arm));
    const double reward = kind == LengthsReward::kOfNumber ? 3 * cosine + 0.1 * random.Normal()
                          : random.Uniform() < std::max(0.0, 0.5 * cosine) ? 1.0
                                                                           : 0.0;
    policy.Learn(decision, reward, key);
    sum += reward;
  }
  return sum;
}

TEST(LengthsTest, WhereDirectionsDecideMoreIsClicked) {
  double damped = 0;
  double given = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    damped += PlayVisits(*MakeForLengths("codband"), LengthsReward::kOfClick, seed, 0, 600);
    given +=
        PlayVisits(*MakeForLengths("codband:lengths=given"), LengthsReward::kOfClick, seed, 0, 600);
  }
  EXPECT_GT(damped, 1.05 * given);
}

TEST(LengthsTest, TheFactorIsThatOfTheLengthInTheUnitsOfTheModels) {
  const HyperParameters hyper(kLengthsDim, {});
  EXPECT_TRUE(hyper.DampsLengths());
  EXPECT_DOUBLE_EQ(hyper.LengthFactor(std::vector<double>{0, 16, 0, 0, 0, 0}), 0.25);
  EXPECT_DOUBLE_EQ(hyper.LengthFactor(std::vector<double>{0, 0, 0.6, 0, 0.8, 0}), 1);
  EXPECT_EQ(hyper.LengthFactor(std::vector<double>(kLengthsDim)), 1);
  EXPECT_FALSE(HyperParameters(kLengthsDim, {.lengths = "given"}).DampsLengths());
  EXPECT_FALSE(HyperParameters(kLengthsDim, {.hyper = "fixed"}).DampsLengths());
}

TEST(LengthsTest, OfNamedFeaturesTheyAreAsGiven) {
  HyperParameters hyper(kLengthsDim, {});
  hyper.SetGroups(std::vector<std::uint32_t>{0, 0, 1});
  EXPECT_FALSE(hyper.DampsLengths());
}

TEST(LengthsTest, OtherRewardsThanClicksAreLinearInTheFeatures) {
  const auto damped = MakeForLengths("codband");
  const auto given = MakeForLengths("codband:lengths=given");
  PlayVisits(*damped, LengthsReward::kOfNumber, 3, 0, 1);  // its choice was made before any reward
  PlayVisits(*given, LengthsReward::kOfNumber, 3, 0, 1);
  RandomStream random({3, 1000}, 5);
  const std::vector<double> arms = DrawLongAndShort(random);
  EXPECT_EQ(damped->FeatureWeight(std::span(arms).first(kLengthsDim)), 1);
  EXPECT_EQ(PlayVisits(*damped, LengthsReward::kOfNumber, 3, 1, 300),
            PlayVisits(*given, LengthsReward::kOfNumber, 3, 1, 300));
}

TEST(LengthsTest, MeansAreThoseOfWeighedFeatures) {
  const auto policy = MakeForLengths("codband");
  PlayVisits(*policy, LengthsReward::kOfClick, 4, 0, 200);
  RandomStream random({4, 1000}, 5);
  const std::vector<double> arms = DrawLongAndShort(random);
  const ArmsView view{arms, kLengthsDim};
  Ranking ranking;
  policy->Rank(2, view, {4, 1000}, 0, ranking);
  for (std::size_t i = 0; i < kLengthsArms; ++i) {
    const double weight = policy->FeatureWeight(view.arm(i));
    EXPECT_NEAR(weight, std::pow(linalg::Dot(view.arm(i), view.arm(i)), -0.25), 1e-12);
    EXPECT_NEAR(ranking.arms[i].mean,
                weight * linalg::Dot(view.arm(i), ranking.theta) + ranking.intercept, 1e-12);
  }
}

TEST(LengthsTest, WhatWasLearnedOfLengthsAsTheyAreGoesOnWithThem) {
  const auto before = MakeForLengths("codband:lengths=given");
  PlayVisits(*before, LengthsReward::kOfClick, 5, 0, 200);
  ByteWriter out;
  before->SaveState(out);
  // States from before end where it is said whether lengths are damped.
  const std::string_view old(out.bytes().data(), out.bytes().size() - 1);
  const auto after = MakeForLengths("codband");
  ByteReader in(old);
  after->LoadState(in);
  in.ExpectEnd();
  ASSERT_TRUE(in.ok()) << in.status().ToString();
  EXPECT_EQ(PlayVisits(*after, LengthsReward::kOfClick, 5, 200, 300),
            PlayVisits(*before, LengthsReward::kOfClick, 5, 200, 300));
  ByteWriter again;
  after->SaveState(again);
  const auto restored = MakeForLengths("codband");
  ByteReader once_more(again.bytes());
  restored->LoadState(once_more);
  EXPECT_EQ(restored->FeatureWeight(std::vector<double>(kLengthsDim, 2.0)), 1);
}

TEST(LengthsTest, WhoIsForgottenTakesTheirShortenedVectorsAlong) {
  const auto policy = MakeForLengths("codband");
  PlayVisits(*policy, LengthsReward::kOfClick, 6, 0, 300);
  for (UserId user = 0; user < kLengthsUsers; ++user) EXPECT_TRUE(policy->Forget(user));
  EXPECT_EQ(policy->model_count(), 0U);
  const auto fresh = MakeForLengths("codband");
  EXPECT_EQ(PlayVisits(*policy, LengthsReward::kOfClick, 7, 0, 100),
            PlayVisits(*fresh, LengthsReward::kOfClick, 7, 0, 100));
}

}  // namespace
}  // namespace codband
