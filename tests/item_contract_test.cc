// What policies that learn of items must do with them; see also item_effects_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "codband/policy/learn_memo.h"
#include "codband/policy/paged_users.h"
#include "codband/policy/state_file.h"
#include "codband/policy/test_support.h"
#include "tests/policy_specs.h"

namespace codband {
namespace {

// TestWorld with a catalogue of 40 items, some of which are on offer at a visit, and whose rewards
// have effects of their own.
class ItemWorld {
 public:
  static constexpr std::size_t kItems = 40;
  static constexpr std::size_t kUsers = TestWorld::kUsers;

  // `offset` is added to all features.
  explicit ItemWorld(std::uint64_t seed, bool ids = true, double offset = 0)
      : world_(seed),
        seed_(seed),
        ids_(ids),
        features_(kItems * TestWorld::kDim),
        effects_(kItems) {
    RandomStream random({seed, 0}, 510);
    random.FillNormal(features_);
    random.FillNormal(effects_);
    for (double& feature : features_) feature += offset;
  }

  PolicyContext context() const { return world_.context(); }

  LearnOutcome Step(Policy& policy, LearnMemo* memo = nullptr) {
    return StepOf(world_.step() % kUsers, policy, memo);
  }
  LearnOutcome StepOf(UserId user, Policy& policy, LearnMemo* memo = nullptr) {
    const EventKey key{seed_, world_.step()};
    Offer();
    decision_ = policy.Choose(user, arms(), key);
    last_reward_ = Reward();
    const LearnOutcome outcome = policy.Learn(decision_, last_reward_, key, memo);
    world_.set_step(world_.step() + 1);
    return outcome;
  }

  void Offer() {
    RandomStream random({seed_, world_.step()}, 511);
    rows_.clear();
    items_.clear();
    for (std::size_t i = 0; i < TestWorld::kArms; ++i) {
      const std::size_t item = random.Below(kItems);
      const auto row = features_.begin() + static_cast<std::ptrdiff_t>(item * TestWorld::kDim);
      rows_.insert(rows_.end(), row, row + TestWorld::kDim);
      items_.push_back(1000 + item);
    }
  }
  ArmsView arms() const {
    return {rows_, TestWorld::kDim,
            ids_ ? std::span<const ItemId>(items_) : std::span<const ItemId>()};
  }
  const Decision& decision() const { return decision_; }
  double last_reward() const { return last_reward_; }

 private:
  double Reward() const {
    return world_.Reward(decision_) + effects_[items_[decision_.arm] - 1000];
  }

