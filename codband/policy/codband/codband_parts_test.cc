// One policy becomes partitions, and partitions become one (shared_pool.h).
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "codband/policy/shared_pool.h"
#include "codband/policy/test_support.h"

namespace codband {
namespace {

// Records as a checkpoint has stored them.
class Archive final : public UserArchive {
 public:
  bool Read(UserId user, std::string& bytes) const override {
    const auto found = records.find(user);
    if (found == records.end()) return false;
    bytes = found->second;
    return true;
  }
  std::map<UserId, std::string> records;
};

// A policy whose users are all in an archive, and may be in memory as well.
struct Kept {
  explicit Kept(const std::string& spec) : policy(MakeOrDie(spec, {.dim = 1})) {
    policy->paged_users()->SetArchive(&archive);
  }
  Kept(const std::string& spec, std::string_view shared) : Kept(spec) {
    ByteReader in(shared);
    policy->paged_users()->LoadShared(in);
    in.ExpectEnd();
    EXPECT_TRUE(in.ok()) << in.status().ToString();
  }

  std::string Checkpoint() {
    policy->paged_users()->SaveChangedUsers(
        [&](UserId user, std::string bytes) { archive.records[user] = std::move(bytes); });
    policy->paged_users()->MarkUsersSaved();
    ByteWriter out;
    policy->paged_users()->SaveShared(out);
    return out.Take();
  }
  Status VisitAll(const PagedUsers::VisitRecord& visit) const {
    for (const auto& [user, record] : archive.records) {
      if (!visit(user, record)) break;
    }
    return {};
  }
  Status Check() const {
    return policy->paged_users()->CheckUsers(
        [&](const PagedUsers::VisitRecord& visit) { return VisitAll(visit); });
  }

  Archive archive;
  std::unique_ptr<Policy> policy;
};

// Users with four tastes who change now and then, among them visitors without an id, items with
// effects and columns in different units.
struct Town {
  static constexpr std::size_t kDim = 5;
  static constexpr std::size_t kItems = 10;
  static constexpr std::uint64_t kUsers = 24;

  Town() {
    RandomStream random({11, 0}, 650);
    for (auto& theta : thetas) {
      theta.resize(kDim);
      random.FillNormal(theta);
    }
    for (ItemId item = 0; item < kItems; ++item) items.push_back(77 * item + 5);
    effects.resize(kItems);
    random.FillNormal(effects);
  }
  static UserId IdOf(std::uint64_t number) {
    if (number == kUsers - 1) return kNobody;
    return (number + 1) * 0x9e37'79b9'7f4a'7c15;
  }
  std::vector<double> Offer(std::uint64_t event) const {
    RandomStream random({12, event}, 651);
    std::vector<double> features(kItems * kDim);
    random.FillNormal(features);
    for (std::size_t i = 0; i < kItems; ++i) features[i * kDim + 4] *= 100;
    return features;
  }
  double Reward(const Decision& decision, std::uint64_t number, std::uint64_t event) const {
    RandomStream random({13, event}, 652);
    const std::size_t taste = (number + (event > 900 && number % 5 == 0 ? 1 : 0)) % thetas.size();
    std::vector<double> x = decision.features;
    x[4] /= 100;
    return linalg::Dot(x, thetas[taste]) + effects[(decision.item - 5) / 77] +
           0.1 * random.Normal();
  }
  void Visit(Policy& policy, std::uint64_t event) const {
    const std::uint64_t number = event % kUsers;
    const std::vector<double> features = Offer(event);
    const Decision decision = policy.Choose(IdOf(number), {features, kDim, items}, {3, event});
    policy.Learn(decision, Reward(decision, number, event), {3, event});
  }

  std::vector<std::vector<double>> thetas = std::vector<std::vector<double>>(4);
  std::vector<ItemId> items;
  std::vector<double> effects;
};

class CodbandPartsTest : public testing::Test {
 protected:
  static std::uint32_t PartitionOf(UserId user, std::uint32_t partitions) {
    return static_cast<std::uint32_t>(((user >> 32) * partitions) >> 32);
  }

  void Learn(const std::string& spec, std::uint64_t visits) {
    spec_ = spec;
    alone_ = std::make_unique<Kept>(spec);
    alone_->policy->Grow(Town::kDim);
    for (event_ = 0; event_ < visits; ++event_) town_.Visit(*alone_->policy, event_);
  }
  // In partitions, which exchange registers now and then. Those without an id come to any of them,
  // or not at all.
  void GoOn(std::span<const std::unique_ptr<Kept>> parts, std::uint64_t end, bool nobody) {
    const auto count = static_cast<std::uint32_t>(parts.size());
    std::uint64_t version = 1;
    std::uint32_t next = 0;
    for (; event_ < end; ++event_) {
      const UserId user = Town::IdOf(event_ % Town::kUsers);
      if (user != kNobody) {
        town_.Visit(*parts[PartitionOf(user, count)]->policy, event_);
      } else if (nobody) {
        town_.Visit(*parts[next++ % count]->policy, event_);
      }
      if (event_ % 50 == 49) Exchange(parts, ++version);
    }
    Exchange(parts, ++version);
  }

