#include "codband/policy/paged_user_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codband/policy/test_support.h"

namespace codband {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

struct Counter {
  std::uint64_t value = 0;

  std::size_t HeapBytes() const { return value; }
  void Save(ByteWriter& out) const { out.U64(value); }
  void Load(ByteReader& in) { value = in.U64("counter"); }
};

class PagedUserTableTest : public testing::Test {
 protected:
  PagedUserTableTest() { table_.SetArchive(&archive_); }

  void Set(UserId user, std::uint64_t value) { table_.FindOrMake(user).value = value; }

  // The value that a reader sees, or -1 if there is no record.
  std::int64_t ValueOf(UserId user) const {
    std::optional<Counter> scratch;
    const Counter* counter = table_.Peek(user, scratch);
    return counter == nullptr ? -1 : static_cast<std::int64_t>(counter->value);
  }

  std::vector<UserId> UsersInMemory() const {
    std::vector<UserId> users;
    table_.ForEach([&](UserId user, const Counter&) { users.push_back(user); });
    std::ranges::sort(users);
    return users;
  }

  std::vector<UserId> ChangedUsers() const {
    std::vector<UserId> users;
    table_.SaveChanged([&](UserId user, const std::string&) { users.push_back(user); });
    return users;
  }

  // What a checkpoint does.
  void Checkpoint() {
    for (const UserId user : erased_) archive_.records.erase(user);
    erased_.clear();
    table_.SaveChanged(
        [&](UserId user, std::string bytes) { archive_.records[user] = std::move(bytes); });
    table_.MarkSaved();
  }
  bool Erase(UserId user) {
    erased_.push_back(user);
    return table_.Erase(user);
  }

