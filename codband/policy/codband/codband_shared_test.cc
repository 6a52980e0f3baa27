// CoDBand as one of several partitions (shared_pool.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "codband/policy/codband/column_groups.h"
#include "codband/policy/codband/model_pool.h"
#include "codband/policy/codband/pool_register.h"
#include "codband/policy/grouped_features.h"
#include "codband/policy/shared_pool.h"
#include "codband/policy/state_file.h"
#include "codband/policy/test_support.h"

namespace codband {
namespace {

// Users 0 … 17 on three partitions, u mod 3, with one of two tastes, u mod 2. Arms are items.
class Partitions : public testing::Test {
 protected:
  static constexpr std::size_t kCount = 3;
  static constexpr std::size_t kDim = 4;

  Partitions() {
    for (std::uint32_t p = 0; p < kCount; ++p) {
      policies_.push_back(MakeOrDie("codband", {.dim = kDim}));
      Pool(p).SetPartition(p);
    }
  }

  SharedPool& Pool(std::size_t p) { return *policies_[p]->shared_pool(); }
  Policy& Of(UserId user) { return *policies_[user % kCount]; }

  std::vector<double> Arms() const {
    RandomStream random({event_, 0}, 630);
    std::vector<double> arms(5 * kDim);
    random.FillNormal(arms);
    return arms;
  }
  const std::vector<ItemId> items_ = {11, 12, 13, 14, 15};

  static double Reward(const Decision& decision, bool other_taste) {
    RandomStream random({decision.user, decision.arm}, 631);
    const double sign = other_taste ? -1 : 1;
    return sign * (decision.features[0] - decision.features[1]) + 0.5 * decision.features[2] +
           0.05 * random.Normal();
  }
  LearnOutcome Visit(Policy& policy, UserId user, bool other_taste) {
    const EventKey key{3, event_};
    const std::vector<double> arms = Arms();
    const Decision decision = policy.Choose(user, {arms, kDim, items_}, key);
    ++event_;
    return policy.Learn(decision, Reward(decision, other_taste), key);
  }
  LearnOutcome Visit(UserId user) { return Visit(Of(user), user, user % 2 == 1); }

  void PublishAll() {
    ++version_;
    for (std::size_t p = 0; p < kCount; ++p) {
      ASSERT_TRUE(shelf_.Put(Pool(p).Publish(version_)).ok());
    }
  }
  SharedPool::Merged Merge() {
    auto merged = Pool(0).Merge(shelf_.registers(), last_);
    EXPECT_TRUE(merged.ok()) << merged.status().message();
    last_ = merged.value().imports.begin()->second;
    return std::move(merged).value();
  }
  void Exchange() {
    PublishAll();
    const SharedPool::Merged merged = Merge();
    for (std::uint32_t p = 0; p < kCount; ++p) {
      const Status status = Pool(p).Import(merged.imports.at(p));
      ASSERT_TRUE(status.ok()) << status.message();
    }
  }
  // Rounds of visits of the users from `first` on, an exchange after each.
  void Play(int rounds, UserId first = 0, UserId last = 18) {
    for (int i = 0; i < rounds; ++i) {
      for (UserId user = first; user < last; ++user) Visit(user);
      Exchange();
    }
  }

