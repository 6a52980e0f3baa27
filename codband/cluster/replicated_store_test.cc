#include "codband/cluster/replicated_store.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "codband/cluster/frame.h"
#include "codband/cluster/instant_log.h"
#include "codband/cluster/store_replica.h"
#include "codband/store/test_support.h"

namespace codband::cluster {
namespace {

using store::All;
using store::Claim;
using store::StoreBatch;
using store::Table;

StoreBatch BatchOf(Table table, const std::string& key, const std::string& value) {
  StoreBatch batch;
  batch.Put(table, key, value);
  return batch;
}

class ReplicatedStoreTest : public store::StoreTest {
 protected:
  // A local copy that stands at the end of the log.
  std::unique_ptr<StoreReplica> CatchUpIn(const std::string& name) {
    auto replica = StoreReplica::Open(directory_ / name);
    EXPECT_TRUE(replica.ok()) << replica.status().ToString();
    const Status status = CatchUpNow(log_, 0, *replica.value());
    EXPECT_TRUE(status.ok()) << status.ToString();
    return std::move(replica).value();
  }
  // Another owner, on the local copy of this name.
  std::unique_ptr<ReplicatedStore> TakeOver(const std::string& name) {
    log_.EndLeases();
    std::optional<Result<store::PartitionState>> state;
    log_.Acquire(0, name, 1000, [&](auto taken) { state = std::move(taken); });
    EXPECT_TRUE(state->ok());
    claim_ = state->value().claim();
    auto replica = CatchUpIn(name);
    const Position position = replica->position();
    EXPECT_EQ(position.sequence, state->value().last_sequence);
    return std::make_unique<ReplicatedStore>(replica->Take(), log_, claim_, position,
                                             [this](bool fenced) { given_up_ = fenced; });
  }
  // Makes a checkpoint of the store and trims the log to it.
  void StoreCheckpointOf(ReplicatedStore& store) {
    ASSERT_TRUE(store.Backup(directory_ / "snapshot").ok());
    {
      const auto snapshot = Open(directory_ / "snapshot", {.read_only = true});
      auto checkpoint = ReadCheckpoint(*snapshot);
      ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().ToString();
      std::optional<Status> stored;
      StoreCheckpoint(log_, claim_, std::move(checkpoint).value(),
                      [&](const Status& status) { stored = status; });
      ASSERT_TRUE(stored && stored->ok());
    }
    std::filesystem::remove_all(directory_ / "snapshot");
  }
  static void ExpectSame(const store::Store& one, const store::Store& other) {
    for (std::size_t i = 0; i < store::kTableCount; ++i) {
      EXPECT_EQ(All(one, static_cast<Table>(i)), All(other, static_cast<Table>(i))) << i;
    }
  }

