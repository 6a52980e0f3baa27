#include "codband/engine/name_hash.h"

#include <gtest/gtest.h>

#include <string>

#include "codband/engine/engine_testing.h"
#include "codband/engine/records.h"

namespace codband::engine {
namespace {

// Two names with the same hash, as anybody can make them up where there is no secret.
constexpr const char* kCustomer = "customer-1109";
constexpr const char* kForged = "&/(Q4~R)";

TEST(NameHashTest, ASecretSeparatesNamesThatWereMadeUp) {
  ASSERT_EQ(HashUser(kCustomer), HashUser(kForged));
  ASSERT_EQ(NameHash().Item(kCustomer), NameHash().Item(kForged));
  const NameHash one({.low = 1, .high = 2});
  const NameHash other({.low = 1, .high = 3});
  EXPECT_NE(one.User(kCustomer), one.User(kForged));
  EXPECT_NE(one.Item(kCustomer), one.Item(kForged));
  EXPECT_NE(one.User(kCustomer), other.User(kCustomer));
  EXPECT_EQ(NameHash().User("ann"), HashUser("ann"));
}

std::optional<SipKey> SecretOf(const EngineBox& box) {
  const auto store = store::OpenRocksDbStore(box.directory(), {.read_only = true});
  std::string bytes;
  EXPECT_TRUE(store.value()->Get(store::Table::kMeta, Identity::kKey, bytes).ok());
  return Identity::Decode(bytes).value().name_secret;
}

TEST(NameHashTest, EveryNewDirectoryHasASecretOfItsOwn) {
  EngineBox given({.name_secret = SipKey{.low = 7, .high = 8}});
  given.Close();
  EXPECT_EQ(SecretOf(given), (SipKey{.low = 7, .high = 8}));
  std::vector<SipKey> drawn;
  for (int i = 0; i < 2; ++i) {
    const TempDirectory directory;
    auto engine = Engine::Open(store::OpenRocksDbStore(directory.path()).value(), {.dim = 3});
    ASSERT_TRUE(engine.ok());
    engine.value().reset();
    const auto store = store::OpenRocksDbStore(directory.path(), {.read_only = true});
    std::string bytes;
    ASSERT_TRUE(store.value()->Get(store::Table::kMeta, Identity::kKey, bytes).ok());
    drawn.push_back(Identity::Decode(bytes).value().name_secret.value());
  }
  EXPECT_NE(drawn[0], drawn[1]);
}

// A directory of before: it has no secret.
void MakeOld(EngineBox& box) {
  box.Close();
  {
    auto store = store::OpenRocksDbStore(box.directory());
    store::StoreBatch batch;
    Identity{.dim = 3, .created_ms = 1, .version = "0.0.9"}.Put(batch);
    ASSERT_TRUE(store.value()->Write(batch, true).ok());
  }
  box.Open();
}

void ExpectMistaken(const Status& status) {
  EXPECT_EQ(status.code(), StatusCode::kConflict);
  EXPECT_EQ(status.message(),
            "userId: '&/(Q4~R)' has the same hash as another user's, expected another id");
}

TEST(NameHashTest, AMadeUpNameIsRefusedInDirectoriesOfBefore) {
  EngineBox box;
  MakeOld(box);
  ASSERT_TRUE(box.Put(ThreeItems()).ok());
  for (int i = 0; i < 5; ++i) Visit(box, kCustomer, "a", i);
  const auto before = box->GetUser(kCustomer);
  ASSERT_TRUE(before.ok());
  for (const bool reopened : {false, true}) {
    if (reopened) box.Open();
    ExpectMistaken(box->GetUser(kForged).status());
    ExpectMistaken(box.Rank({.event_id = "forged", .user = kForged}).status());
    ExpectMistaken(box.Forget(kForged));
    const auto after = box->GetUser(kCustomer);
    ASSERT_TRUE(after.ok());
    EXPECT_EQ(after.value().observations, 5U);
    EXPECT_EQ(after.value().model, before.value().model);
  }
}

// Both came before anything was learned of either.
TEST(NameHashTest, ARewardForAMadeUpNameTeachesNothing) {
  EngineBox box;
  MakeOld(box);
  ASSERT_TRUE(box.Put(ThreeItems()).ok());
  ASSERT_TRUE(box.Rank({.event_id = "one", .user = kCustomer}).ok());
  ASSERT_TRUE(box.Rank({.event_id = "other", .user = kForged}).ok());
  ExpectMistaken(box.Forget(kForged));  // decisions of both wait
  ASSERT_TRUE(box.Reward("one", 1).ok());
  ExpectMistaken(box.Reward("other", 1).status());
  EXPECT_EQ(box->GetUser(kCustomer).value().observations, 1U);
  EXPECT_EQ(box->Stats().quarantined, 0U);
  box.Open();
  EXPECT_EQ(box->GetUser(kCustomer).value().observations, 1U);
  EXPECT_TRUE(box->Check().ok());
}

TEST(NameHashTest, NamesThatWereMadeUpAreTwoUsersInNewDirectories) {
  EngineBox box;
  ASSERT_TRUE(box.Put(ThreeItems()).ok());
  for (int i = 0; i < 5; ++i) Visit(box, kCustomer, "a", i);
  EXPECT_EQ(box->GetUser(kForged).status().code(), StatusCode::kNotFound);
  ASSERT_TRUE(box.Rank({.event_id = "forged", .user = kForged}).ok());
  ASSERT_TRUE(box.Reward("forged", 1).ok());
  ASSERT_TRUE(box.Forget(kForged).ok());
  EXPECT_EQ(box->GetUser(kCustomer).value().observations, 5U);
}

}  // namespace
}  // namespace codband::engine