  std::vector<std::unique_ptr<Kept>> Split(std::uint32_t partitions) {
    const std::string before = alone_->Checkpoint();
    const auto of = [&](UserId user) { return PartitionOf(user, partitions); };
    const auto parts = alone_->policy->shared_pool()->Split(
        partitions, of,
        [&](const PagedUsers::VisitRecord& visit) { return alone_->VisitAll(visit); });
    EXPECT_TRUE(parts.ok()) << parts.status().ToString();
    std::vector<std::unique_ptr<Kept>> kept;
    for (std::uint32_t p = 0; p < partitions; ++p) {
      kept.push_back(std::make_unique<Kept>(spec_, parts.value()[p].shared));
      const Status imported = kept.back()->policy->shared_pool()->Import(parts.value()[p].import);
      EXPECT_TRUE(imported.ok()) << imported.ToString();
      for (const auto& [user, record] : alone_->archive.records) {
        if (of(user) == p) kept.back()->archive.records[user] = record;
      }
    }
    last_pool_ = parts.value()[0].import;
    return kept;
  }

  // Registers are exchanged once.
  void Exchange(std::span<const std::unique_ptr<Kept>> parts, std::uint64_t version) {
    std::vector<std::string> registers;
    for (const auto& part : parts)
      registers.push_back(part->policy->shared_pool()->Publish(version));
    const auto merged = parts[0]->policy->shared_pool()->Merge(registers, last_pool_);
    ASSERT_TRUE(merged.ok()) << merged.status().ToString();
    for (std::uint32_t p = 0; p < parts.size(); ++p) {
      ASSERT_TRUE(parts[p]->policy->shared_pool()->Import(merged.value().imports.at(p)).ok());
    }
    last_pool_ = merged.value().imports.at(0);
  }

  std::unique_ptr<Kept> Join(std::span<const std::unique_ptr<Kept>> parts) {
    std::vector<SharedPool::Joined> all;
    for (const auto& part : parts) {
      part->Checkpoint();
      const auto nobody = part->archive.records.find(kNobody);
      all.push_back({.policy = part->policy.get(),
                     .nobody = nobody == part->archive.records.end() ? "" : nobody->second});
    }
    auto joining = parts[0]->policy->shared_pool()->Join(all);
    EXPECT_TRUE(joining.ok()) << joining.status().ToString();
    std::map<UserId, std::string> records;
    for (std::uint32_t p = 0; p < parts.size(); ++p) {
      for (const auto& [user, record] : parts[p]->archive.records) {
        if (user == kNobody) continue;
        auto taken = joining.value()->Take(p, record);
        EXPECT_TRUE(taken.ok()) << taken.status().ToString();
        records[user] = std::move(taken).value();
      }
    }
    if (!joining.value()->nobody().empty()) records[kNobody] = joining.value()->nobody();
    auto whole = std::make_unique<Kept>(spec_, joining.value()->Finish());
    whole->archive.records = std::move(records);
    joining_ = std::move(joining).value();
    return whole;
  }

  // Means and widths that a user is expected to give; one without a record if it is not known.
  static std::vector<double> Expected(const Kept& kept, UserId user) {
    const Town town;
    Ranking ranking;
    std::vector<double> out;
    for (std::uint64_t i = 0; i < 3; ++i) {
      const std::vector<double> features = town.Offer(1'000'000 + i);
      kept.policy->Rank(user, {features, Town::kDim, town.items}, {4, i}, 0, ranking);
      for (const Ranking::Arm& arm : ranking.arms) {
        out.push_back(arm.mean);
        out.push_back(arm.width);
      }
    }
    return out;
  }
  // `tolerance`: sums are added up in another order, which changes their last digits, and models
  // are factorised anew from them; means are as large as 100.
  static void ExpectSame(const std::vector<double>& one, const std::vector<double>& other,
                         UserId user, double tolerance = 1e-9) {
    ASSERT_EQ(one.size(), other.size());
    for (std::size_t i = 0; i < one.size(); ++i) {
      ASSERT_NEAR(one[i], other[i], tolerance * std::max(1.0, std::abs(one[i])))
          << user << " at " << i;
    }
  }
  static std::vector<UserId> Users() {
    std::vector<UserId> users;
    for (std::uint64_t i = 0; i < Town::kUsers; ++i) users.push_back(Town::IdOf(i));
    return users;
  }
  static std::uint64_t Observations(const Policy& policy) {
    std::uint64_t sum = 0;
    for (const ModelDescription& model : policy.DescribeModels()) sum += model.observations;
    return sum;
  }

