#include "codband/policy/codband/codband.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "codband/policy/state_file.h"
#include "codband/policy/test_support.h"

namespace codband {
namespace {

constexpr std::size_t kDim = 2;
const std::vector<double> kArms = {1, 0, 0, 1};
const ArmsView kView{kArms, kDim};

// One visit on which the arm e1 was shown, with its reward.
LearnOutcome Teach(Policy& policy, UserId user, double reward, std::uint64_t event) {
  Decision decision = policy.Choose(user, kView, {1, event});
  decision.features = {1, 0};
  return policy.Learn(decision, reward, {1, event});
}

TEST(CoDBandTest, UsersWhoThinkAlikeShareAModelAndOthersDoNot) {
  const auto policy = MakeCoDBand(kDim, {});
  std::uint64_t event = 0;
  for (int round = 0; round < 40; ++round) {
    for (UserId user = 0; user < 6; ++user) Teach(*policy, user, user % 2 == 0 ? 2 : -2, event++);
  }
  std::map<UserId, ModelId> model;
  for (UserId user = 0; user < 6; ++user) model[user] = policy->Choose(user, kView, {}).model;
  EXPECT_EQ(model[0], model[2]);
  EXPECT_EQ(model[0], model[4]);
  EXPECT_EQ(model[1], model[3]);
  EXPECT_EQ(model[1], model[5]);
  EXPECT_NE(model[0], model[1]);
  EXPECT_EQ(policy->model_count(), 2U);
}

TEST(CoDBandTest, UserWhoChangesIsNoticedAndMovesToTheModelThatFitsNow) {
  const auto policy = MakeCoDBand(kDim, {});
  std::uint64_t event = 0;
  for (int round = 0; round < 40; ++round) {
    for (UserId user = 0; user < 6; ++user) Teach(*policy, user, user % 2 == 0 ? 2 : -2, event++);
  }
  const ModelId other = policy->Choose(1, kView, {}).model;
  int detected_after = -1;
  for (int step = 0; step < 20; ++step) {
    if (Teach(*policy, 0, -2, event++).change_detected && detected_after < 0) detected_after = step;
  }
  EXPECT_GE(detected_after, 0);
  EXPECT_LE(detected_after, 6);  // five bad observations of twenty
  EXPECT_EQ(policy->Choose(0, kView, {}).model, other);
  EXPECT_EQ(policy->Choose(0, kView, {}).period, 1U);
  EXPECT_NEAR(policy->Choose(0, kView, {1, 999}).mean, policy->Choose(1, kView, {1, 999}).mean,
              0.5);
}

TEST(CoDBandTest, WithoutDetectorNothingIsEverDetected) {
  const auto policy = MakeCoDBand(kDim, {.detector = DetectorKind::kNone});
  for (std::uint64_t event = 0; event < 100; ++event) {
    EXPECT_FALSE(Teach(*policy, 0, event < 50 ? 2 : -2, event).change_detected);
  }
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
  const auto policy = MakeCoDBand(kDim, {});
  std::uint64_t event = 0;
  for (int i = 0; i < 40; ++i) Teach(*policy, 0, 2, event++);
  Decision early = policy->Choose(0, kView, {1, event++});
  early.features = {1, 0};
  const ModelId first_model = early.model;
  bool detected = false;
  for (int i = 0; i < 100 && !detected; ++i) {
    detected = Teach(*policy, 0, -2, event++).change_detected;
  }
  ASSERT_TRUE(detected);
  for (int i = 0; i < 20; ++i) Teach(*policy, 0, -2, event++);
  const Decision now = policy->Choose(0, kView, {1, event});
  ASSERT_NE(now.model, first_model);
  const std::string before = EncodeState(*policy);
  EXPECT_FALSE(policy->Learn(early, 2, {1, event}).change_detected);
  EXPECT_NE(EncodeState(*policy), before);  // it was learned
  const Decision after = policy->Choose(0, kView, {1, event});
  EXPECT_EQ(after.model, now.model);
  EXPECT_EQ(after.mean, now.mean);  // the present is untouched
}

TEST(CoDBandTest, DecisionOfALaterPeriodCountsForTheCurrentOne) {
  // As after restoring an older state.
  const auto policy = MakeOrDie("codband", {.dim = kDim});
  Decision decision = policy->Choose(3, kView, {});
  decision.period = 2;
  policy->Learn(decision, 1, {});
  EXPECT_EQ(policy->Choose(3, kView, {}).period, 0U);
  EXPECT_EQ(policy->model_count(), 1U);
}

TEST(CoDBandTest, ModelThatIsGoneWhenTheFirstRewardArrivesIsDrawnAnew) {
  const auto policy = MakeOrDie("codband", {.dim = kDim});
  Teach(*policy, 1, 1, 0);
  Decision decision;
  for (std::uint64_t event = 1; decision.model == kNoModel && event < 1000; ++event) {
    decision = policy->Choose(2, kView, {1, event});
  }
  ASSERT_TRUE(policy->Forget(1));
  EXPECT_EQ(policy->model_count(), 0U);
  policy->Learn(decision, 1, {1, 500});
  EXPECT_EQ(policy->model_count(), 1U);
}

TEST(CoDBandTest, ForgettingAUserLeavesThePoolAsTheOthersMadeIt) {
  const std::vector<double> first_arm = {1, 0};
  const ArmsView only_first{first_arm, kDim};
  for (const char* spec : {"codband", "codband:paper", "codband:paper-product"}) {
    const auto policy = MakeOrDie(spec, {.dim = kDim});
    std::uint64_t event = 0;
    for (int round = 0; round < 60; ++round) {
      for (UserId user = 0; user < 4; ++user) Teach(*policy, user, user % 2 == 0 ? 2 : -2, event++);
    }
    // User 9 lives through several periods on both models.
    for (int i = 0; i < 200; ++i) Teach(*policy, 9, i / 50 % 2 == 0 ? 2 : -2, event++);
    EXPECT_GE(policy->Choose(9, kView, {}).period, 3U) << spec;

    EXPECT_TRUE(policy->Forget(9));
    EXPECT_FALSE(policy->Forget(9));
    EXPECT_EQ(policy->Choose(9, kView, {}).period, 0U);
    // Two models of 120 observations of reward ±2 on e1, noise σ = 0.1: mean ±2 / (1 + λσ²/120).
    // A learned prior shrinks by another amount, as little.
    ASSERT_EQ(policy->model_count(), 2U) << spec;
    const bool learned = std::string_view(spec) == "codband";
    const double mean = 2 / (1 + 0.1 * 0.01 / 120);
    const double tolerance = learned ? 0.01 : 1e-9;
    EXPECT_NEAR(policy->Choose(0, only_first, {1, 5}).mean, mean, tolerance) << spec;
    EXPECT_NEAR(policy->Choose(1, only_first, {1, 5}).mean, -mean, tolerance) << spec;
    for (UserId user = 0; user < 4; ++user) EXPECT_TRUE(policy->Forget(user));
    EXPECT_EQ(policy->model_count(), 0U);
  }
}

// Two tastes, ±1 on e1, of which six users have learned: 40 observations each, without noise. With
// λσ² = 1 a model of n observations of r expects r n / (n + 1), which tells n.
class TwoTastes : public testing::Test {
 protected:
  static constexpr int kLength = 40;
  static constexpr double kSigma = 0.5;