  std::vector<std::unique_ptr<Policy>> policies_;
  std::uint64_t event_ = 0;
  std::uint64_t version_ = 0;  // of registers
  RegisterShelf shelf_;
  std::string last_;
};

TEST_F(Partitions, LearnEachOthersModels) {
  Play(20);
  for (std::size_t p = 0; p < kCount; ++p) {
    const auto models = policies_[p]->DescribeModels();
    ASSERT_EQ(models.size(), 2U) << p;
    EXPECT_EQ(models[0].observations + models[1].observations, 20U * 18U) << p;
    EXPECT_EQ(models[0].users + models[1].users, 18U) << p;
    EXPECT_NEAR(std::abs(models[0].theta[0]), 1, 0.05);
  }
  // A user who has never been there is served by what others have learned: a few visits tell which
  // of the two tastes they have.
  for (int i = 0; i < 4; ++i) Visit(Of(20), 20, true);
  const auto user = Of(20).DescribeUser(20);
  ASSERT_TRUE(user.has_value());
  EXPECT_EQ(user->model, Of(1).DescribeUser(1)->model);
  EXPECT_GT(user->chance, 0.9);
}

// The sums of all partitions are those of their users, however often models were joined.
TEST_F(Partitions, StateIsThatOfTheRecordsAfterModelsWereJoined) {
  for (int i = 0; i < 12; ++i) {
    for (UserId user = 0; user < 18; ++user) Visit(user);
  }
  std::map<ModelId, int> before;  // each partition has found both tastes by itself
  for (const auto& policy : policies_) {
    for (const ModelDescription& model : policy->DescribeModels()) ++before[model.id];
  }
  ASSERT_GE(before.size(), 2 * kCount);
  // A visit that is under way while the models are joined.
  const std::vector<double> arms = Arms();
  const Decision pending = Of(2).Choose(2, {arms, kDim, items_}, {3, event_});
  const Decision new_user = Of(5).Choose(23, {arms, kDim, items_}, {3, event_});
  ASSERT_GE(pending.model, ModelPool::FirstId(2));
  Exchange();
  for (std::size_t p = 0; p < kCount; ++p) {
    EXPECT_EQ(policies_[p]->model_count(), 2U);
    for (UserId user = p; user < 18; user += kCount) {
      const auto described = policies_[p]->DescribeUser(user);
      EXPECT_LT(described->model, ModelPool::FirstId(1));
      EXPECT_GT(described->chance, 0.9);
    }
  }
  EXPECT_FALSE(Of(2).Learn(pending, Reward(pending, false), {3, event_++}).change_detected);
  Of(5).Learn(new_user, Reward(new_user, false), {3, event_++});
  EXPECT_LT(Of(2).DescribeUser(2)->model, ModelPool::FirstId(1));
  Play(3);
  for (const auto& policy : policies_) {
    // Loading compares the records of all users with the sums.
    const auto loaded = DecodeState(EncodeState(*policy), {.dim = kDim});
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    EXPECT_EQ(Saved(*loaded.value()), Saved(*policy));
  }
  for (UserId user = 0; user < 24; ++user) Of(user).Forget(user);
  Exchange();
  for (const auto& policy : policies_) EXPECT_EQ(policy->model_count(), 0U);
}

TEST_F(Partitions, SavedAndLoadedGoesOnToTheBit) {
  Play(4);
  std::vector<std::unique_ptr<Policy>> copies;
  for (const auto& policy : policies_) {
    copies.push_back(std::move(DecodeState(EncodeState(*policy), {.dim = kDim})).value());
  }
  for (int round = 0; round < 6; ++round) {
    for (UserId user = 0; user < 18; ++user) {
      const std::uint64_t event = event_;
      const bool other_taste = (user % 2 == 1) != (round > 3 && user < 4);
      Visit(*copies[user % kCount], user, other_taste);
      event_ = event;
      Visit(Of(user), user, other_taste);
    }
    PublishAll();
    for (std::uint32_t p = 0; p < kCount; ++p) {
      EXPECT_EQ(copies[p]->shared_pool()->Publish(version_), shelf_.registers()[p]);
    }
    const SharedPool::Merged merged = Merge();
    for (std::uint32_t p = 0; p < kCount; ++p) {
      ASSERT_TRUE(Pool(p).Import(merged.imports.at(p)).ok());
      ASSERT_TRUE(copies[p]->shared_pool()->Import(merged.imports.at(p)).ok());
      EXPECT_EQ(Saved(*copies[p]), Saved(*policies_[p]));
    }
  }
}

// Records that were on disk while models were joined are translated when they are read.
TEST_F(Partitions, RecordsOfTheArchiveAreTranslated) {
  for (int i = 0; i < 12; ++i) {
    for (UserId user = 0; user < 18; ++user) Visit(user);
  }
  PagedUsers& paged = *policies_[1]->paged_users();
  MapArchive archive;
  paged.SetArchive(&archive);
  paged.SaveChangedUsers(
      [&](UserId user, std::string bytes) { archive.records[user] = std::move(bytes); });
  paged.MarkUsersSaved();
  paged.EvictUsers({.users = 0});
  ASSERT_EQ(paged.users_in_memory(), 0U);
  const ModelId before = policies_[1]->DescribeUser(1)->model;
  ASSERT_GE(before, ModelPool::FirstId(1));
  Exchange();
  EXPECT_LT(policies_[1]->DescribeUser(1)->model, ModelPool::FirstId(1));
  const auto all = [&](const PagedUsers::VisitRecord& visit) {
    for (const auto& [user, bytes] : archive.records) {
      if (!visit(user, bytes)) break;
    }
    return Status();
  };
  const Status sound = paged.CheckUsers(all);
  EXPECT_TRUE(sound.ok()) << sound.message();
  EXPECT_FALSE(Visit(1).change_detected);
  EXPECT_TRUE(policies_[1]->Forget(1));
}

TEST_F(Partitions, RegistersMayBeLostRepeatedAndOvertakeEachOther) {
  std::vector<std::string> older;
  for (int i = 0; i < 3; ++i) {
    for (UserId user = 0; user < 18; ++user) Visit(user);
    ++version_;
    for (std::size_t p = 0; p < kCount; ++p) older.push_back(Pool(p).Publish(version_));
  }
  RegisterShelf in_order;
  for (const std::string& bytes : older) EXPECT_TRUE(in_order.Put(bytes).value());
  RegisterShelf mixed;
  for (std::size_t i = 0; i < older.size(); ++i) {
    const std::size_t at = (4 * i + 2) % older.size();
    const bool lost = at == 3;
    ASSERT_TRUE(lost || mixed.Put(older[at]).ok());
    ASSERT_TRUE(mixed.Put(older[(2 * i) % older.size()]).ok());  // again, or for the first time
  }
  EXPECT_EQ(mixed.registers(), in_order.registers());
  EXPECT_FALSE(mixed.Put(older[0]).value());
  EXPECT_FALSE(mixed.Put("nothing").ok());

  const auto merged = Pool(0).Merge(in_order.registers(), {}).value();
  std::vector<std::string> reversed = in_order.registers();
  std::ranges::reverse(reversed);
  EXPECT_EQ(Pool(2).Merge(reversed, {}).value().imports, merged.imports);
  // The pool itself: what is not newer changes nothing.
  ASSERT_TRUE(Pool(1).Import(merged.imports.at(1)).ok());
  EXPECT_EQ(Pool(1).pool_version(), 1U);
  const std::string state = Saved(*policies_[1]);
  ASSERT_TRUE(Pool(1).Import(merged.imports.at(1)).ok());
  EXPECT_EQ(Saved(*policies_[1]), state);
  const auto next = Pool(0).Merge(in_order.registers(), merged.imports.at(0)).value();
  ASSERT_TRUE(Pool(1).Import(next.imports.at(1)).ok());
  ASSERT_TRUE(Pool(1).Import(merged.imports.at(1)).ok());
  EXPECT_EQ(Pool(1).pool_version(), 2U);
}

TEST_F(Partitions, WhatCannotBeImportedChangesNothing) {
  Play(2);
  PublishAll();
  const SharedPool::Merged merged = Merge();
  const std::string state = Saved(*policies_[0]);
  EXPECT_EQ(Pool(0).Import(merged.imports.at(1)).message(), "partition = 1, expected 0");
  std::string damaged = merged.imports.at(0);
  damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 1);
  EXPECT_FALSE(Pool(0).Import(damaged).ok());
  EXPECT_EQ(Saved(*policies_[0]), state);
  const std::vector<std::string> twice = {shelf_.registers()[1], shelf_.registers()[1]};
  EXPECT_EQ(Pool(0).Merge(twice, {}).status().message(),
            "registers: two of partition 1, expected one");
  EXPECT_FALSE(Pool(0).Merge({}, {}).ok());
  const auto alone = MakeOrDie("codband", {.dim = kDim});
  EXPECT_EQ(alone->shared_pool()->Import(merged.imports.at(0)).message(),
            "partition = 0, expected none");
  EXPECT_EQ(MakeOrDie("codband:prior=hawkes", {.dim = kDim})->shared_pool(), nullptr);
  EXPECT_EQ(MakeOrDie("linucb", {.dim = kDim})->shared_pool(), nullptr);
}

// Features that only one partition has met are zeros of the others.
TEST_F(Partitions, AGrownPartitionSharesWithOneThatIsNot) {
  Play(5);
  policies_[0]->Grow(kDim + 2);
  PublishAll();
  const SharedPool::Merged merged = Merge();
  EXPECT_EQ(Pool(1).Import(merged.imports.at(1)).message(), "features = 7, expected at most 5");
  policies_[1]->Grow(kDim + 2);
  ASSERT_TRUE(Pool(0).Import(merged.imports.at(0)).ok());
  ASSERT_TRUE(Pool(1).Import(merged.imports.at(1)).ok());
  EXPECT_EQ(policies_[0]->DescribeModels()[0].theta.size(), kDim + 2);
  for (std::size_t j = 0; j < kDim + 2; ++j) {
    EXPECT_NEAR(policies_[0]->DescribeModels()[0].theta[j],
                policies_[1]->DescribeModels()[0].theta[j], 1e-9);
  }
}

// Who knows the groups of the most columns says which there are, whichever partition it is.
TEST_F(Partitions, APoolHasTheGroupsOfAllColumns) {
  Play(5);
  const std::vector<std::uint32_t> few = {0, 0, 1, 1};
  const std::vector<std::uint32_t> many = {0, 0, 1, 1, 2, 2};
  for (std::size_t p = 0; p < kCount; ++p) {
    dynamic_cast<GroupedFeatures&>(*policies_[p]).SetGroups(p == 1 ? many : few);
  }
  policies_[1]->Grow(kDim + 2);
  PublishAll();
  const SharedPool::Merged merged = Merge();
  EXPECT_EQ(Pool(0).FeaturesOf(merged.imports.at(0)), kDim + 2);
  EXPECT_EQ(Pool(0).FeaturesOf("no pool"), 0U);
  const PoolImport pool = std::move(PoolImport::Decode(merged.imports.at(0))).value();
  ByteReader in(pool.groups);
  ColumnGroups groups;
  groups.Load(in);
  EXPECT_EQ(groups.size(), many.size());
}

// Columns that the pool does not have yet are like all others and those of their group, as where
// there is one server: the pool says how much a group matters.
TEST_F(Partitions, AColumnThatThePoolLacksHasThePriorOfItsGroup) {
  const std::vector<std::uint32_t> groups = {0, 0, 1, 1};
  for (auto& policy : policies_) dynamic_cast<GroupedFeatures&>(*policy).SetGroups(groups);
  Play(20);
  PublishAll();
  const SharedPool::Merged merged = Merge();
  const PoolImport pool = std::move(PoolImport::Decode(merged.imports.at(0))).value();
  ByteReader in(pool.groups);
  ColumnGroups learned;
  learned.Load(in);
  ASSERT_NE(learned.Factor(0), learned.Factor(2));
  const std::vector<std::uint32_t> more = {0, 0, 1, 1, 1, 0};
  dynamic_cast<GroupedFeatures&>(*policies_[0]).SetGroups(more);
  policies_[0]->Grow(kDim + 2);
  ASSERT_TRUE(Pool(0).Import(merged.imports.at(0)).ok());
  ++version_;
  const PoolRegister own = std::move(PoolRegister::Decode(Pool(0).Publish(version_))).value();
  EXPECT_DOUBLE_EQ(own.prior.precision[kDim], learned.common() * learned.Factor(2));
  EXPECT_DOUBLE_EQ(own.prior.precision[kDim + 1], learned.common() * learned.Factor(0));
}

PoolRegister Decoded(const std::string& bytes) {
  return std::move(PoolRegister::Decode(bytes)).value();
}

// A user who lived through several periods leaves nothing behind in the next pool.
TEST_F(Partitions, ForgettingAUserLeavesNoTraceInTheNextPool) {
  Play(15);
  PublishAll();
  const std::vector<std::string> without = shelf_.registers();
  Merge();

  constexpr UserId kGuest = 100;  // on partition 1
  for (int i = 0; i < 120; ++i) {
    Visit(Of(kGuest), kGuest, i / 40 % 2 == 0);
    if (i % 10 == 9) Exchange();
  }
  ASSERT_TRUE(Of(kGuest).Forget(kGuest));
  PublishAll();
  const std::vector<std::string> after = shelf_.registers();
  for (std::size_t p = 0; p < kCount; ++p) {
    const PoolRegister was = Decoded(without[p]);
    const PoolRegister is = Decoded(after[p]);
    ASSERT_EQ(is.sums.models.size(), was.sums.models.size());
    EXPECT_EQ(is.erasures, p == kGuest % kCount ? 1U : 0U);
    for (std::size_t k = 0; k < is.sums.models.size(); ++k) {
      EXPECT_EQ(is.sums.models[k].id, was.sums.models[k].id);
      EXPECT_EQ(is.sums.models[k].periods, was.sums.models[k].periods);
      EXPECT_EQ(is.sums.models[k].data.m(), was.sums.models[k].data.m());
      for (std::size_t i = 0; i < is.sums.models[k].data.S().size(); ++i) {
        EXPECT_NEAR(is.sums.models[k].data.S()[i], was.sums.models[k].data.S()[i], 1e-4);
      }
    }
    ASSERT_EQ(is.sums.items.size(), was.sums.items.size());
    for (std::size_t i = 0; i < is.sums.items.size(); ++i) {
      EXPECT_EQ(is.sums.items[i].shown, was.sums.items[i].shown);
    }
  }
  // The prior is learned anew from the sums: the pools before are not looked at.
  const auto anew = Pool(0).Merge(after, {}).value();
  const auto merged = Merge();
  const auto prior = [](const std::string& bytes) {
    return std::move(PoolImport::Decode(bytes)).value().prior;
  };
  EXPECT_EQ(prior(merged.imports.at(0)).precision, prior(anew.imports.at(0)).precision);
  EXPECT_EQ(prior(merged.imports.at(0)).mean, prior(anew.imports.at(0)).mean);
  EXPECT_EQ(prior(merged.imports.at(0)).noise_variance, prior(anew.imports.at(0)).noise_variance);
}

TEST_F(Partitions, NewsAreModelsPeriodsAndKnowledge) {
  EXPECT_TRUE(Pool(0).HasNews());  // that it is there
  Pool(0).Publish(1);
  EXPECT_FALSE(Pool(0).HasNews());
  Visit(0);
  EXPECT_TRUE(Pool(0).HasNews());
  Play(30);
  PublishAll();
  EXPECT_FALSE(Pool(0).HasNews());
  Visit(0);
  EXPECT_FALSE(Pool(0).HasNews());  // one of hundreds
  for (int i = 0; i < 6; ++i) Visit(0);
  EXPECT_FALSE(Pool(0).HasNews());  // others may wait for so few
  for (int i = 0; i < 60; ++i) Visit(0);
  EXPECT_TRUE(Pool(0).HasNews());
}

}  // namespace
}  // namespace codband
