// What every policy must do; propensity_test.cc has what it must report. A policy is covered by
// being registered.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>

#include "codband/policy/learn_memo.h"
#include "codband/policy/paged_users.h"
#include "codband/policy/state_file.h"
#include "codband/policy/test_support.h"
#include "tests/policy_specs.h"

namespace codband {
namespace {

class ConformanceTest : public testing::TestWithParam<std::string> {
 protected:
  const std::string& spec() const { return GetParam(); }
};

TEST_P(ConformanceTest, SameSeedGivesTheSameRun) {
  TestWorld world_a(11);
  TestWorld world_b(11);
  const auto a = MakeOrDie(spec(), world_a.context());
  const auto b = MakeOrDie(spec(), world_b.context());
  for (int i = 0; i < 400; ++i) {
    EXPECT_EQ(world_a.Step(*a).change_detected, world_b.Step(*b).change_detected);
  }
  EXPECT_EQ(EncodeState(*a), EncodeState(*b));
}

TEST_P(ConformanceTest, SaveLoadContinueEqualsNotStoppingBitForBit) {
  for (const int stop_after : {0, 1, 7, 100, 350}) {
    TestWorld world(12);
    auto policy = MakeOrDie(spec(), world.context());
    for (int i = 0; i < stop_after; ++i) world.Step(*policy);
    TestWorld later = world;
    auto restored = DecodeState(EncodeState(*policy), later.context());
    ASSERT_TRUE(restored.ok()) << restored.status().ToString();
    for (int i = 0; i < 200; ++i) {
      ASSERT_EQ(world.Step(*policy).change_detected, later.Step(*restored.value()).change_detected);
    }
    EXPECT_EQ(EncodeState(*policy), EncodeState(*restored.value())) << stop_after;
  }
}

TEST_P(ConformanceTest, ChoosingChangesNothing) {
  TestWorld world(13);
  const auto policy = MakeOrDie(spec(), world.context());
  for (int i = 0; i < 100; ++i) world.Step(*policy);
  const std::string before = EncodeState(*policy);
  const std::vector<double> arms = world.Arms();
  for (UserId user = 0; user < TestWorld::kUsers; ++user) {
    const Decision first = policy->Choose(user, {arms, TestWorld::kDim}, {1, user});
    const Decision second = policy->Choose(user, {arms, TestWorld::kDim}, {1, user});
    EXPECT_EQ(first.arm, second.arm);
    EXPECT_EQ(first.score, second.score);
  }
  EXPECT_EQ(EncodeState(*policy), before);
}

TEST_P(ConformanceTest, RankingIsConsistentAndRepeatable) {
  TestWorld world(23);
  const auto policy = MakeOrDie(spec(), world.context());
  for (int i = 0; i < 150; ++i) world.Step(*policy);
  const std::string before = EncodeState(*policy);
  const std::vector<double> arms = world.Arms();
  constexpr int kDraws = 2000;
  std::vector<double> chosen(TestWorld::kArms);
  std::vector<double> said(TestWorld::kArms);
  Ranking ranking;
  Ranking again;
  for (int i = 0; i < kDraws; ++i) {
    const EventKey key{5, static_cast<std::uint64_t>(i)};
    policy->Rank(2, {arms, TestWorld::kDim}, key, 0.05, ranking);
    double sum = 0;
    for (std::size_t arm = 0; arm < TestWorld::kArms; ++arm) {
      const double probability = ranking.arms[arm].probability;
      EXPECT_GE(probability, 0.05 / TestWorld::kArms * (1 - 1e-12));
      said[arm] += probability / kDraws;
      sum += probability;
    }
    EXPECT_NEAR(sum, 1, 1e-9);
    const Decision& decision = ranking.decision;
    EXPECT_EQ(decision.propensity, ranking.arms[decision.arm].probability);
    EXPECT_EQ(decision.score, ranking.arms[decision.arm].score);
    EXPECT_EQ(decision.features[0], arms[decision.arm * TestWorld::kDim]);
    chosen[decision.arm] += 1.0 / kDraws;
    policy->Rank(2, {arms, TestWorld::kDim}, key, 0.05, again);
    EXPECT_EQ(again.decision.arm, decision.arm);
    EXPECT_EQ(again.arms[1].score, ranking.arms[1].score);
  }
  for (std::size_t arm = 0; arm < TestWorld::kArms; ++arm) {
    EXPECT_NEAR(chosen[arm], said[arm], 5 * std::sqrt(0.25 / kDraws)) << arm;
  }
  EXPECT_EQ(EncodeState(*policy), before);
}

TEST_P(ConformanceTest, ReplayingTheMemoOfAnotherCopyLearnsTheSameBits) {
  TestWorld recording_world(25);
  TestWorld replaying_world(25);
  TestWorld plain_world(25);
  const auto recording = MakeOrDie(spec(), recording_world.context());
  const auto replaying = MakeOrDie(spec(), replaying_world.context());
  const auto plain = MakeOrDie(spec(), plain_world.context());
  LearnMemo memo;
  constexpr int kBatch = 6;
  for (int i = 0; i < 100; ++i) {
    memo.StartRecording();
    for (int j = 0; j < kBatch; ++j) recording_world.Step(*recording, &memo);
    memo.StartReplay();
    for (int j = 0; j < kBatch; ++j) replaying_world.Step(*replaying, &memo);
    for (int j = 0; j < kBatch; ++j) plain_world.Step(*plain);
  }
  EXPECT_EQ(EncodeState(*recording), EncodeState(*plain));
  EXPECT_EQ(EncodeState(*replaying), EncodeState(*plain));
}

TEST_P(ConformanceTest, EvictingUsersChangesNoResult) {
  TestWorld world(24);
  TestWorld same_world(24);
  const auto in_memory = MakeOrDie(spec(), world.context());
  const auto paged = MakeOrDie(spec(), same_world.context());
  PagedUsers* const users = paged->paged_users();
  if (users == nullptr) GTEST_SKIP() << "keeps everything in memory";
  MapArchive archive;
  users->SetArchive(&archive);
  for (int i = 0; i < 600; ++i) {
    if (i % 5 == 0) {
      users->SaveChangedUsers(
          [&](UserId user, std::string bytes) { archive.records[user] = std::move(bytes); });
      users->MarkUsersSaved();
      users->EvictUsers({.users = 0});
      ASSERT_EQ(users->users_in_memory(), 0U);
    }
    if (i == 333) {
      EXPECT_TRUE(in_memory->Forget(2));
      EXPECT_TRUE(paged->Forget(2));
      EXPECT_FALSE(paged->Forget(2));
      archive.records.erase(2);
    }
    ASSERT_EQ(world.Step(*in_memory).after, same_world.Step(*paged).after);
  }
  const std::vector<double> arms = world.Arms();
  for (UserId user = 0; user < TestWorld::kUsers; ++user) {
    EXPECT_EQ(in_memory->Choose(user, {arms, TestWorld::kDim}, {1, 1}).score,
              paged->Choose(user, {arms, TestWorld::kDim}, {1, 1}).score);
    EXPECT_EQ(in_memory->DescribeUser(user)->model, paged->DescribeUser(user)->model);
  }
  ByteWriter shared;
  ByteWriter paged_shared;
  in_memory->paged_users()->SaveShared(shared);
  users->SaveShared(paged_shared);
  EXPECT_EQ(shared.bytes(), paged_shared.bytes());

  // CheckUsers notices a record that is missing from the archive.
  users->SaveChangedUsers(
      [&](UserId user, std::string bytes) { archive.records[user] = std::move(bytes); });
  const auto all = [&](const PagedUsers::VisitRecord& visit) {
    for (const auto& [user, bytes] : archive.records) {
      if (!visit(user, bytes)) break;
    }
    return Status();
  };
  EXPECT_TRUE(users->CheckUsers(all).ok()) << users->CheckUsers(all).ToString();
  archive.records.erase(3);
  EXPECT_EQ(users->CheckUsers(all).code(), StatusCode::kCorruption);
}

TEST_P(ConformanceTest, BadInputIsRejectedByNameAndChangesNothing) {
  TestWorld world(14);
  const auto policy = MakeOrDie(spec(), world.context());
  for (int i = 0; i < 50; ++i) world.Step(*policy);
  const std::string before = EncodeState(*policy);
  const std::vector<double> good = world.Arms();
  const auto choose_error = [&](std::span<const double> arms, std::size_t dim) -> std::string {
    try {
      (void)policy->Choose(0, {arms, dim}, {});
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(choose_error(good, 4), "[Policy::Choose] arms have 4 features, expected 5");
  EXPECT_EQ(choose_error({}, 5), "[Policy::Choose] arms: none given, expected at least 1");
  EXPECT_EQ(choose_error(std::span(good).first(7), 5),
            "[Policy::Choose] arms hold 7 numbers, expected a multiple of 5");
  for (const auto& [bad, text] :
       {std::pair(std::nan(""), "nan"), std::pair(-std::numeric_limits<double>::infinity(), "-inf"),
        std::pair(1e51, "1e+51")}) {
    std::vector<double> arms = good;
    arms[11] = bad;
    EXPECT_EQ(choose_error(arms, 5), std::string("[Policy::Choose] feature 1 of arm 2 is ") + text +
                                         ", expected a number within ±1e15");
  }

  const Decision decision = policy->Choose(0, {good, 5}, {});
  const auto learn_error = [&](const Decision& bad, double reward) -> std::string {
    try {
      policy->Learn(bad, reward, {});
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(learn_error(decision, std::nan("")),
            "[Policy::Learn] reward is nan, expected a number within ±1e15");
  EXPECT_EQ(learn_error(decision, std::numeric_limits<double>::infinity()),
            "[Policy::Learn] reward is inf, expected a number within ±1e15");
  Decision damaged = decision;
  damaged.features[3] = std::nan("");
  EXPECT_EQ(learn_error(damaged, 1),
            "[Policy::Learn] feature 3 of the decision is nan, expected a number within ±1e15");
  damaged.features.assign(6, 1.0);
  EXPECT_EQ(learn_error(damaged, 1),
            "[Policy::Learn] the decision has 6 features, expected at most 5");
  EXPECT_THROW(policy->Grow(4), std::invalid_argument);
  EXPECT_THROW(policy->Grow(kMaxFeatures + 1), std::invalid_argument);
  EXPECT_EQ(EncodeState(*policy), before);
}

TEST_P(ConformanceTest, RewardsMayArriveInAnyOrder) {
  TestWorld world(15);
  const auto policy = MakeOrDie(spec(), world.context());
  std::vector<std::pair<Decision, double>> pending;
  for (std::uint64_t i = 0; i < 600; ++i) {
    world.set_step(i);
    const std::vector<double> arms = world.Arms();
    const Decision decision =
        policy->Choose(i % TestWorld::kUsers, {arms, TestWorld::kDim}, {15, i});
    pending.emplace_back(decision, world.Reward(decision));
    if (pending.size() < 40) continue;
    const std::size_t next = RandomStream({15, i}, 503).Below(pending.size());
    policy->Learn(pending[next].first, pending[next].second, {15, i});
    pending.erase(pending.begin() + static_cast<std::ptrdiff_t>(next));
  }
  const Decision last = policy->Choose(0, {world.Arms(), TestWorld::kDim}, {15, 999});
  EXPECT_TRUE(std::isfinite(last.mean));
  EXPECT_TRUE(std::isfinite(last.score));
}

TEST_P(ConformanceTest, StaysFiniteOnExtremeFeaturesAndRewards) {
  TestWorld world(16);
  const auto policy = MakeOrDie(spec(), world.context());
  const std::vector<std::vector<double>> shapes = {std::vector<double>(TestWorld::kDim, 0.0),
                                                   std::vector<double>(TestWorld::kDim, 1e-30),
                                                   std::vector<double>(TestWorld::kDim, 1e6),
                                                   {1, 1, 1, 1, 1},
                                                   {-1e6, 1e-6, 0, 1, 2}};
  for (std::uint64_t i = 0; i < 300; ++i) {
    const std::vector<double>& arm = shapes[i % shapes.size()];
    const Decision decision = policy->Choose(i % 3, {arm, TestWorld::kDim}, {16, i});
    ASSERT_TRUE(std::isfinite(decision.mean)) << i;
    ASSERT_TRUE(std::isfinite(decision.width)) << i;
    ASSERT_TRUE(std::isfinite(decision.score)) << i;
    policy->Learn(decision, i % 7 == 0 ? -1e6 : 3, {16, i});
  }
}

TEST_P(ConformanceTest, UserWithHugeFeaturesComesAndGoes) {
  TestWorld world(19);
  const auto policy = MakeOrDie(spec(), world.context());
  for (int i = 0; i < 120; ++i) world.Step(*policy);
  for (std::uint64_t i = 0; i < 30; ++i) {
    std::vector<double> arms = world.Arms();
    for (double& value : arms) value *= 1e7;
    const Decision decision = policy->Choose(99, {arms, TestWorld::kDim}, {19, 1000 + i});
    policy->Learn(decision, 1e6, {19, 1000 + i});
  }
  policy->Forget(99);
  for (int i = 0; i < 120; ++i) world.Step(*policy);
  const Decision last = policy->Choose(0, {world.Arms(), TestWorld::kDim}, {19, 9});
  EXPECT_TRUE(std::isfinite(last.mean));
  EXPECT_TRUE(std::isfinite(last.width));
}

TEST_P(ConformanceTest, RewardsMayArriveAfterTheUserWasForgotten) {
  TestWorld world(20);
  const auto policy = MakeOrDie(spec(), world.context());
  for (int i = 0; i < 700; ++i) world.Step(*policy);  // long enough for changes to be detected
  std::vector<Decision> pending;
  for (UserId user = 0; user < TestWorld::kUsers; ++user) {
    pending.push_back(policy->Choose(user, {world.Arms(), TestWorld::kDim}, {20, user}));
    policy->Forget(user);
  }
  for (const Decision& decision : pending) policy->Learn(decision, 0.5, {20, 77});
  const auto restored = DecodeState(EncodeState(*policy), world.context());
  ASSERT_TRUE(restored.ok()) << restored.status().ToString();
}

TEST_P(ConformanceTest, ForgottenUsersLeaveNothingBehind) {
  TestWorld world(17);
  const auto policy = MakeOrDie(spec(), world.context());
  const auto fresh = MakeOrDie(spec(), world.context());
  for (int i = 0; i < 300; ++i) world.Step(*policy);
  for (UserId user = 0; user < TestWorld::kUsers; ++user) policy->Forget(user);
  const std::vector<double> arms = world.Arms();
  for (UserId user = 0; user < TestWorld::kUsers; ++user) {
    EXPECT_FALSE(policy->Forget(user));
    const Decision after = policy->Choose(user, {arms, TestWorld::kDim}, {17, user});
    const Decision never = fresh->Choose(user, {arms, TestWorld::kDim}, {17, user});
    EXPECT_EQ(after.arm, never.arm);
    EXPECT_EQ(after.period, 0U);
    EXPECT_NEAR(after.mean, never.mean, 1e-7);
    EXPECT_NEAR(after.width, never.width, 1e-7);
  }
}

TEST_P(ConformanceTest, LearnsToBeBetterThanChance) {
  if (spec() == "random") GTEST_SKIP() << "it does not learn";
  TestWorld world(18);
  const auto policy = MakeOrDie(spec(), world.context());
  double gained = 0;
  double by_chance = 0;
  for (std::uint64_t i = 0; i < 600; ++i) {
    const std::vector<double> arms = world.Arms();
    const UserId user = i % TestWorld::kUsers;
    const auto& theta = world.parameter(world.model_of(user));
    const Decision decision = policy->Choose(user, {arms, TestWorld::kDim}, {18, i});
    gained += linalg::Dot(decision.features, theta);
    for (std::size_t a = 0; a < TestWorld::kArms; ++a) {
      by_chance +=
          linalg::Dot(std::span(arms).subspan(a * TestWorld::kDim, TestWorld::kDim), theta) /
          static_cast<double>(TestWorld::kArms);
    }
    policy->Learn(decision, world.Reward(decision), {18, i});
    world.set_step(i + 1);
  }
  EXPECT_GT(gained, by_chance + 100);
}

INSTANTIATE_TEST_SUITE_P(EveryPolicy, ConformanceTest, testing::ValuesIn(RegisteredSpecs()),
                         NameOfSpec);

}  // namespace
}  // namespace codband
