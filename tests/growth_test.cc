// Features that come later (Policy::Grow): a policy that has grown equals one that had them from
// the start, with zeros in them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "codband/base/file.h"
#include "codband/policy/learn_memo.h"
#include "codband/policy/paged_users.h"
#include "codband/policy/state_file.h"
#include "codband/policy/test_support.h"
#include "tests/policy_specs.h"

namespace codband {
namespace {

constexpr std::size_t kNarrow = TestWorld::kDim;
constexpr std::size_t kWide = 9;
constexpr std::uint64_t kGrowsAt = 330;  // users have changed once by then

// Visits of the test world whose arms have more features from kGrowsAt on.
class GrowingWorld {
 public:
  explicit GrowingWorld(std::uint64_t seed) : seed_(seed), world_(seed) {}

  PolicyContext context(std::size_t dim) const {
    PolicyContext context = world_.context();
    context.dim = dim;
    return context;
  }

  std::vector<double> Arms() const {
    RandomStream random({seed_, world_.step()}, 700);
    const std::vector<double> narrow = world_.Arms();
    std::vector<double> wide;
    for (std::size_t arm = 0; arm < TestWorld::kArms; ++arm) {
      const auto first = narrow.begin() + static_cast<std::ptrdiff_t>(arm * kNarrow);
      wide.insert(wide.end(), first, first + kNarrow);
      for (std::size_t i = kNarrow; i < kWide; ++i) {
        // The last one comes later still, and is a name that most arms lack.
        const double value = random.Normal();
        const bool there = world_.step() >= kGrowsAt && (i + 1 < kWide || value > 1);
        wide.push_back(there ? value : 0);
      }
    }
    return wide;
  }

  UserId user() const { return world_.step() % TestWorld::kUsers; }
  EventKey key() const { return {seed_, world_.step()}; }
  double Reward(const Decision& decision) const {
    Decision narrow = decision;
    narrow.features.resize(kNarrow);
    return world_.Reward(narrow) + 0.5 * decision.features[kNarrow];
  }
  void Next() { world_.set_step(world_.step() + 1); }
  std::uint64_t step() const { return world_.step(); }

  Decision Visit(const Policy& wide) const {
    const std::vector<double> arms = Arms();
    return wide.Choose(user(), {arms, kWide}, key());
  }