  static CoDBandOptions Options() {
    // Draws without scatter: what is expected is that of one model, not of all in part.
    return {.hyper = HyperKind::kFixed,
            .explore = ExploreKind::kThompson,
            .departure = DepartureKind::kNone,
            .intercept = false,
            .v = 0,
            .lambda = 1 / (kSigma * kSigma),
            .sigma = kSigma};
  }

  void Learn(const CoDBandOptions& options) {
    policy_ = MakeCoDBand(kDim, options);
    event_ = 0;
    for (int round = 0; round < kLength; ++round) {
      for (UserId user = 0; user < 6; ++user) {
        ASSERT_FALSE(See(user, user % 2 == 0 ? 1 : -1).change_detected);
      }
    }
    ASSERT_EQ(policy_->model_count(), 2U);
    ExpectHolds(0, 3 * kLength, 1);
    ExpectHolds(1, 3 * kLength, -1);
  }

  LearnOutcome See(UserId user, double reward) { return Teach(*policy_, user, reward, event_++); }

  // `user` is on a model of n observations of `reward`.
  void ExpectHolds(UserId user, int n, double reward) const {
    const double mean = policy_->Choose(user, {std::span(kArms).first(kDim), kDim}, {}).mean;
    EXPECT_NEAR(mean / (reward - mean), n, 0.01) << "user " << user;
  }