  InstantLog log_{1};
  Claim claim_;
  std::optional<bool> given_up_;
};

TEST(FrameTest, EveryChangeComesBack) {
  StoreBatch batch;
  batch.Put(Table::kLog, "a", std::string("\0x", 2));
  batch.Delete(Table::kImported, "");
  batch.DeleteRange(Table::kMeta, "b", "c");
  const std::string bytes = EncodeFrame(batch);
  const auto decoded = DecodeFrame(bytes);
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(EncodeFrame(decoded.value()), bytes);
  ASSERT_EQ(decoded.value().entries().size(), 3U);
  EXPECT_EQ(decoded.value().entries()[2].value, "c");
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_EQ(DecodeFrame(bytes.substr(0, i)).status().code(), StatusCode::kCorruption) << i;
    std::string damaged = bytes;
    damaged[i] = '\xee';
    static_cast<void>(DecodeFrame(damaged));  // must not crash
  }
  std::string newer = bytes;
  newer[0] = 2;
  EXPECT_NE(DecodeFrame(newer).status().message().find("is of a newer program"), std::string::npos);
}

TEST_F(ReplicatedStoreTest, AnotherNodeHasWhatWasWritten) {
  const auto first = TakeOver("one");
  ASSERT_TRUE(first->Write(BatchOf(Table::kPending, "event", "waits"), true).ok());
  StoreBatch second = BatchOf(Table::kLog, "1", "reward");
  second.Delete(Table::kPending, "event");
  ASSERT_TRUE(first->Write(second, true).ok());
  EXPECT_EQ(log_.History(0).size(), 2U);
  EXPECT_EQ(first->position().sequence, 2U);
  const auto other = TakeOver("two");
  EXPECT_EQ(All(*other, Table::kPending).size(), 0U);
  EXPECT_EQ(All(*other, Table::kLog).at("1"), "reward");
  ExpectSame(*first, *other);
}

// Replicated as they are, they would delete what another copy has not got in a checkpoint.
TEST_F(ReplicatedStoreTest, CheckpointsAndTrimmingAreLocal) {
  const auto first = TakeOver("one");
  ASSERT_TRUE(first->Write(BatchOf(Table::kLog, "1", "reward"), true).ok());
  ASSERT_TRUE(first->WriteBulk(BatchOf(Table::kUsers, "user", "learned")).ok());
  StoreBatch trim;
  trim.DeleteRange(Table::kLog, "0", "9");
  ASSERT_TRUE(first->Tidy(trim, true).ok());
  EXPECT_EQ(All(*first, Table::kLog).size(), 0U);
  EXPECT_EQ(log_.History(0).size(), 1U);
  const auto other = TakeOver("two");
  EXPECT_EQ(All(*other, Table::kLog).size(), 1U);
  EXPECT_EQ(All(*other, Table::kUsers).size(), 0U);
}

TEST_F(ReplicatedStoreTest, AFencedOwnerWritesNothingMore) {
  const auto first = TakeOver("one");
  ASSERT_TRUE(first->Write(BatchOf(Table::kItems, "a", "1"), true).ok());
  const auto other = TakeOver("two");
  const Status late = first->Write(BatchOf(Table::kItems, "b", "2"), true);
  EXPECT_EQ(late.code(), StatusCode::kUnavailable);
  EXPECT_NE(late.message().find("another owner has taken the partition"), std::string::npos);
  EXPECT_EQ(given_up_, true);
  EXPECT_EQ(All(*first, Table::kItems).size(), 1U);
  EXPECT_FALSE(first->Write(BatchOf(Table::kItems, "c", "3"), true).ok());
  EXPECT_TRUE(other->Write(BatchOf(Table::kItems, "d", "4"), true).ok());
  EXPECT_EQ(log_.History(0).size(), 2U);
}

TEST_F(ReplicatedStoreTest, WhoFollowsWritesNothingButWhatIsLocal) {
  const auto first = TakeOver("one");
  ASSERT_TRUE(first->Write(BatchOf(Table::kItems, "a", "1"), true).ok());
  ASSERT_TRUE(first->Write(BatchOf(Table::kItems, "b", "2"), true).ok());
  ReplicatedStore second(Open(directory_ / "two"), log_, Position());
  for (const store::LogFrame& frame : log_.History(0)) ASSERT_TRUE(second.Follow(frame).ok());
  EXPECT_EQ(second.position(), first->position());
  ExpectSame(*first, second);
  const Status refused = second.Write(BatchOf(Table::kItems, "c", "3"), true);
  EXPECT_EQ(refused.code(), StatusCode::kUnavailable);
  EXPECT_TRUE(second.WriteBulk(BatchOf(Table::kUsers, "user", "learned")).ok());
  EXPECT_TRUE(second.Tidy(BatchOf(Table::kMeta, "mark", ""), true).ok());
  EXPECT_EQ(log_.History(0).size(), 2U);
  std::optional<Result<store::PartitionState>> state;
  log_.EndLeases();
  log_.Acquire(0, "two", 1000, [&](auto taken) { state = std::move(taken); });
  second.Own(state->value().claim(), nullptr);
  EXPECT_TRUE(second.Write(BatchOf(Table::kItems, "c", "3"), true).ok());
  EXPECT_EQ(log_.History(0).back().epoch, state->value().epoch);
  EXPECT_FALSE(first->Write(BatchOf(Table::kItems, "d", "4"), true).ok());
}

TEST_F(ReplicatedStoreTest, ALogThatCannotBeReachedChangesNothing) {
  const auto first = TakeOver("one");
  log_.FailAppends({StatusCode::kUnavailable, "the database is away"});
  EXPECT_EQ(first->Write(BatchOf(Table::kItems, "a", "1"), true).code(), StatusCode::kUnavailable);
  EXPECT_EQ(All(*first, Table::kItems).size(), 0U);
  log_.FailAppends({});
  EXPECT_TRUE(first->Write(BatchOf(Table::kItems, "b", "2"), true).ok());
  EXPECT_FALSE(given_up_.has_value());
  EXPECT_EQ(log_.History(0).size(), 1U);
}

TEST_F(ReplicatedStoreTest, AWriteThatWaitsEndsWhenTheStoreIsGivenUp) {
  const auto first = TakeOver("one");
  log_.HoldAppends();
  Status written;
  std::thread writer([&] { written = first->Write(BatchOf(Table::kItems, "a", "1"), true); });
  log_.AwaitHeldAppend();
  first->GiveUp("the node stops");
  writer.join();
  EXPECT_EQ(written.message(), "the node stops");
  EXPECT_EQ(first->Write(BatchOf(Table::kItems, "b", "2"), true).message(), "the node stops");
}

TEST_F(ReplicatedStoreTest, ACheckpointStandsForTheLogBeforeIt) {
  {
    const auto first = TakeOver("one");
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(
          first->Write(BatchOf(Table::kItems, std::to_string(i), std::string(600'000, 'x')), true)
              .ok());
    }
    ASSERT_TRUE(first->WriteBulk(BatchOf(Table::kUsers, "user", "learned")).ok());
    StoreCheckpointOf(*first);
    EXPECT_EQ(log_.State(0).first_sequence, 21U);
    ASSERT_TRUE(first->Write(BatchOf(Table::kItems, "after", "1"), true).ok());
    // A node without anything begins with the checkpoint, what was written in bulk included.
    const auto other = TakeOver("two");
    ExpectSame(*first, *other);
    EXPECT_EQ(All(*other, Table::kUsers).at("user"), "learned");
    ASSERT_TRUE(other->Write(BatchOf(Table::kItems, "more", "2"), true).ok());
  }
  // The one who was there before goes on with what it has.
  ASSERT_TRUE(store::Put(*Open(directory_ / "one"), Table::kDeadlines, "mine", "kept").ok());
  const auto again = CatchUpIn("one");
  EXPECT_EQ(again->position().sequence, 22U);
  const auto kept = again->Take();
  EXPECT_EQ(store::Get(*kept, Table::kDeadlines, "mine"), "kept");
  EXPECT_EQ(store::Get(*kept, Table::kItems, "more"), "2");
}

TEST_F(ReplicatedStoreTest, ALocalCopyOfAnotherPastIsMadeAnew) {
  {
    const auto first = TakeOver("one");
    ASSERT_TRUE(first->Write(BatchOf(Table::kItems, "a", "1"), true).ok());
    StoreCheckpointOf(*first);
    ASSERT_TRUE(first->Write(BatchOf(Table::kItems, "b", "2"), true).ok());
  }
  {
    const auto local = Open(directory_ / "other");
    StoreBatch batch = BatchOf(Table::kItems, "alien", "1");
    PutPosition({.sequence = 2, .epoch = 99}, batch);
    ASSERT_TRUE(local->Write(batch, true).ok());
  }
  const auto replica = CatchUpIn("other");
  EXPECT_EQ(replica->position(), (Position{.sequence = 2, .epoch = claim_.epoch}));
  EXPECT_EQ(All(*replica->Take(), Table::kItems).size(), 2U);
  // One that is ahead of the log is of another past, too.
  {
    const auto local = Open(directory_ / "ahead");
    StoreBatch batch = BatchOf(Table::kItems, "alien", "1");
    PutPosition({.sequence = 7, .epoch = claim_.epoch}, batch);
    ASSERT_TRUE(local->Write(batch, true).ok());
  }
  EXPECT_EQ(All(*CatchUpIn("ahead")->Take(), Table::kItems).size(), 2U);
}

}  // namespace
}  // namespace codband::cluster
