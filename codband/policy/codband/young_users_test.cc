#include "codband/policy/codband/young_users.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace codband {
namespace {

std::vector<UserId> UsersOf(const YoungUsers& young) {
  std::vector<UserId> users;
  for (std::size_t i = 0; i < young.size(); ++i) users.push_back(young.user(i));
  return users;
}

TEST(YoungUsersTest, EachIsThereOnceHoweverOftenTheyCome) {
  YoungUsers young;
  for (std::uint64_t time = 0; time < 30; ++time) young.Note(100 + time % 3, time);
  EXPECT_EQ(UsersOf(young), (std::vector<UserId>{100, 101, 102}));
  RandomStream random({1, 2}, 3);
  std::set<UserId> drawn;
  for (int i = 0; i < 100; ++i) drawn.insert(young.user(young.Draw(random)));
  EXPECT_EQ(drawn.size(), 3U);
}

TEST(YoungUsersTest, WhoIsOldOrForgottenIsNotThere) {
  YoungUsers young;
  for (UserId user = 0; user < 4; ++user) young.Note(user, user);
  young.Forget(1);
  young.Drop(0);
  young.Forget(77);
  EXPECT_EQ(UsersOf(young), (std::vector<UserId>{2, 3}));
  young.Drop(1);
  young.Drop(0);
  EXPECT_EQ(young.size(), 0U);
}

TEST(YoungUsersTest, NewOnesTakeThePlacesOfOthersWhenThereAreManyOfThem) {
  YoungUsers young;
  constexpr std::uint64_t kComing = 3 * YoungUsers::kMost;
  for (UserId user = 0; user < kComing; ++user) young.Note(user, user);
  const std::vector<UserId> users = UsersOf(young);
  ASSERT_EQ(users.size(), YoungUsers::kMost);
  for (const UserId user : users) EXPECT_GE(user, kComing - YoungUsers::kMost);
}

TEST(YoungUsersTest, IsTheSameAfterSaving) {
  YoungUsers young;
  for (UserId user = 0; user < 600; ++user) young.Note(user * user, user);
  young.Drop(17);
  ByteWriter out;
  young.Save(out);
  YoungUsers loaded;
  ByteReader in(out.bytes());
  loaded.Load(in);
  in.ExpectEnd();
  EXPECT_TRUE(in.ok());
  EXPECT_EQ(UsersOf(loaded), UsersOf(young));
}

TEST(YoungUsersTest, OlderStatesHaveTheSameUserSeveralTimes) {
  ByteWriter out;
  for (std::uint64_t i = 0; i < 64; ++i) out.U64(i < 60 ? 5 + i % 4 : 0);
  YoungUsers loaded;
  ByteReader in(out.bytes());
  loaded.Load(in);
  in.ExpectEnd();
  EXPECT_TRUE(in.ok());
  EXPECT_EQ(UsersOf(loaded), (std::vector<UserId>{5, 6, 7, 8, 0}));
}

TEST(YoungUsersTest, DamagedStatesAreRefused) {
  YoungUsers young;
  for (UserId user = 1; user <= 3; ++user) young.Note(user, user);
  ByteWriter out;
  young.Save(out);
  std::string twice = out.Take();
  twice[16 + 8] = 1;  // behind marker and count, of the second user
  YoungUsers loaded;
  ByteReader in(twice);
  loaded.Load(in);
  EXPECT_FALSE(in.ok());
}

}  // namespace
}  // namespace codband