  std::unique_ptr<Policy> policy_;
  std::uint64_t event_ = 0;
};

TEST_F(TwoTastes, ObservationsSinceTheChangeGoToTheNewModelAndThoseBeforeStay) {
  Learn(Options());
  int noticed_after = 0;
  for (int step = 1; step <= 10; ++step) {
    if (See(0, -1).change_detected) {
      EXPECT_EQ(noticed_after, 0);
      noticed_after = step;
    }
  }
  // A single one could be noise: the odds change by e⁸, the chance of a change is e⁻⁸.
  EXPECT_GE(noticed_after, 1);
  EXPECT_LE(noticed_after, 3);
  const Decision now = policy_->Choose(0, kView, {});
  EXPECT_EQ(now.period, 1U);
  EXPECT_EQ(now.model, policy_->Choose(1, kView, {}).model);
  ExpectHolds(2, 3 * kLength, 1);
  ExpectHolds(1, 3 * kLength + 10, -1);
  ExpectHolds(0, 3 * kLength + 10, -1);
}

TEST_F(TwoTastes, ChangeNoticedLateIsDatedBack) {
  // With more noise it takes a few: these, too, belong to the new model.
  CoDBandOptions options = Options();
  options.sigma = 1;
  options.lambda = 1;
  options.a = 0.1;  // few models
  Learn(options);
  int noticed_after = 0;
  for (int step = 1; noticed_after == 0 && step <= 8; ++step) {
    if (See(0, -1).change_detected) noticed_after = step;
  }
  EXPECT_GE(noticed_after, 3);
  ASSERT_LE(noticed_after, 8);
  ExpectHolds(2, 3 * kLength, 1);
  ExpectHolds(1, 3 * kLength + noticed_after, -1);
}

TEST_F(TwoTastes, TasteThatNobodyHadBecomesAModel) {
  Learn(Options());
  const ModelId before = policy_->Choose(0, kView, {}).model;
  int changes = 0;
  for (int step = 0; step < 12; ++step) changes += See(0, 4).change_detected ? 1 : 0;
  EXPECT_EQ(changes, 1);
  EXPECT_EQ(policy_->model_count(), 3U);
  const ModelId now = policy_->Choose(0, kView, {}).model;
  EXPECT_NE(now, before);
  EXPECT_NE(now, policy_->Choose(1, kView, {}).model);
  ExpectHolds(0, 12, 4);
  ExpectHolds(2, 3 * kLength, 1);
  ExpectHolds(1, 3 * kLength, -1);
}

TEST_F(TwoTastes, OnlyTheLastPeriodsOfAUserAreRemembered) {
  // User 9 is on either side twice. Of the closed periods the last one, on the first model, counts.
  Learn(Options());
  for (int i = 0; i < 4 * kLength; ++i) See(9, i / kLength % 2 == 0 ? 1 : -1);
  ASSERT_EQ(policy_->Choose(9, kView, {}).period, 3U);
  ExpectHolds(0, 4 * kLength, 1);
  ExpectHolds(1, 4 * kLength, -1);
  CoDBandOptions all = Options();
  all.history = 0;
  Learn(all);
  for (int i = 0; i < 4 * kLength; ++i) See(9, i / kLength % 2 == 0 ? 1 : -1);
  ASSERT_EQ(policy_->Choose(9, kView, {}).period, 3U);
  ExpectHolds(0, 5 * kLength, 1);
  ExpectHolds(1, 5 * kLength, -1);
}

TEST_F(TwoTastes, RewardOfAPeriodNoLongerRememberedChangesNothing) {
  Learn(Options());
  See(9, 1);
  Decision first_period = policy_->Choose(9, kView, {1, event_});
  first_period.features = {1, 0};
  for (int i = 1; i < 3 * kLength; ++i) See(9, i / kLength % 2 == 0 ? 1 : -1);
  ASSERT_EQ(policy_->Choose(9, kView, {}).period, 2U);
  const auto state = [&] {
    ByteWriter out;
    policy_->SaveState(out);
    return out.Take();
  };
  const std::string before = state();
  EXPECT_FALSE(policy_->Learn(first_period, 1, {1, event_}).change_detected);
  EXPECT_EQ(state(), before);
  first_period.period = 1;  // this one is
  policy_->Learn(first_period, -1, {1, event_});
  EXPECT_NE(state(), before);
}

// The pool and what users say of it must agree however often they return to a model.
TEST_F(TwoTastes, ReturningToTheSameModelIsCountedRight) {
  for (const std::size_t history : {0U, 1U, 2U, 3U}) {
    SCOPED_TRACE(history);
    CoDBandOptions options = Options();
    options.history = history;
    Learn(options);
    for (int i = 0; i < 7 * kLength; ++i) See(9, i / kLength % 2 == 0 ? 1 : -1);
    ASSERT_EQ(policy_->Choose(9, kView, {}).period, 6U);
    ByteWriter out;
    policy_->SaveState(out);
    const auto restored = MakeCoDBand(kDim, options);
    ByteReader in(out.bytes());
    restored->LoadState(in);
    in.ExpectEnd();
    EXPECT_TRUE(in.ok()) << in.status().ToString();
    for (const UserId user : {9, 0, 1, 2, 3, 4, 5}) EXPECT_TRUE(policy_->Forget(user));
    EXPECT_EQ(policy_->model_count(), 0U);
  }
}

TEST(CoDBandTest, ForgettingAUserIsAsIfTheUserHadNeverBeenThere) {
  constexpr std::size_t kFeatures = TestWorld::kDim;
  CoDBandOptions options{
      .hyper = HyperKind::kFixed, .explore = ExploreKind::kThompson, .v = 0, .lambda = 1};
  for (const std::size_t history : {1U, 2U, 0U}) {
    options.history = history;
    const auto policy = MakeCoDBand(kFeatures, options);
    const auto twin = MakeCoDBand(kFeatures, options);
    // Users who do not change, until all know where they belong.
    TestWorld world(3);
    TestWorld twin_world(3);
    for (int i = 0; i < 230; ++i) {
      world.Step(*policy);
      twin_world.Step(*twin);
    }
    // One who does, three times.
    RandomStream random({4, 0}, 504);
    std::uint32_t period = 0;
    for (std::uint64_t i = 0; i < 160; ++i) {
      std::vector<double> arm(kFeatures);
      random.FillNormal(arm);
      const Decision decision = policy->Choose(99, {arm, kFeatures}, {4, i});
      period = decision.period;
      const auto taste = world.parameter(i / 40 % 2);
      policy->Learn(decision, linalg::Dot(arm, taste) + 0.1 * random.Normal(), {4, i});
    }
    ASSERT_EQ(period, 3U) << history;
    ASSERT_TRUE(policy->Forget(99));
    EXPECT_EQ(policy->model_count(), twin->model_count());
    for (UserId user = 0; user < TestWorld::kUsers; ++user) {
      for (int i = 0; i < 10; ++i) {
        std::vector<double> arm(kFeatures);
        random.FillNormal(arm);
        const Decision after = policy->Choose(user, {arm, kFeatures}, {5, 0});
        const Decision never = twin->Choose(user, {arm, kFeatures}, {5, 0});
        EXPECT_EQ(after.model, never.model);
        EXPECT_NEAR(after.mean, never.mean, 1e-9);
        EXPECT_NEAR(after.width, never.width, 1e-9);
      }
    }
  }
}

TEST(CoDBandTest, ForgottenUsersAreNotNamedInTheState) {
  constexpr UserId kUser = 0x1122334455667788;
  const auto policy = MakeCoDBand(kDim, {});
  for (std::uint64_t event = 0; event < 10; ++event) {
    Teach(*policy, 1, 1, 2 * event);
    Teach(*policy, kUser, 1, 2 * event + 1);
  }
  const auto named = [&] {
    ByteWriter id;
    id.U64(kUser);
    return EncodeState(*policy).find(id.bytes()) != std::string::npos;
  };
  EXPECT_TRUE(named());
  policy->Forget(kUser);
  EXPECT_FALSE(named());
}

TEST(CoDBandTest, ClicksOfUsersWhoDoNotChangeHardlyEverRaiseAnAlarm) {
  // Three tastes: the chance of a click is ½ + xᵀθ, from 0.1 to 0.9.
  const std::vector<std::vector<double>> tastes = {{0.4, 0, 0}, {0, 0.4, 0}, {-0.2, -0.1, 0.3}};
  int alarms = 0;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const auto policy = MakeOrDie("codband", {.dim = 3});
    for (std::uint64_t event = 0; event < 3000; ++event) {
      RandomStream random({seed, event}, 505);
      std::vector<double> arms(5 * 3);
      for (double& value : arms) value = 2 * random.Uniform() - 1;
      const UserId user = event % 12;
      const Decision decision = policy->Choose(user, {arms, 3}, {seed, event});
      const double chance =
          std::clamp(0.5 + linalg::Dot(decision.features, tastes[user % 3]), 0.1, 0.9);
      const double click = random.Uniform() < chance ? 1 : 0;
      alarms += policy->Learn(decision, click, {seed, event}).change_detected ? 1 : 0;
    }
  }
  EXPECT_LE(alarms, 3);  // of 9000
}

TEST(CoDBandTest, AlarmsAreRareWhereNobodyChangesAndRewardsAreGaussian) {
  TestWorld world(21);
  const auto policy = MakeOrDie("codband", world.context());
  int alarms = 0;
  for (std::uint64_t event = 0; event < 3000; ++event) {
    world.set_step(event);
    const std::vector<double> arms = world.Arms();
    const UserId user = event % TestWorld::kUsers;
    const Decision decision = policy->Choose(user, {arms, TestWorld::kDim}, {21, event});
    RandomStream random({21, event}, 506);
    const double reward =
        linalg::Dot(decision.features, world.parameter(user % 3)) + 0.1 * random.Normal();
    alarms += policy->Learn(decision, reward, {21, event}).change_detected ? 1 : 0;
  }
  EXPECT_LE(alarms, 1);
  EXPECT_EQ(policy->model_count(), 3U);
}

TEST(CoDBandTest, NewUsersStartCloserToTheirFriends) {
  UserGraph graph;
  for (const UserId user : {0, 2, 4}) graph.Add(50, user);
  for (const UserId user : {1, 3, 5}) graph.Add(51, user);
  graph.Add(52, 53);  // a friend whom nobody has seen
  const auto policy = MakeOrDie("codband:prior=friends", {.dim = kDim, .friends = &graph});
  std::uint64_t event = 0;
  for (int round = 0; round < 40; ++round) {
    for (UserId user = 0; user < 6; ++user) Teach(*policy, user, user % 2 == 0 ? 2 : -2, event++);
  }
  const ArmsView only_first{std::span(kArms).first(kDim), kDim};
  const double friend_of_even = policy->Choose(50, only_first, {}).mean;
  const double friend_of_odd = policy->Choose(51, only_first, {}).mean;
  const double friendless = policy->Choose(60, only_first, {}).mean;
  EXPECT_GT(friend_of_even, friendless + 0.2);
  EXPECT_LT(friend_of_odd, friendless - 0.2);
  EXPECT_EQ(policy->Choose(52, only_first, {}).mean, friendless);
}

TEST(CoDBandTest, ParametersThatDoNotGoTogetherAreRefused) {
  const auto error_of = [](std::string_view spec) {
    return MakePolicy(spec, {.dim = kDim}).status().message();
  };
  EXPECT_NE(error_of("codband:prior=friends").find("prior=friends needs a user graph"),
            std::string::npos);
  EXPECT_NE(error_of("codband:likelihood=product")
                .find("likelihood=product needs detector=window or detector=none"),
            std::string::npos);
  EXPECT_TRUE(MakePolicy("codband:likelihood=product,detector=none", {.dim = kDim}).ok());
}

TEST(CoDBandTest, BetterArmOfAFixedPairIsFoundWhereGreedWouldNot) {
  // The first arm brings 1, the second 2; both are expected to bring 0, and the first of equals is
  // taken.
  const auto second_of_last_100 = [](CoDBandOptions options) {
    options.hyper = HyperKind::kFixed;
    options.intercept = false;
    options.lambda = 1;
    const auto policy = MakeCoDBand(kDim, options);
    int taken = 0;
    for (std::uint64_t event = 0; event < 400; ++event) {
      const Decision decision = policy->Choose(0, kView, {1, event});
      const double noise = 0.1 * RandomStream({1, event}, 507).Normal();
      policy->Learn(decision, (decision.arm == 0 ? 1 : 2) + noise, {1, event});
      if (event >= 300) taken += static_cast<int>(decision.arm);
    }
    return taken;
  };
  EXPECT_EQ(second_of_last_100({.explore = ExploreKind::kThompson, .v = 0}), 0);
  EXPECT_EQ(second_of_last_100({.explore = ExploreKind::kAdaptive}), 100);
  EXPECT_EQ(second_of_last_100({.explore = ExploreKind::kThompson}), 100);
}

TEST(CoDBandTest, DefaultFindsTheBetterArmOfAFixedPair) {
  int taken = 0;
  const auto policy = MakeOrDie("codband", {.dim = kDim});
  for (std::uint64_t event = 0; event < 400; ++event) {
    const Decision decision = policy->Choose(0, kView, {1, event});
    const double noise = 0.1 * RandomStream({1, event}, 507).Normal();
    policy->Learn(decision, (decision.arm == 0 ? 1 : 2) + noise, {1, event});
    if (event >= 300) taken += static_cast<int>(decision.arm);
  }
  EXPECT_GE(taken, 95);
}

TEST(CoDBandTest, StateWithRewardsOfAllSizesCanBeReadBack) {
  for (const char* spec : {"codband", "codband:hyper=fixed,sigma=1e-6"}) {
    const auto policy = MakeOrDie(spec, {.dim = kDim});
    std::uint64_t event = 0;
    for (int i = 0; i < 60; ++i) Teach(*policy, 0, i % 20 == 10 ? 1e15 : 1e-10, event++);
    const auto restored = DecodeState(EncodeState(*policy), {.dim = kDim});
    EXPECT_TRUE(restored.ok()) << spec << ": " << restored.status().ToString();
    EXPECT_TRUE(std::isfinite(policy->Choose(0, kView, {1, event}).mean)) << spec;
  }
}

// The chances by integration against repeated draws of Choose, for a policy that always draws.
TEST(CoDBandTest, ProbabilitiesAreThoseOfThompsonSampling) {
  constexpr int kDraws = 20000;
  const std::vector<double> arms = {1, 0, 0, 1, 0.7, 0.7, -1, 0.5};
  const ArmsView view{arms, kDim};
  const auto policy = MakeCoDBand(kDim, {.explore = ExploreKind::kThompson});
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
TEST(CoDBandTest, ProbabilitiesDoNotDependOnHowManyOthersThereAre) {
  const std::vector<double> four = {1, 0, 0, 1, 0.7, 0.7, -1, 0.5};
  constexpr std::array<std::size_t, 4> kPlaces = {0, 63, 64, 199};
  std::vector<double> many;
  for (std::size_t i = 0; i < 200; ++i) many.insert(many.end(), {four[0], four[1]});
  for (std::size_t arm = 0; arm < 4; ++arm) {
    for (std::size_t j = 0; j < kDim; ++j) many[kPlaces[arm] * kDim + j] = four[arm * kDim + j];
  }
  const auto policy = MakeCoDBand(kDim, {.explore = ExploreKind::kThompson});
  std::uint64_t event = 0;
  for (int round = 0; round < 30; ++round) {
    for (UserId user = 0; user < 6; ++user) {
      Decision decision = policy->Choose(user, kView, {1, event});
      decision.features = round % 2 == 0 ? std::vector<double>{1, 0} : std::vector<double>{0, 1};
      const double reward = round % 2 == 0 ? 2 : user % 2 == 0 ? 1 : 2.5;
      policy->Learn(decision, reward + RandomStream({1, event}, 511).Normal(), {1, event});
      ++event;
    }
  }
  Ranking among_four;
  Ranking among_many;
  for (const UserId user : {UserId{0}, UserId{1}, UserId{77}}) {
    policy->Rank(user, {four, kDim}, {3, user}, 0, among_four);
    policy->Rank(user, {many, kDim}, {3, user}, 0, among_many);
    double sum = 0;
    for (std::size_t arm = 0; arm < 4; ++arm) {
      EXPECT_DOUBLE_EQ(among_many.arms[kPlaces[arm]].probability, among_four.arms[arm].probability);
      sum += among_four.arms[arm].probability;
    }
    EXPECT_NEAR(sum, 1, 1e-12);
    EXPECT_EQ(among_many.decision.arm, kPlaces[among_four.decision.arm]);
  }
}

TEST(CoDBandTest, RankingAgreesWithChoosingWhereNothingIsDrawn) {
  const auto policy = MakeCoDBand(kDim, {});
  std::uint64_t event = 0;
  for (int round = 0; round < 40; ++round) {
    for (UserId user = 0; user < 6; ++user) {
      Decision decision = policy->Choose(user, kView, {1, event});
      decision.features = round % 2 == 0 ? std::vector<double>{1, 0} : std::vector<double>{0, 1};
      policy->Learn(decision, user % 2 == 0 ? decision.features[0] : decision.features[1],
                    {1, event++});
    }
  }
  Ranking ranking;
  for (UserId user = 0; user < 6; ++user) {
    const Decision decision = policy->Choose(user, kView, {1, 5});
    policy->Rank(user, kView, {1, 5}, 0, ranking);
    EXPECT_EQ(ranking.draws, 0U);
    EXPECT_EQ(ranking.decision.arm, decision.arm);
    EXPECT_EQ(ranking.decision.model, decision.model);
    EXPECT_EQ(ranking.arms[decision.arm].probability, 1);
    EXPECT_EQ(ranking.arms[1 - decision.arm].probability, 0);
    EXPECT_NEAR(ranking.decision.mean, decision.mean, 1e-12);
    EXPECT_NEAR(ranking.decision.width, decision.width, 1e-12);
  }
}

TEST(CoDBandTest, EqualArmsShareTheirChance) {
  const auto policy = MakeCoDBand(kDim, {});
  const std::vector<double> arms = {1, 0, 0, 1, 1, 1};
  Ranking ranking;
  std::vector<int> chosen(3);
  for (std::uint64_t i = 0; i < 300; ++i) {
    policy->Rank(1, {arms, kDim}, {1, i}, 0, ranking);  // nothing is known: all means are 0
    EXPECT_DOUBLE_EQ(ranking.arms[0].probability, 1.0 / 3);
    ++chosen[ranking.decision.arm];
  }
  for (const int count : chosen) EXPECT_NEAR(count, 100, 41);  // five standard deviations
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
