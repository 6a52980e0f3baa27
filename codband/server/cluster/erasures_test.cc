#include "codband/server/cluster/erasures.h"

#include <gtest/gtest.h>

#include "codband/base/file.h"
#include "codband/cluster/instant_log.h"
#include "codband/server/cluster/pool_keeper.h"
#include "codband/store/test_support.h"

namespace codband::server {
namespace {

class ErasuresTest : public store::StoreTest {
 protected:
  static constexpr store::Partition kPartitions = 3;

  ErasuresTest() {
    for (store::Partition partition = 0; partition < kPartitions; ++partition) {
      log_.Acquire(partition, "a", 1000,
                   [&](auto taken) { claims_.push_back(taken.value().claim()); });
    }
  }
  Erasures::Options Options() {
    return {.partitions = kPartitions,
            .data = directory_,
            .pool_at = [this](store::Partition partition, std::uint64_t cleared)
                -> std::optional<std::map<store::Partition, std::uint64_t>> {
              return cleared >= imported_at_ ? pools_[partition] : PoolKeeper::Sequences();
            }};
  }
  void Put(const store::Claim& claim, const std::string& name, std::uint64_t version) {
    log_.PutBlob(claim, {.name = name, .version = version}, "x",
                 [](const Status& status) { EXPECT_TRUE(status.ok()); });
  }