  const Town town_;
  std::string spec_;
  std::uint64_t event_ = 0;
  std::unique_ptr<Kept> alone_;
  std::string last_pool_;
  std::unique_ptr<SharedPool::Joining> joining_;
};

// The default, all closed periods kept, and without parts of it.
const char* const kSpecs[] = {"codband", "codband:history=0",
                              "codband:items=none,departure=none,outliers=kept"};

TEST_F(CodbandPartsTest, EveryPartitionExpectsOfItsUsersWhatTheWholeDid) {
  for (const char* const spec : kSpecs) {
    Learn(spec, 1500);
    ASSERT_GT(alone_->policy->model_count(), 1U);
    for (const std::uint32_t partitions : {1U, 4U, 16U}) {
      const auto parts = Split(partitions);
      for (const auto& part : parts) {
        EXPECT_TRUE(part->Check().ok()) << part->Check().ToString();
        EXPECT_EQ(Observations(*part->policy), Observations(*alone_->policy));
        EXPECT_EQ(part->policy->model_count(), alone_->policy->model_count());
      }
      for (const UserId user : Users()) {
        const Kept& part = *parts[PartitionOf(user, partitions)];
        ExpectSame(Expected(part, user), Expected(*alone_, user), user);
      }
      // Somebody new is the same everywhere.
      for (const auto& part : parts) ExpectSame(Expected(*part, 7), Expected(*alone_, 7), 7);
      for (const ItemId item : town_.items) {
        const auto before = alone_->policy->DescribeItem(item);
        const auto after = parts.back()->policy->DescribeItem(item);
        ASSERT_EQ(before.has_value(), after.has_value());
        if (!before) continue;
        EXPECT_EQ(before->shown, after->shown);
        EXPECT_NEAR(before->reward, after->reward, 1e-6);
        EXPECT_NEAR(before->effect, after->effect, 1e-9);
      }
    }
  }
}

TEST_F(CodbandPartsTest, WhatWasSplitIsTheSameWhenItIsJoined) {
  for (const char* const spec : kSpecs) {
    Learn(spec, 1500);
    for (const std::uint32_t partitions : {1U, 4U, 16U}) {
      const auto parts = Split(partitions);
      const auto whole = Join(parts);
      EXPECT_TRUE(whole->Check().ok()) << whole->Check().ToString();
      EXPECT_EQ(whole->archive.records.size(), alone_->archive.records.size());
      for (const UserId user : Users()) {
        ExpectSame(Expected(*whole, user), Expected(*alone_, user), user);
      }
      ASSERT_EQ(whole->policy->model_count(), alone_->policy->model_count());
      const auto models = whole->policy->DescribeModels();
      const auto before = alone_->policy->DescribeModels();
      for (std::size_t k = 0; k < models.size(); ++k) {
        EXPECT_EQ(models[k].id, before[k].id);
        EXPECT_EQ(models[k].users, before[k].users);
        EXPECT_EQ(models[k].periods, before[k].periods);
        EXPECT_EQ(models[k].observations, before[k].observations);
      }
    }
  }
}

// Partitions go on for a while, each makes models and items known of its own, and pools join
// some; then they become one, and it others again.
TEST_F(CodbandPartsTest, WhatPartitionsLearnTogetherIsKeptWhenTheyBecomeOne) {
  constexpr std::uint32_t kParts = 4;
  Learn("codband", 200);
  const auto parts = Split(kParts);
  GoOn(parts, 2000, false);
  const auto whole = Join(parts);
  EXPECT_TRUE(whole->Check().ok()) << whole->Check().ToString();
  EXPECT_EQ(whole->archive.records.size(), Town::kUsers);
  EXPECT_EQ(Observations(*whole->policy), Observations(*parts[0]->policy));
  // Models are the same under other names.
  std::map<ModelId, ModelDescription> models;
  for (const ModelDescription& model : whole->policy->DescribeModels()) {
    EXPECT_LT(model.id, std::uint64_t{1} << 44);
    models[model.id] = model;
  }
  std::size_t compared = 0;
  for (const ModelDescription& model : parts[0]->policy->DescribeModels()) {
    const ModelId name = joining_->NameOf(model.id);
    ASSERT_TRUE(models.contains(name)) << model.id;
    ++compared;
    EXPECT_EQ(models[name].users, model.users);
    EXPECT_EQ(models[name].periods, model.periods);
    EXPECT_EQ(models[name].observations, model.observations);
    for (std::size_t j = 0; j < Town::kDim; ++j) {
      EXPECT_NEAR(models[name].theta[j], model.theta[j], 1e-9);
    }
  }
  EXPECT_GT(compared, 2U);
  EXPECT_EQ(compared, models.size());
  for (const UserId user : Users()) {
    const auto before = parts[PartitionOf(user, kParts)]->policy->DescribeUser(user);
    EXPECT_EQ(whole->policy->DescribeUser(user)->model, joining_->NameOf(before->model));
  }
  for (const ItemId item : town_.items) {
    const auto before = parts[1]->policy->DescribeItem(item);
    const auto after = whole->policy->DescribeItem(item);
    ASSERT_EQ(before.has_value(), after.has_value());
    if (!before) continue;
    EXPECT_EQ(before->shown, after->shown);
    EXPECT_NEAR(before->effect, after->effect, 1e-9);
  }
  // It goes on, and into another number of partitions.
  for (; event_ < 2400; ++event_) town_.Visit(*whole->policy, event_);
  EXPECT_TRUE((whole->Checkpoint(), whole->Check().ok())) << whole->Check().ToString();
  alone_ = Join(parts);
  const auto again = Split(16);
  for (const UserId user : Users()) {
    ExpectSame(Expected(*again[PartitionOf(user, 16)], user), Expected(*alone_, user), user);
  }
}

TEST_F(CodbandPartsTest, ThoseWithoutAnIdBecomeOneUser) {
  constexpr std::uint32_t kParts = 4;
  Learn("codband", 200);
  const auto parts = Split(kParts);
  GoOn(parts, 2000, true);
  std::uint64_t visits = 0;
  for (const auto& part : parts) visits += part->policy->DescribeUser(kNobody)->observations;
  const auto whole = Join(parts);
  EXPECT_TRUE(whole->Check().ok()) << whole->Check().ToString();
  EXPECT_EQ(whole->archive.records.size(), Town::kUsers);
  EXPECT_EQ(whole->policy->DescribeUser(kNobody)->observations, visits);
  EXPECT_EQ(Observations(*whole->policy), Observations(*parts[0]->policy));
  for (const ItemId item : town_.items) {
    EXPECT_EQ(whole->policy->DescribeItem(item)->shown,
              parts[1]->policy->DescribeItem(item)->shown);
  }
  // What they have brought can be taken out as ever.
  for (const UserId user : Users()) EXPECT_TRUE(whole->policy->Forget(user));
  EXPECT_EQ(whole->policy->model_count(), 0U);
}

// A repair has dropped users, of whom the models know still.
TEST_F(CodbandPartsTest, WhatIsNobodysGoesToTheFirstPartition) {
  Learn("codband", 1500);
  alone_->Checkpoint();
  for (const std::uint64_t number : {2U, 3U, 7U}) alone_->archive.records.erase(Town::IdOf(number));
  EXPECT_FALSE(alone_->Check().ok());
  const auto left = alone_->archive.records;
  const auto parts = Split(4);
  for (const auto& part : parts) {
    EXPECT_EQ(Observations(*part->policy), Observations(*alone_->policy));
    EXPECT_EQ(part->Check().ok(), part == parts[0] ? false : true);
  }
  EXPECT_EQ(Observations(*Join(parts)->policy), Observations(*alone_->policy));
}

TEST_F(CodbandPartsTest, APartitionIsNotSplit) {
  Learn("codband", 100);
  const auto parts = Split(2);
  const auto again = parts[1]->policy->shared_pool()->Split(
      2, [](UserId) { return 0U; }, [](const PagedUsers::VisitRecord&) { return Status(); });
  EXPECT_EQ(again.status().code(), StatusCode::kInvalidArgument);
  const auto swapped = parts[0]->policy->shared_pool()->Join(
      {{.policy = parts[1]->policy.get()}, {.policy = parts[0]->policy.get()}});
  EXPECT_EQ(swapped.status().code(), StatusCode::kInvalidArgument);
}

// Users can be forgotten as ever: with the last of them nothing is left anywhere.
TEST_F(CodbandPartsTest, WhoIsForgottenAfterwardsIsTakenOutOfAllPartitions) {
  Learn("codband", 1500);
  const auto parts = Split(4);
  const UserId user = Town::IdOf(3);
  const std::uint64_t all = Observations(*alone_->policy);
  ASSERT_TRUE(alone_->policy->Forget(user));
  const std::uint64_t rest = Observations(*alone_->policy);
  ASSERT_LT(rest, all);
  ASSERT_TRUE(parts[PartitionOf(user, 4)]->policy->Forget(user));
  Exchange(parts, 2);
  for (const auto& part : parts) EXPECT_EQ(Observations(*part->policy), rest);
  for (const UserId each : Users()) {
    parts[PartitionOf(each, 4)]->policy->Forget(each);
  }
  Exchange(parts, 3);
  for (const auto& part : parts) EXPECT_EQ(part->policy->model_count(), 0U);
}

}  // namespace
}  // namespace codband