  MapArchive archive_;
  PagedUserTable<Counter> table_{[] { return Counter{.value = 7}; }};
  std::vector<UserId> erased_;
};

TEST_F(PagedUserTableTest, ANewUserStartsAsMadeAndHasNoRecordBefore) {
  EXPECT_EQ(ValueOf(1), -1);
  EXPECT_EQ(table_.Find(1), nullptr);
  EXPECT_EQ(table_.size(), 0U);
  EXPECT_EQ(table_.FindOrMake(1).value, 7U);
  EXPECT_EQ(ValueOf(1), 7);
}

TEST_F(PagedUserTableTest, EvictsTheLeastRecentlyUsedUntilTheOthersHaveRoom) {
  Set(0, 0);
  const std::size_t empty = table_.bytes();
  for (UserId user = 1; user < 10; ++user) Set(user, 100'000 * user);
  EXPECT_EQ(table_.bytes(), 10 * empty + 4'500'000);
  Set(1, 300'000);  // and is the one that was used last
  EXPECT_EQ(table_.bytes(), 10 * empty + 4'700'000);
  table_.Evict({.bytes = 2'000'000});
  EXPECT_EQ(table_.size(), 10U) << "nothing is in the archive yet";
  Checkpoint();
  table_.Evict({.bytes = 4'700'000 + 10 * empty});
  EXPECT_EQ(table_.size(), 10U);
  table_.Evict({.bytes = 2'500'000});  // less a tenth
  EXPECT_THAT(UsersInMemory(), ElementsAre(1, 8, 9));
  EXPECT_EQ(table_.bytes(), 3 * empty + 2'000'000);
  EXPECT_EQ(ValueOf(7), 700'000);
  EXPECT_EQ(table_.Find(7)->value, 700'000U);
  EXPECT_EQ(table_.bytes(), 4 * empty + 2'700'000);
  Erase(9);
  EXPECT_EQ(table_.bytes(), 3 * empty + 1'800'000);
}

TEST_F(PagedUserTableTest, EvictionIsInvisibleToReaders) {
  for (UserId user = 0; user < 20; ++user) Set(user, 100 + user);
  Checkpoint();
  table_.Evict({.users = 0});
  EXPECT_EQ(table_.size(), 0U);
  for (UserId user = 0; user < 20; ++user) {
    EXPECT_EQ(ValueOf(user), 100 + static_cast<std::int64_t>(user));
  }
  EXPECT_EQ(table_.FindOrMake(3).value, 103U) << "a record in the archive is not made anew";
}

TEST_F(PagedUserTableTest, PeekingNeitherLoadsNorChangesARecord) {
  Set(1, 5);
  Checkpoint();
  EXPECT_EQ(ValueOf(1), 5);
  EXPECT_THAT(ChangedUsers(), IsEmpty());
  table_.Evict({.users = 0});
  EXPECT_EQ(ValueOf(1), 5);
  EXPECT_EQ(table_.size(), 0U);
}

TEST_F(PagedUserTableTest, ARecordInMemoryIsNotReadFromTheArchive) {
  Set(1, 5);
  Checkpoint();
  archive_.reads = 0;
  EXPECT_EQ(ValueOf(1), 5);
  EXPECT_EQ(table_.Find(1)->value, 5U);
  EXPECT_EQ(archive_.reads, 0);
}

TEST_F(PagedUserTableTest, EvictsTheLeastRecentlyUsedFirst) {
  for (UserId user = 1; user <= 5; ++user) Set(user, user);
  static_cast<void>(table_.Find(1));  // now 2 is the least recently used
  Checkpoint();
  table_.Evict({.users = 3});
  EXPECT_THAT(UsersInMemory(), ElementsAre(1, 4, 5));
}

TEST_F(PagedUserTableTest, PeekingDoesNotCountAsUse) {
  for (UserId user = 1; user <= 3; ++user) Set(user, user);
  Checkpoint();
  EXPECT_EQ(ValueOf(1), 1);
  table_.Evict({.users = 2});
  EXPECT_THAT(UsersInMemory(), ElementsAre(2, 3));
}

TEST_F(PagedUserTableTest, EvictsATenthMoreThanAskedSoThatItIsRare) {
  for (UserId user = 0; user < 100; ++user) Set(user, user);
  Checkpoint();
  table_.Evict({.users = 100});
  EXPECT_EQ(table_.size(), 100U) << "nothing to do";
  table_.Evict({.users = 50});
  EXPECT_EQ(table_.size(), 45U);
  EXPECT_EQ(UsersInMemory().front(), 55U);
}

TEST_F(PagedUserTableTest, KeepsWhatTheArchiveDoesNotHold) {
  for (UserId user = 1; user <= 4; ++user) Set(user, user);
  Checkpoint();
  Set(1, 11);
  Set(9, 9);
  table_.Evict({.users = 0});
  EXPECT_THAT(UsersInMemory(), ElementsAre(1, 9));
  EXPECT_EQ(ValueOf(1), 11);
  Checkpoint();
  table_.Evict({.users = 0});
  EXPECT_EQ(ValueOf(1), 11);
}

TEST_F(PagedUserTableTest, WithoutAnArchiveNothingIsEvicted) {
  PagedUserTable<Counter> table([] { return Counter(); });
  table.FindOrMake(1).value = 5;
  table.MarkSaved();
  table.Evict({.users = 0});
  EXPECT_EQ(table.size(), 1U);
}

TEST_F(PagedUserTableTest, SavesEachChangedRecordOnceInTheOrderOfIds) {
  for (const UserId user : {UserId{30}, UserId{4}, UserId{17}, UserId{1}}) Set(user, user);
  EXPECT_THAT(ChangedUsers(), ElementsAre(1, 4, 17, 30));
  Checkpoint();
  EXPECT_THAT(ChangedUsers(), IsEmpty());
  static_cast<void>(table_.Find(17));  // the caller may change it
  EXPECT_THAT(ChangedUsers(), ElementsAre(17));
}

TEST_F(PagedUserTableTest, AnErasedUserDoesNotComeBackFromTheArchive) {
  Set(1, 5);
  Checkpoint();
  table_.Evict({.users = 0});
  EXPECT_TRUE(Erase(1)) << "in the archive only";
  EXPECT_FALSE(Erase(1));
  EXPECT_EQ(ValueOf(1), -1);
  EXPECT_EQ(table_.Find(1), nullptr);
  EXPECT_THAT(ChangedUsers(), IsEmpty());
  Checkpoint();
  EXPECT_EQ(ValueOf(1), -1);
  EXPECT_FALSE(Erase(2)) << "never seen";
}

TEST_F(PagedUserTableTest, AnErasedUserWhoReturnsStartsAnew) {
  Set(1, 5);
  Checkpoint();
  EXPECT_TRUE(Erase(1));
  EXPECT_EQ(table_.FindOrMake(1).value, 7U);
  Checkpoint();
  table_.Evict({.users = 0});
  EXPECT_EQ(ValueOf(1), 7) << "the archive is asked again after a checkpoint";
}

TEST_F(PagedUserTableTest, SavedTableLoadsEqualWhateverTheOrderOfArrival) {
  PagedUserTable<Counter> other([] { return Counter(); });
  for (const UserId user : {UserId{3}, UserId{1}, UserId{2}}) Set(user, 10 * user);
  for (const UserId user : {UserId{2}, UserId{3}, UserId{1}}) {
    other.FindOrMake(user).value = 10 * user;
  }
  ByteWriter out;
  ByteWriter out_of_other;
  table_.Save(out);
  other.Save(out_of_other);
  EXPECT_EQ(out.bytes(), out_of_other.bytes());

  PagedUserTable<Counter> loaded([] { return Counter(); });
  loaded.FindOrMake(99);
  ByteReader in(out.bytes());
  loaded.Load(in);
  in.ExpectEnd();
  ASSERT_TRUE(in.ok()) << in.status().ToString();
  std::map<UserId, std::uint64_t> values;
  loaded.ForEach([&](UserId user, const Counter& counter) { values[user] = counter.value; });
  EXPECT_THAT(values, ElementsAre(Pair(1, 10), Pair(2, 20), Pair(3, 30)));
}

TEST_F(PagedUserTableTest, RecordsThatAreChangedAllAtOnceAreMeasuredAnew) {
  Set(1, 100);
  Set(2, 200);
  const std::size_t before = table_.bytes();
  table_.ForEach([](UserId, Counter& counter) { counter.value += 1000; });
  EXPECT_EQ(table_.bytes(), before + 2000);
}

TEST_F(PagedUserTableTest, LoadingCountsWhatIsThereThenAlone) {
  Set(1, 100);
  Set(2, 200);
  ByteWriter out;
  table_.Save(out);
  const std::size_t bytes = table_.bytes();
  Set(3, 5'000);
  ByteReader in(out.bytes());
  table_.Load(in);
  ASSERT_TRUE(in.ok()) << in.status().ToString();
  EXPECT_EQ(table_.bytes(), bytes);
}

// A record with something that older ones lack.
struct Basket {
  std::uint64_t value = 0;
  std::uint64_t rest = 0;

  std::size_t HeapBytes() const { return value + rest; }
  void Save(ByteWriter& out) const { out.U64(value); }
  void Load(ByteReader& in) { value = in.U64("basket"); }
  bool has_rest() const { return rest != 0; }
  void SaveRest(ByteWriter& out) const { out.U64(rest); }
  void LoadRest(ByteReader& in) { rest = in.U64("rest"); }
};

TEST(PagedUserTableRestTest, WhatOlderRecordsLackIsSavedBehindAndMeasured) {
  PagedUserTable<Basket> table([] { return Basket(); });
  table.FindOrMake(1) = {.value = 100, .rest = 30'000};
  table.FindOrMake(2) = {.value = 200};
  ByteWriter out;
  table.Save(out);
  table.SaveRest(out);
  PagedUserTable<Basket> loaded([] { return Basket(); });
  ByteReader in(out.bytes());
  loaded.Load(in);
  loaded.LoadRest(in);
  in.ExpectEnd();
  ASSERT_TRUE(in.ok()) << in.status().ToString();
  EXPECT_EQ(loaded.bytes(), table.bytes());
  EXPECT_EQ(loaded.Find(1)->rest, 30'000U);
  EXPECT_EQ(loaded.Find(2)->rest, 0U);
}

TEST_F(PagedUserTableTest, LoadingRefusesAUserWhoAppearsTwice) {
  ByteWriter out;
  out.U64(2);
  for (int i = 0; i < 2; ++i) {
    out.U64(5);
    out.U64(1);
  }
  ByteReader in(out.bytes());
  table_.Load(in);
  EXPECT_FALSE(in.ok());
  EXPECT_NE(in.status().message().find("appears twice"), std::string::npos);
}

TEST_F(PagedUserTableTest, DecodeRefusesWhatIsNotExactlyARecord) {
  EXPECT_EQ(table_.Decode("12345678").value().value, 0x3837363534333231U);
  EXPECT_FALSE(table_.Decode("1234567").ok());
  EXPECT_FALSE(table_.Decode("123456789").ok());
}

TEST_F(PagedUserTableTest, ADamagedRecordInTheArchiveIsAnErrorNotANewUser) {
  archive_.records[1] = "1234567";
  EXPECT_THROW(table_.FindOrMake(1), InternalError);
}

}  // namespace
}  // namespace codband