 private:
  std::uint64_t seed_;
  TestWorld world_;
};

// As if it had come before there were more features.
Decision Narrowed(Decision decision) {
  decision.features.resize(kNarrow);
  return decision;
}

std::string SpecOf(const std::string& spec) {
  return MakeOrDie(spec, GrowingWorld(1).context(kNarrow))->spec();
}

void ExpectAlike(const Policy& a, const Policy& b, const GrowingWorld& world) {
  EXPECT_EQ(a.dim(), b.dim());
  EXPECT_EQ(a.model_count(), b.model_count());
  const std::vector<double> arms = world.Arms();
  for (UserId user = 0; user <= TestWorld::kUsers; ++user) {
    const Decision of_a = a.Choose(user, {arms, kWide}, {3, user});
    const Decision of_b = b.Choose(user, {arms, kWide}, {3, user});
    EXPECT_EQ(of_a.arm, of_b.arm) << user;
    EXPECT_EQ(of_a.period, of_b.period) << user;
    EXPECT_EQ(of_a.model, of_b.model) << user;
    EXPECT_NEAR(of_a.mean, of_b.mean, 1e-9) << user;
    EXPECT_NEAR(of_a.width, of_b.width, 1e-9) << user;
    EXPECT_NEAR(of_a.score, of_b.score, 1e-9) << user;
  }
}

class GrowthTest : public testing::TestWithParam<std::string> {
 protected:
  std::string spec() const { return SpecOf(GetParam()); }
};

TEST_P(GrowthTest, EqualsHavingHadTheFeaturesFromTheStart) {
  GrowingWorld world(31);
  const auto wide = MakeOrDie(spec(), world.context(kWide));
  const auto grown = MakeOrDie(spec(), world.context(kNarrow));
  int changes = 0;
  for (; world.step() < 700; world.Next()) {
    const Decision decision = world.Visit(*wide);
    const double reward = world.Reward(decision);
    if (world.step() == kGrowsAt) {
      grown->Grow(kWide - 1);
      grown->Grow(kWide);
      ExpectAlike(*grown, *wide, world);
    }
    const bool narrow = world.step() < kGrowsAt;
    const LearnOutcome expected = wide->Learn(decision, reward, world.key());
    const LearnOutcome outcome =
        grown->Learn(narrow ? Narrowed(decision) : decision, reward, world.key());
    ASSERT_EQ(outcome.change_detected, expected.change_detected) << world.step();
    ASSERT_EQ(outcome.after, expected.after) << world.step();
    changes += expected.change_detected;
  }
  ExpectAlike(*grown, *wide, world);
  if (GetParam().starts_with("codband")) {
    EXPECT_GT(changes, 5);
  }
  // Users who were there before and after; what they brought is gone.
  for (UserId user = 0; user < TestWorld::kUsers; user += 2) {
    EXPECT_EQ(grown->Forget(user), wide->Forget(user));
  }
  ExpectAlike(*grown, *wide, world);
}

TEST_P(GrowthTest, SavedStateLoadsIntoAPolicyWithFewerFeatures) {
  GrowingWorld world(32);
  const auto policy = MakeOrDie(spec(), world.context(kNarrow));
  for (; world.step() < 700; world.Next()) {
    if (world.step() == kGrowsAt) policy->Grow(kWide);
    Decision decision;
    std::vector<double> arms = world.Arms();
    if (policy->dim() == kNarrow) {
      for (std::size_t arm = 0; arm < TestWorld::kArms; ++arm) {
        std::copy_n(arms.begin() + static_cast<std::ptrdiff_t>(arm * kWide), kNarrow,
                    arms.begin() + static_cast<std::ptrdiff_t>(arm * kNarrow));
      }
      arms.resize(TestWorld::kArms * kNarrow);
    }
    policy->Choose(world.user(), {arms, policy->dim()}, world.key(), decision);
    Decision padded = decision;
    padded.features.resize(kWide);
    policy->Learn(decision, world.Reward(padded), world.key());
    if (world.step() % 100 != 0 && world.step() != kGrowsAt) continue;
    const std::string saved = Saved(*policy);
    const auto restored = MakeOrDie(spec(), world.context(2));
    ByteReader in(saved);
    restored->LoadState(in);
    in.ExpectEnd();
    ASSERT_TRUE(in.ok()) << in.status().ToString();
    ASSERT_EQ(restored->dim(), policy->dim());
    ASSERT_EQ(Saved(*restored), saved) << world.step();
  }
  // The envelope makes the policy itself, and grows it as far as the caller has features.
  const auto restored = DecodeState(EncodeState(*policy), world.context(kWide + 2));
  ASSERT_TRUE(restored.ok()) << restored.status().ToString();
  policy->Grow(kWide + 2);
  EXPECT_EQ(Saved(*restored.value()), Saved(*policy));
}

TEST_P(GrowthTest, DecisionWithFewerFeaturesHasZerosBehindThem) {
  GrowingWorld world(33);
  const auto padded = MakeOrDie(spec(), world.context(kWide));
  const auto plain = MakeOrDie(spec(), world.context(kWide));
  for (; world.step() < 200; world.Next()) {
    const Decision decision = world.Visit(*plain);
    const double reward = world.Reward(decision);
    plain->Learn(decision, reward, world.key());
    padded->Learn(Narrowed(decision), reward, world.key());
  }
  EXPECT_EQ(Saved(*padded), Saved(*plain));
}

TEST_P(GrowthTest, CopiesThatReplayAMemoGrowAlike) {
  GrowingWorld world(34);
  const auto recording = MakeOrDie(spec(), world.context(kNarrow));
  const auto replaying = MakeOrDie(spec(), world.context(kNarrow));
  const auto wide = MakeOrDie(spec(), world.context(kWide));
  LearnMemo memo;
  for (; world.step() < 500; world.Next()) {
    const Decision decision = world.Visit(*wide);
    const double reward = world.Reward(decision);
    memo.StartRecording();
    for (Policy* const policy : {recording.get(), replaying.get()}) {
      if (world.step() == kGrowsAt) policy->Grow(kWide);
      policy->Learn(policy->dim() == kWide ? decision : Narrowed(decision), reward, world.key(),
                    &memo);
      memo.StartReplay();
    }
    wide->Learn(decision, reward, world.key());
  }
  EXPECT_EQ(Saved(*recording), Saved(*replaying));
}

std::string SharedOf(Policy& policy) {
  ByteWriter out;
  policy.paged_users()->SaveShared(out);
  return out.bytes();
}

TEST_P(GrowthTest, RecordsOfEvictedUsersGrowWhenTheyAreReadBack) {
  GrowingWorld world(35);
  const auto in_memory = MakeOrDie(spec(), world.context(kNarrow));
  const auto paged = MakeOrDie(spec(), world.context(kNarrow));
  const auto wide = MakeOrDie(spec(), world.context(kWide));
  PagedUsers* const users = paged->paged_users();
  if (users == nullptr) GTEST_SKIP() << "keeps everything in memory";
  MapArchive archive;
  users->SetArchive(&archive);
  for (; world.step() < 700; world.Next()) {
    if (world.step() % 50 == 0 || world.step() == kGrowsAt) {
      users->SaveChangedUsers(
          [&](UserId user, std::string bytes) { archive.records[user] = std::move(bytes); });
      users->MarkUsersSaved();
      users->EvictUsers({.users = 0});
    }
    if (world.step() == kGrowsAt) {
      in_memory->Grow(kWide);
      paged->Grow(kWide);
      // Looking at a user who is in the archive, with the features of before, changes nothing.
      ExpectAlike(*in_memory, *paged, world);
    }
    const Decision decision = world.Visit(*wide);
    const double reward = world.Reward(decision);
    const Decision seen = paged->dim() == kWide ? decision : Narrowed(decision);
    ASSERT_EQ(in_memory->Learn(seen, reward, world.key()).after,
              paged->Learn(seen, reward, world.key()).after);
    wide->Learn(decision, reward, world.key());
  }
  users->SaveChangedUsers(
      [&](UserId user, std::string bytes) { archive.records[user] = std::move(bytes); });
  in_memory->paged_users()->SaveChangedUsers([&](UserId user, const std::string& bytes) {
    EXPECT_EQ(archive.records[user], bytes) << user;
  });
  const std::string shared = SharedOf(*paged);
  EXPECT_EQ(SharedOf(*in_memory), shared);
  const auto all = [&](const PagedUsers::VisitRecord& visit) {
    for (const auto& [user, bytes] : archive.records) {
      if (!visit(user, bytes)) break;
    }
    return Status();
  };
  EXPECT_TRUE(users->CheckUsers(all).ok()) << users->CheckUsers(all).ToString();

  // A restart: the shared state and the archive go on in a policy made with fewer features.
  const auto restarted = MakeOrDie(spec(), world.context(2));
  restarted->paged_users()->SetArchive(&archive);
  ByteReader in(shared);
  restarted->paged_users()->LoadShared(in);
  in.ExpectEnd();
  ASSERT_TRUE(in.ok()) << in.status().ToString();
  ASSERT_EQ(restarted->dim(), kWide);
  for (; world.step() < 800; world.Next()) {
    const Decision decision = world.Visit(*paged);
    const double reward = world.Reward(decision);
    ASSERT_EQ(restarted->Learn(decision, reward, world.key()).after,
              paged->Learn(decision, reward, world.key()).after);
  }
}

std::map<UserId, std::string> RecordsOf(Policy& policy) {
  std::map<UserId, std::string> records;
  policy.paged_users()->SaveChangedUsers(
      [&](UserId user, std::string bytes) { records[user] = std::move(bytes); });
  return records;
}

// A state of format 4 as a server's directory has it: users in the archive, in records of format 4,
// which do not tell their number of features, read when the policy has more.
TEST(OldRecordsTest, RecordsOfFormatFourInAnArchiveAreReadAfterGrowth) {
  // Of the file: what is shared, the number of users, for each their id and their record, the rest.
  constexpr std::size_t kState = 7269;
  constexpr std::size_t kShared = 2161;
  constexpr std::size_t kRecord = 828;
  const auto bytes = ReadFile(fmt::format("{}/tests/states/codband.format4", CODBAND_SOURCE_DIR));
  ASSERT_TRUE(bytes.ok()) << bytes.status().ToString();
  std::string_view state = bytes.value();
  state = state.substr(state.size() - sizeof(std::uint32_t) - kState, kState);
  std::string_view users = state.substr(kShared + sizeof(std::uint64_t));
  MapArchive archive;
  for (UserId user = 0; user < TestWorld::kUsers; ++user) {
    archive.records[user] = users.substr(sizeof(UserId), kRecord);
    users.remove_prefix(sizeof(UserId) + kRecord);
  }
  const std::string shared = std::string(state.substr(0, kShared)).append(users);
  TestWorld world(41);
  const auto paged = MakeOrDie("codband", world.context());
  paged->paged_users()->SetArchive(&archive);
  ByteReader in(shared);
  paged->paged_users()->LoadShared(in);
  in.ExpectEnd();
  ASSERT_TRUE(in.ok()) << in.status().ToString();
  auto in_memory = DecodeState(bytes.value(), world.context());
  ASSERT_TRUE(in_memory.ok()) << in_memory.status().ToString();
  paged->Grow(kWide);
  in_memory.value()->Grow(kWide);
  ExpectAlike(*in_memory.value(), *paged, GrowingWorld(41));  // reads without keeping
  GrowingWorld growing(41);
  while (growing.step() < kGrowsAt) growing.Next();
  for (; growing.step() < 2 * kGrowsAt; growing.Next()) {
    if (growing.step() % 50 == 0) {
      paged->paged_users()->SaveChangedUsers(
          [&](UserId user, std::string record) { archive.records[user] = std::move(record); });
      paged->paged_users()->MarkUsersSaved();
      paged->paged_users()->EvictUsers({.users = 0});
    }
    const Decision decision = growing.Visit(*in_memory.value());
    const double reward = growing.Reward(decision);
    ASSERT_EQ(in_memory.value()->Learn(decision, reward, growing.key()).after,
              paged->Learn(decision, reward, growing.key()).after)
        << growing.step();
  }
  paged->paged_users()->SaveChangedUsers(
      [&](UserId user, std::string record) { archive.records[user] = std::move(record); });
  EXPECT_EQ(RecordsOf(*in_memory.value()), archive.records);
}

INSTANTIATE_TEST_SUITE_P(EveryPolicy, GrowthTest, testing::ValuesIn(RegisteredSpecs()), NameOfSpec);

}  // namespace
}  // namespace codband