  TestWorld world_;
  std::uint64_t seed_;
  bool ids_;
  std::vector<double> features_;
  std::vector<double> effects_;
  std::vector<double> rows_;
  std::vector<ItemId> items_;
  Decision decision_;
  double last_reward_ = 0;
};

class ItemContractTest : public testing::TestWithParam<std::string> {
 protected:
  const std::string& spec() const { return GetParam(); }
};

TEST_P(ItemContractTest, TheDecisionTellsTheItem) {
  ItemWorld world(30);
  const auto policy = MakeOrDie(spec(), world.context());
  for (int i = 0; i < 50; ++i) {
    world.Step(*policy);
    EXPECT_EQ(world.decision().item, world.arms().items[world.decision().arm]);
  }
  Ranking ranking;
  policy->Rank(1, world.arms(), {1, 1}, 0.1, ranking);
  EXPECT_EQ(ranking.decision.item, world.arms().items[ranking.decision.arm]);
}

TEST_P(ItemContractTest, SaveLoadContinueEqualsNotStoppingBitForBit) {
  for (const int stop_after : {0, 1, 30, 300}) {
    ItemWorld world(31);
    auto policy = MakeOrDie(spec(), world.context());
    for (int i = 0; i < stop_after; ++i) world.Step(*policy);
    ItemWorld later = world;
    auto restored = DecodeState(EncodeState(*policy), later.context());
    ASSERT_TRUE(restored.ok()) << restored.status().ToString();
    for (int i = 0; i < 200; ++i) {
      ASSERT_EQ(world.Step(*policy).change_detected, later.Step(*restored.value()).change_detected);
    }
    EXPECT_EQ(EncodeState(*policy), EncodeState(*restored.value())) << stop_after;
  }
}

TEST_P(ItemContractTest, ReplayingTheMemoOfAnotherCopyLearnsTheSameBits) {
  ItemWorld recording_world(32);
  ItemWorld replaying_world(32);
  const auto recording = MakeOrDie(spec(), recording_world.context());
  const auto replaying = MakeOrDie(spec(), replaying_world.context());
  LearnMemo memo;
  for (int i = 0; i < 400; ++i) {
    memo.StartRecording();
    recording_world.Step(*recording, &memo);
    memo.StartReplay();
    replaying_world.Step(*replaying, &memo);
  }
  EXPECT_EQ(EncodeState(*recording), EncodeState(*replaying));
}

TEST_P(ItemContractTest, EvictingUsersChangesNoResult) {
  ItemWorld world(33);
  ItemWorld same_world(33);
  const auto in_memory = MakeOrDie(spec(), world.context());
  const auto paged = MakeOrDie(spec(), same_world.context());
  PagedUsers* const users = paged->paged_users();
  if (users == nullptr) GTEST_SKIP() << "keeps everything in memory";
  MapArchive archive;
  users->SetArchive(&archive);
  for (int i = 0; i < 400; ++i) {
    world.Step(*in_memory);
    same_world.Step(*paged);
    if (i % 20 != 19) continue;
    users->SaveChangedUsers(
        [&](UserId user, std::string bytes) { archive.records[user] = std::move(bytes); });
    users->MarkUsersSaved();
    users->EvictUsers({.users = 2});
  }
  for (UserId user = 0; user < ItemWorld::kUsers; ++user) {
    const Decision a = in_memory->Choose(user, world.arms(), {1, 1});
    const Decision b = paged->Choose(user, world.arms(), {1, 1});
    EXPECT_EQ(a.mean, b.mean);
    EXPECT_EQ(a.score, b.score);
  }
}

TEST_P(ItemContractTest, WhoIsForgottenBeforeAnybodyElseComesLeavesNoTrace) {
  ItemWorld world(34);
  const auto policy = MakeOrDie(spec(), world.context());
  for (int i = 0; i < 240; ++i) world.Step(*policy);
  // Estimates are made anew when a user leaves, so that they are compared after another has left.
  world.StepOf(888, *policy);
  ASSERT_TRUE(policy->Forget(888));
  std::map<ItemId, ItemDescription> before;
  for (ItemId item = 1000; item < 1000 + ItemWorld::kItems; ++item) {
    if (const auto described = policy->DescribeItem(item)) before[item] = *described;
  }
  for (int i = 0; i < 100; ++i) world.StepOf(777, *policy);
  ASSERT_TRUE(policy->Forget(777));
  for (ItemId item = 1000; item < 1000 + ItemWorld::kItems; ++item) {
    const auto described = policy->DescribeItem(item);
    ASSERT_EQ(described.has_value(), before.contains(item)) << item;
    if (!described) continue;
    EXPECT_EQ(described->shown, before[item].shown);
    EXPECT_NEAR(described->effect, before[item].effect, 1e-5) << item;
    EXPECT_NEAR(described->width, before[item].width, 1e-5) << item;
  }
}

TEST_P(ItemContractTest, AnItemCanBeForgotten) {
  ItemWorld world(35);
  const auto policy = MakeOrDie(spec(), world.context());
  for (int i = 0; i < 300; ++i) world.Step(*policy);
  const ItemId item = world.decision().item;
  ASSERT_TRUE(policy->DescribeItem(item).has_value());
  EXPECT_GT(policy->DescribeItem(item)->shown, 0U);
  EXPECT_TRUE(policy->ForgetItem(item));
  EXPECT_FALSE(policy->DescribeItem(item).has_value());
  EXPECT_FALSE(policy->ForgetItem(item));
  for (UserId user = 0; user < ItemWorld::kUsers; ++user) EXPECT_TRUE(policy->Forget(user));
}

TEST_P(ItemContractTest, VisitorsWithoutAnIdTeachItems) {
  ItemWorld world(41);
  const auto policy = MakeOrDie(spec(), world.context());
  std::map<ItemId, std::uint64_t> shown;
  for (int i = 0; i < 200; ++i) {
    world.StepOf(kNobody, *policy);
    ++shown[world.decision().item];
  }
  std::uint64_t learned = 0;
  for (const auto& [item, count] : shown) {
    const auto described = policy->DescribeItem(item);
    if (!described) continue;
    EXPECT_LE(described->shown, count) << item;
    learned += described->shown;
  }
  EXPECT_GT(learned, 0U);
  const auto restored = DecodeState(EncodeState(*policy), world.context());
  ASSERT_TRUE(restored.ok()) << restored.status().ToString();
  EXPECT_TRUE(policy->Forget(kNobody));
  for (const auto& [item, count] : shown) EXPECT_FALSE(policy->DescribeItem(item)) << item;
}

TEST_P(ItemContractTest, WhatIsKnownOfItemsStaysAsFeaturesAreAdded) {
  ItemWorld world(42);
  const auto policy = MakeOrDie(spec(), world.context());
  for (int i = 0; i < 200; ++i) world.Step(*policy);
  const ItemId item = world.decision().item;
  const ItemDescription before = policy->DescribeItem(item).value();
  policy->Grow(TestWorld::kDim + 3);
  const auto restored = DecodeState(EncodeState(*policy), world.context());
  ASSERT_TRUE(restored.ok()) << restored.status().ToString();
  for (const Policy* each : {policy.get(), restored.value().get()}) {
    EXPECT_EQ(each->DescribeItem(item).value().shown, before.shown);
    EXPECT_EQ(each->DescribeItem(item).value().effect, before.effect);
  }
  EXPECT_EQ(EncodeState(*policy), EncodeState(*restored.value()));
}

TEST_P(ItemContractTest, ItemsCountAlsoWhereFeaturesAreFarFromZero) {
  ItemWorld world(43, true, 1000);
  const auto policy = MakeOrDie(spec(), world.context());
  for (int i = 0; i < 600; ++i) world.Step(*policy);
  world.Offer();
  ArmsView arms = world.arms();
  const double with = policy->Choose(1, arms.only(0), {1, 1}).mean;
  arms.items = {};
  const double without = policy->Choose(1, arms.only(0), {1, 1}).mean;
  EXPECT_GT(std::abs(with - without), 0.0);
}

TEST_P(ItemContractTest, KnowingItemsEarnsMore) {
  double with = 0;
  double without = 0;
  for (const std::uint64_t seed : {36, 37, 38}) {
    for (const bool ids : {true, false}) {
      ItemWorld world(seed, ids);
      const auto policy = MakeOrDie(spec(), world.context());
      double& sum = ids ? with : without;
      for (int i = 0; i < 900; ++i) {
        world.Step(*policy);
        sum += world.last_reward();
      }
    }
  }
  EXPECT_GT(with, 1.05 * without);
}

INSTANTIATE_TEST_SUITE_P(EveryPolicyWithItems, ItemContractTest,
                         testing::Values("codband", "codband:detector=none", "linucb:items=yes",
                                         "uniform-linucb:items=yes"),
                         [](const testing::TestParamInfo<std::string>& param) {
                           std::string name = SpecAsName(param.param, '_');
                           std::ranges::replace(name, '=', '_');
                           return name;
                         });

TEST(ItemIdsTest, WithoutEffectsIdsChangeNothing) {
  ItemWorld with_ids(39);
  ItemWorld without_ids(39, false);
  const auto a = MakeOrDie("codband:items=none", with_ids.context());
  const auto b = MakeOrDie("codband", without_ids.context());
  for (int i = 0; i < 300; ++i) {
    with_ids.Step(*a);
    without_ids.Step(*b);
    ASSERT_EQ(with_ids.decision().arm, without_ids.decision().arm);
    ASSERT_EQ(with_ids.decision().mean, without_ids.decision().mean);
  }
}

TEST(ItemIdsTest, ItemsMustBeAsManyAsArms) {
  ItemWorld world(40);
  const auto policy = MakeOrDie("codband", world.context());
  world.Offer();
  ArmsView arms = world.arms();
  arms.items = arms.items.first(2);
  EXPECT_THROW(static_cast<void>(policy->Choose(1, arms, {})), std::invalid_argument);
}

}  // namespace
}  // namespace codband
