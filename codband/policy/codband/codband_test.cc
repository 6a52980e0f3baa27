#include "codband/policy/codband/codband.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numbers>
#include <string>
#include <string_view>
#include <vector>

#include "codband/policy/codband/test_support.h"
#include "codband/policy/state_file.h"
#include "codband/policy/test_support.h"

namespace codband {
namespace {

TEST(CoDBandTest, UsersWhoThinkAlikeShareAModelAndOthersDoNot) {
  const auto policy = MakeCoDBand(kTwoFeatures, {});
  std::uint64_t event = 0;
  for (int round = 0; round < 40; ++round) {
    for (UserId user = 0; user < 6; ++user) Teach(*policy, user, user % 2 == 0 ? 2 : -2, event++);
  }
  std::map<UserId, ModelId> model;
  for (UserId user = 0; user < 6; ++user) model[user] = policy->Choose(user, kUnitView, {}).model;
  EXPECT_EQ(model[0], model[2]);
  EXPECT_EQ(model[0], model[4]);
  EXPECT_EQ(model[1], model[3]);
  EXPECT_EQ(model[1], model[5]);
  EXPECT_NE(model[0], model[1]);
  EXPECT_EQ(policy->model_count(), 2U);
}

TEST(CoDBandTest, UserWhoChangesIsNoticedAndMovesToTheModelThatFitsNow) {
  const auto policy = MakeCoDBand(kTwoFeatures, {});
  std::uint64_t event = 0;
  for (int round = 0; round < 40; ++round) {
    for (UserId user = 0; user < 6; ++user) Teach(*policy, user, user % 2 == 0 ? 2 : -2, event++);
  }
  const ModelId other = policy->Choose(1, kUnitView, {}).model;
  int detected_after = -1;
  for (int step = 0; step < 20; ++step) {
    if (Teach(*policy, 0, -2, event++).change_detected && detected_after < 0) detected_after = step;
  }
  EXPECT_GE(detected_after, 0);
  EXPECT_LE(detected_after, 6);  // five bad observations of twenty
  EXPECT_EQ(policy->Choose(0, kUnitView, {}).model, other);
  EXPECT_EQ(policy->Choose(0, kUnitView, {}).period, 1U);
  EXPECT_NEAR(policy->Choose(0, kUnitView, {1, 999}).mean,
              policy->Choose(1, kUnitView, {1, 999}).mean, 0.5);
}

// Users who came three times, before the others, and whom nobody resamples: what the others have
// taught the models since tells where they belong, and so what they like of what they never saw.
TEST(CoDBandTest, WhereAYoungUserBelongsIsJudgedByTheModelsAsTheyAreNow) {
  constexpr std::size_t kDim = 8;
  constexpr std::size_t kYoungUsers = 20;
  const auto policy = MakeCoDBand(kDim, {.resample = 0});
  RandomStream random({3, 1}, 4);
  std::vector<double> parameters(2 * kDim);
  random.FillNormal(parameters);
  const auto parameter_of = [&](UserId user) {
    return std::span(parameters).subspan(user % 2 * kDim, kDim);
  };
  std::uint64_t event = 0;
  const auto visit = [&](UserId user) {
    std::vector<double> arm(kDim);
    random.FillNormal(arm);
    const Decision decision = policy->Choose(user, {arm, kDim}, {1, event});
    const double expected = linalg::Dot(arm, parameter_of(user));
    policy->Learn(decision, expected + 0.1 * random.Normal(), {1, event++});
  };
  for (int round = 0; round < 3; ++round) {
    for (UserId user = 0; user < kYoungUsers; ++user) visit(user);
  }
  for (int round = 0; round < 60; ++round) {
    for (UserId user = 100; user < 104; ++user) visit(user);
  }
  std::vector<double> arms(kDim * kDim, 0.0);
  for (std::size_t j = 0; j < kDim; ++j) arms[j * kDim + j] = 1;
  double error = 0;
  double size = 0;
  for (UserId user = 0; user < kYoungUsers; ++user) {
    for (std::size_t j = 0; j < kDim; ++j) {
      const ArmsView one{std::span(arms).subspan(j * kDim, kDim), kDim};
      const double off = policy->Choose(user, one, {}).mean - parameter_of(user)[j];
      error += off * off;
      size += parameter_of(user)[j] * parameter_of(user)[j];
    }
  }
  EXPECT_LT(error, 0.02 * size);
}

// Of one feature, so that all can be written down: a user who has come twice, and others whose
// model is known as well as twenty observations tell.
TEST(CoDBandTest, WhatIsExpectedOfAYoungUserIsTheMeanOverAllModelsGivenWhatTheyTold) {
  constexpr double kNoise = 0.25;
  constexpr double kPrecision = 2;
  constexpr double kAlmostOne = 1e6;  // α0 is 1 but for a thousandth
  const auto policy = MakeCoDBand(1, {.hyper = "fixed",
                                      .departure = "none",
                                      .outliers = "kept",
                                      .intercept = false,
                                      .lambda = kPrecision,
                                      .sigma = kNoise,
                                      .hazard = 1e-9,
                                      .a = kAlmostOne,
                                      .b = kAlmostOne,
                                      .resample = 0});
  // Sums of a set of observations r = xθ + noise.
  struct Sums {
    double xx = 0, xr = 0, rr = 0;
    int count = 0;

    void Add(double x, double r) { xx += x * x, xr += x * r, rr += r * r, ++count; }
    double Precision() const { return kPrecision + xx / (kNoise * kNoise); }
    double Mean() const { return xr / (kNoise * kNoise) / Precision(); }
    // ln of the density of all of them together.
    double LogEvidence() const {
      return -0.5 * (count * std::log(2 * std::numbers::pi * kNoise * kNoise) +
                     std::log(Precision() / kPrecision) + rr / (kNoise * kNoise) -
                     Mean() * Mean() * Precision());
    }
  };
  std::uint64_t event = 0;
  const auto teach = [&](UserId user, double x, double r, Sums& sums) {
    policy->Learn(policy->Choose(user, {{&x, 1}, 1}, {1, event}), r, {1, event});
    ++event;
    sums.Add(x, r);
  };
  Sums known;
  for (int i = 0; i < 20; ++i) teach(1, i % 2 == 0 ? 1 : 0.5, i % 2 == 0 ? 1 : 0.5, known);
  Sums told;
  teach(2, 1, 0.5, told);
  teach(2, 0.5, 0.125, told);
  Sums both = known;
  both.xx += told.xx, both.xr += told.xr, both.rr += told.rr, both.count += told.count;

  // One period is on the known model, and a new one has the weight α0 = 1.
  const double odds = std::exp(both.LogEvidence() - known.LogEvidence() - told.LogEvidence());
  const double shared = odds / (1 + odds);
  ASSERT_GT(shared, 0.1);
  ASSERT_LT(shared, 0.9);
  const double one = 1;
  EXPECT_NEAR(policy->Choose(2, {{&one, 1}, 1}, {1, event}).mean,
              shared * both.Mean() + (1 - shared) * told.Mean(), 1e-3);
}

TEST(CoDBandTest, ChoosingChangesNothing) {
  TestWorld world(5);
  const auto policy = MakeOrDie("codband", world.context());
  for (int i = 0; i < 50; ++i) world.Step(*policy);
  const std::string before = EncodeState(*policy);
  const std::vector<double> arms = world.Arms();
  for (UserId user = 0; user < 20; ++user) {
    (void)policy->Choose(user, {arms, TestWorld::kDim}, {9, user});
  }
  EXPECT_EQ(EncodeState(*policy), before);
}

TEST(CoDBandTest, LateRewardBelongsToThePeriodItsDecisionWasMadeIn) {
  const auto policy = MakeCoDBand(kTwoFeatures, {});
  std::uint64_t event = 0;
  for (int i = 0; i < 40; ++i) Teach(*policy, 0, 2, event++);
  Decision early = policy->Choose(0, kUnitView, {1, event++});
  early.features = {1, 0};
  const ModelId first_model = early.model;
  bool detected = false;
  for (int i = 0; i < 100 && !detected; ++i) {
    detected = Teach(*policy, 0, -2, event++).change_detected;
  }
  ASSERT_TRUE(detected);
  for (int i = 0; i < 20; ++i) Teach(*policy, 0, -2, event++);
  const Decision now = policy->Choose(0, kUnitView, {1, event});
  ASSERT_NE(now.model, first_model);
  const std::string before = EncodeState(*policy);
  EXPECT_FALSE(policy->Learn(early, 2, {1, event}).change_detected);
  EXPECT_NE(EncodeState(*policy), before);  // it was learned
  const Decision after = policy->Choose(0, kUnitView, {1, event});
  EXPECT_EQ(after.model, now.model);
  // The present is untouched, but for the all but impossible chance that they are back.
  EXPECT_NEAR(after.mean, now.mean, 1e-12);
}

TEST(CoDBandTest, DecisionOfALaterPeriodCountsForTheCurrentOne) {
  // As after restoring an older state.
  const auto policy = MakeOrDie("codband", {.dim = kTwoFeatures});
  Decision decision = policy->Choose(3, kUnitView, {});
  decision.period = 2;
  policy->Learn(decision, 1, {});
  EXPECT_EQ(policy->Choose(3, kUnitView, {}).period, 0U);
  EXPECT_EQ(policy->model_count(), 1U);
}

TEST(CoDBandTest, ModelThatIsGoneWhenTheFirstRewardArrivesIsDrawnAnew) {
  const auto policy = MakeOrDie("codband", {.dim = kTwoFeatures});
  Teach(*policy, 1, 1, 0);
  Decision decision;
  for (std::uint64_t event = 1; decision.model == kNoModel && event < 1000; ++event) {
    decision = policy->Choose(2, kUnitView, {1, event});
  }
  ASSERT_TRUE(policy->Forget(1));
  EXPECT_EQ(policy->model_count(), 0U);
  policy->Learn(decision, 1, {1, 500});
  EXPECT_EQ(policy->model_count(), 1U);
}

TEST(CoDBandTest, NewUsersStartCloserToTheirFriends) {
  UserGraph graph;
  for (const UserId user : {0, 2, 4}) graph.Add(50, user);
  for (const UserId user : {1, 3, 5}) graph.Add(51, user);
  graph.Add(52, 53);  // a friend whom nobody has seen
  const auto policy = MakeOrDie("codband:prior=friends", {.dim = kTwoFeatures, .friends = &graph});
  std::uint64_t event = 0;
  for (int round = 0; round < 40; ++round) {
    for (UserId user = 0; user < 6; ++user) Teach(*policy, user, user % 2 == 0 ? 2 : -2, event++);
  }
  const ArmsView only_first{std::span(kUnitArms).first(kTwoFeatures), kTwoFeatures};
  const double friend_of_even = policy->Choose(50, only_first, {}).mean;
  const double friend_of_odd = policy->Choose(51, only_first, {}).mean;
  const double friendless = policy->Choose(60, only_first, {}).mean;
  EXPECT_GT(friend_of_even, friendless + 0.2);
  EXPECT_LT(friend_of_odd, friendless - 0.2);
  EXPECT_EQ(policy->Choose(52, only_first, {}).mean, friendless);
}

TEST(CoDBandTest, ParametersThatDoNotGoTogetherAreRefused) {
  const auto error_of = [](std::string_view spec) {
    return MakePolicy(spec, {.dim = kTwoFeatures}).status().message();
  };
  EXPECT_NE(error_of("codband:prior=friends").find("prior=friends needs a user graph"),
            std::string::npos);
  EXPECT_NE(error_of("codband:likelihood=product")
                .find("likelihood=product needs detector=window or detector=none"),
            std::string::npos);
  EXPECT_TRUE(MakePolicy("codband:likelihood=product,detector=none", {.dim = kTwoFeatures}).ok());
}

// Their squares are zero; the first reward sets the scale of the prior.
TEST(CoDBandTest, TinyRewardsAreLikeNone) {
  for (const double tiny : {1e-170, 1e-300, 5e-324}) {
    const auto policy = std::move(MakePolicy("codband", {.dim = 2})).value();
    const std::vector<double> arms = {1, 0, 0, 1};
    for (std::uint64_t event = 0; event < 40; ++event) {
      const Decision decision = policy->Choose(7, {arms, 2}, {1, event});
      policy->Learn(decision, tiny, {1, event});
    }
    for (std::uint64_t event = 40; event < 200; ++event) {
      const Decision decision = policy->Choose(7, {arms, 2}, {1, event});
      policy->Learn(decision, decision.arm == 1 ? 1 : 0, {1, event});
    }
    EXPECT_EQ(policy->Choose(7, {arms, 2}, {1, 1000}).arm, 1U) << tiny;
  }
}

}  // namespace
}  // namespace codband