  cluster::InstantLog log_{kPartitions};
  std::vector<store::Claim> claims_;
  std::map<store::Partition, PoolKeeper::Sequences> pools_;
  std::uint64_t imported_at_ = 0;
};

TEST_F(ErasuresTest, AreCompleteOnceNothingHoldsTheUser) {
  Erasures erasures(log_, Options());
  const ErasureId id{.partition = 1, .sequence = 100};
  const auto waits = [&] { return erasures.Look(id).value().waits_for; };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(waits(), (Texts{"the checkpoint of partition 1"}));
  // The checkpoint is from before the user was erased.
  erasures.NoteCheckpoint(claims_[1], {.cleared = 120, .erased = 99});
  EXPECT_EQ(waits(), (Texts{"the checkpoint of partition 1", "the pool in partition 0",
                            "the pool in partition 1", "the pool in partition 2"}));
  for (const store::Claim& claim : claims_) pools_[claim.partition] = {{1, 99}};
  for (const store::Claim& claim : claims_) {
    erasures.NoteCheckpoint(claim, {.cleared = 120, .erased = 120});
  }
  EXPECT_EQ(waits(), (Texts{"the pool in partition 0", "the pool in partition 1",
                            "the pool in partition 2"}));
  // A pool without the user, which partition 2 has imported after its checkpoint.
  for (const store::Claim& claim : claims_) pools_[claim.partition] = {{1, 100}};
  erasures.NoteCheckpoint(claims_[0], {.cleared = 130, .erased = 130});
  erasures.NoteCheckpoint(claims_[1], {.cleared = 130, .erased = 130});
  imported_at_ = 140;
  erasures.NoteCheckpoint(claims_[2], {.cleared = 130, .erased = 130});
  EXPECT_EQ(waits(), (Texts{"the pool in partition 2"}));
  erasures.NoteCheckpoint(claims_[2], {.cleared = 140, .erased = 140});
  EXPECT_EQ(waits(), Texts{});
  // Another node says the same. Numbers never fall: an owner who starts anew knows less.
  erasures.NoteCheckpoint(claims_[2], {.cleared = 1, .erased = 1});
  EXPECT_TRUE(Erasures(log_, Options()).Look(id).value().waits_for.empty());
  // Registers and pools from before.
  Put(claims_[1], PoolKeeper::kRegister, 5);
  EXPECT_EQ(waits(), Texts{});
  Put(claims_[1], PoolKeeper::kRegister, 6);
  EXPECT_EQ(waits(), Texts{"the deletion of older pools"});
  log_.DeleteBlobs(claims_[1], PoolKeeper::kRegister, 6, [](const Status&) {});
  Put(claims_[0], PoolKeeper::PoolName(2), 5);
  Put(claims_[0], PoolKeeper::PoolName(2), 6);
  EXPECT_EQ(waits(), Texts{"the deletion of older pools"});
}

TEST_F(ErasuresTest, APolicyThatSharesNothingHasNoPools) {
  auto options = Options();
  options.pool_at = [](store::Partition, std::uint64_t) { return std::nullopt; };
  Erasures erasures(log_, options);
  erasures.NoteCheckpoint(claims_[1], {.cleared = 100, .erased = 100});
  EXPECT_TRUE(erasures.Look({.partition = 1, .sequence = 100}).value().waits_for.empty());
  EXPECT_FALSE(erasures.Look({.partition = 1, .sequence = 101}).value().waits_for.empty());
}

TEST_F(ErasuresTest, CopiesThatWereLeftBeforeSomebodyWasErasedAreDeleted) {
  const auto files = [&](store::Partition partition) {
    return CopyDirectory(directory_, partition) / "rocksdb";
  };
  for (store::Partition partition = 0; partition < kPartitions; ++partition) {
    ASSERT_TRUE(EnsureDirectory(files(partition)).ok());
  }
  {
    Erasures erasures(log_, Options());
    erasures.UseCopy(0);
    erasures.UseCopy(1);
    erasures.LeaveCopy(1, 100);
    erasures.NoteCheckpoint(claims_[0], {.erased = 200, .last_erased = 150});
    erasures.NoteCheckpoint(claims_[1], {.erased = 200, .last_erased = 100});
    erasures.DropOldCopies();
    EXPECT_TRUE(std::filesystem::exists(files(0)));  // in use
    EXPECT_TRUE(std::filesystem::exists(files(1)));  // has erased them itself
    EXPECT_TRUE(std::filesystem::exists(files(2)));  // nobody was erased
    erasures.NoteCheckpoint(claims_[1], {.erased = 200, .last_erased = 101});
    erasures.DropOldCopies();
    EXPECT_TRUE(std::filesystem::exists(files(0)));
    EXPECT_FALSE(std::filesystem::exists(files(1)));
  }
  // A process that was killed has not said that it leaves.
  Erasures erasures(log_, Options());
  erasures.DropOldCopies();
  EXPECT_FALSE(std::filesystem::exists(files(0)));
  EXPECT_TRUE(std::filesystem::exists(files(2)));
}

// Whatever its files say.
TEST_F(ErasuresTest, ACopyInUseIsNeverDeleted) {
  const std::filesystem::path copy = CopyDirectory(directory_, 0);
  ASSERT_TRUE(EnsureDirectory(copy / "rocksdb").ok());
  Erasures erasures(log_, Options());
  erasures.UseCopy(0);
  ASSERT_TRUE(WriteFileDurably(copy / "left", "1").ok());
  erasures.NoteCheckpoint(claims_[0], {.erased = 200, .last_erased = 150});
  erasures.DropOldCopies();
  EXPECT_TRUE(std::filesystem::exists(copy / "rocksdb"));
}

TEST_F(ErasuresTest, ACopyThatCannotBeMarkedAsLeftIsReported) {
  ASSERT_TRUE(EnsureDirectory(CopyDirectory(directory_, 1) / "left" / "in the way").ok());
  std::vector<std::string> lines;
  auto options = Options();
  options.log = [&](const LogLine& line) { lines.push_back(std::string(line.message)); };
  Erasures erasures(log_, options);
  erasures.LeaveCopy(1, 100);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(lines[0].starts_with("partition 1: the copy that this node leaves cannot be marked"))
      << lines[0];
}

TEST(ErasureIdTest, IsReadAsItIsWritten) {
  const auto id = ErasureId::Parse(ErasureId{.partition = 3, .sequence = 1207}.ToText());
  ASSERT_TRUE(id);
  EXPECT_EQ(id->partition, 3U);
  EXPECT_EQ(id->sequence, 1207U);
  for (const char* text : {"", ".", "3", "3.", ".5", "3.5.6", "3.x", "-1.5", "3.5 ", " 3.5"}) {
    EXPECT_FALSE(ErasureId::Parse(text)) << text;
  }
}

TEST(ErasedMarkTest, DamagedBytesAreRefused) {
  ErasedMark mark{.erased = 5, .last_erased = 3, .shares = true, .pools = {{0, 7}, {2, 9}}};
  const std::string bytes = mark.Encode();
  const auto read = ErasedMark::Decode(bytes);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value().erased, 5U);
  EXPECT_EQ(read.value().pools, mark.pools);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(ErasedMark::Decode(bytes.substr(0, length)).ok()) << length;
  }
}

}  // namespace
}  // namespace codband::server
