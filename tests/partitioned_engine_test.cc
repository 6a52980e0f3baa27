// Engines that are partitions of one loop: they share a catalogue and what they learn, and another
// node goes on with each of them bit for bit.
#include <gtest/gtest.h>

#include "tests/partitioned_engine_testing.h"

namespace codband::engine {
namespace {

TEST_F(PartitionedEngineTest, WhatOneLearnsTheOtherKnowsAndItsNextOwnerBitForBit) {
  Served zero = TakeOver("one", 0);
  Served one = TakeOver("one", 1);
  const double before = Rank(*one.engine, "new").scores[0];
  {
    server::PoolKeeper keeper(log_, 2, {});
    keeper.Attach(zero.claim, *zero.engine);
    keeper.Attach(one.claim, *one.engine);
    Teach(*zero.engine, 40);
    EXPECT_TRUE(Becomes([&] { return Rank(*one.engine, "new").scores[0] > before + 0.3; }));
    EXPECT_LT(Rank(*one.engine, "new").scores[1], 0.3);
    // All of it is in the pool in the end.
    EXPECT_TRUE(
        Becomes([&] { return keeper.facts().imported > 0 && keeper.facts().age_seconds == 0; }));
    Teach(*one.engine, 20);
    keeper.Detach(0);
    keeper.Detach(1);
  }
  const Served next = TakeOver("two", 1);
  for (int i = 0; i < 8; ++i) {
    const std::string user = "user" + std::to_string(i);
    const std::string event = "event" + std::to_string(i);
    const Ranked fresh = Rank(*next.engine, user, event);
    std::vector<double> late;
    one.engine->Rank(
        {.event_id = event,
         .user = user,
         .candidates = {{.id = "a", .features = {1, 0}}, {.id = "b", .features = {0, 1}}}},
        [&](const RankReply& reply) {
          late.resize(4);
          for (const RankedItem& item : reply.ranking) {
            late[item.id == "a" ? 0 : 1] = item.mean;
            late[item.id == "a" ? 2 : 3] = item.width;
          }
        },
        [](const Status&) {});
    EXPECT_EQ(late, fresh.scores) << user;
  }
}

// Another node merges on: what the pool joined stays joined, and versions go on.
TEST_F(PartitionedEngineTest, AMergerThatTakesOverGoesOn) {
  Served zero = TakeOver("one", 0);
  Served one = TakeOver("one", 1);
  {
    server::PoolKeeper keeper(log_, 2, {});
    keeper.Attach(zero.claim, *zero.engine);
    keeper.Attach(one.claim, *one.engine);
    Teach(*zero.engine, 20);
    EXPECT_TRUE(Becomes([&] { return keeper.facts().merged > 0; }));
    keeper.Detach(0);
    keeper.Detach(1);
  }
  const auto width = [&] { return Rank(*one.engine, "new").scores[2]; };
  const double before = width();
  Served next = TakeOver("two", 0);
  server::PoolKeeper keeper(log_, 2, {});
  keeper.Attach(next.claim, *next.engine);
  keeper.Attach(one.claim, *one.engine);
  Teach(*next.engine, 60);
  // A pool that began to count its versions anew would not be imported.
  EXPECT_TRUE(Becomes([&] { return width() < 0.95 * before; })) << before << " → " << width();
  keeper.Detach(0);
  keeper.Detach(1);
}

TEST_F(PartitionedEngineTest, EnginesFollowOneCatalogue) {
  ASSERT_TRUE(server::FindLoopIdentity(log_, 2).ok());
  Served zero = TakeOver("one", 0);
  Served one = TakeOver("one", 1);
  EXPECT_TRUE(catalogue_->Attach(0, *zero.engine).ok());
  EXPECT_TRUE(catalogue_->Attach(1, *one.engine).ok());
  EXPECT_TRUE(PutItem(*zero.engine, "x").ok());
  EXPECT_TRUE(PutItem(*one.engine, "y").ok());
  EXPECT_TRUE(DeleteItem(*zero.engine, "y").ok());
  EXPECT_EQ(DeleteItem(*zero.engine, "never").code(), StatusCode::kNotFound);
  EXPECT_EQ(Items(*zero.engine), "x ");
  EXPECT_EQ(Items(*one.engine), "x ");
  // An engine that cannot write holds the others up no longer than a moment, and makes up for it.
  log_.FailAppends({StatusCode::kUnavailable, "the database is away"});
  EXPECT_TRUE(PutItem(*zero.engine, "z").ok());
  EXPECT_EQ(Items(*one.engine), "x ");
  log_.FailAppends({});
  EXPECT_TRUE(Becomes([&] { return Items(*one.engine) == "x z "; }));
  EXPECT_TRUE(Becomes([&] { return catalogue_->lag() == 0; }));
  // Another owner goes on from where it was.
  catalogue_->Detach(1);
  const Served next = TakeOver("two", 1);
  EXPECT_EQ(next.engine->partition()->CatalogueSequence().value(), 5U);
  EXPECT_TRUE(PutItem(*zero.engine, "later").ok());
  EXPECT_EQ(Items(*next.engine), "x z ");
  EXPECT_TRUE(catalogue_->Attach(1, *next.engine).ok());
  EXPECT_EQ(Items(*next.engine), "later x z ");
  catalogue_->Detach(0);
  catalogue_->Detach(1);
}

TEST_F(PartitionedEngineTest, ALoopHasOneIdentityForGood) {
  const auto first = server::FindLoopIdentity(log_, 7);
  ASSERT_TRUE(first.ok());
  for (const std::uint64_t dim : {0U, 7U}) {
    const auto again = server::FindLoopIdentity(log_, dim);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again.value().Encode(), first.value().Encode());
  }
  EXPECT_EQ(server::FindLoopIdentity(log_, 8).status().message(),
            "features.dimension: is 8, but this loop was made for 7 features, for good");
}

TEST_F(PartitionedEngineTest, EventIdsSayWhereTheyWereMade) {
  Served one = TakeOver("one", 1);
  EXPECT_EQ(PartitionOfEvent(one.engine->NewEventId()), 1U);
  const std::string hex = "0123456789abcdef0123456789abcdef";
  EXPECT_EQ(PartitionOfEvent(hex + ".p255"), 255U);
  for (const std::string& other : {hex, hex + ".p", hex + ".px", hex + "p1", "x" + hex + ".p1",
                                   std::string("mine.p1"), std::string()}) {
    EXPECT_FALSE(PartitionOfEvent(other)) << other;
  }
}

TEST(PartitionBytesTest, ChangesAndPoolsAreReadAsTheyWereWrittenAndNothingElseIs) {
  const std::vector<CatalogueChange> changes = {
      {.put = {{.id = "x", .features = {1, 2}, .named = {}, .tags = {"t"}}}, .deleted = {"y", "z"}},
      {},
      {.put = {}, .deleted = {""}}};
  const std::string bytes = EncodeChanges(changes);
  EXPECT_EQ(DecodeChanges(bytes).value(), changes);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_FALSE(DecodeChanges(bytes.substr(0, i)).ok()) << i;
  }
  EXPECT_FALSE(DecodeChanges(bytes + "x").ok());
  std::vector<CatalogueChange> named = changes;
  named[1].columns = {{.name = "price"},
                      {.side = features::Side::kContext, .name = "time=morning"},
                      {.kind = features::ColumnSpace::Kind::kCrossing, .item = 7, .other = 8}};
  named[1].first_column = 7;
  const std::string more = EncodeChanges(named);
  EXPECT_EQ(DecodeChanges(more).value(), named);
  for (std::size_t i = 0; i < more.size(); ++i) {
    EXPECT_FALSE(DecodeChanges(more.substr(0, i)).ok()) << i;
  }
  const server::PoolBlob blob{.registers = {{0, 7}, {3, 9}}, .import = "bytes"};
  const std::string pool = blob.Encode();
  EXPECT_EQ(server::PoolBlob::Decode(pool).value().registers, blob.registers);
  EXPECT_EQ(server::PoolBlob::Decode(pool).value().import, "bytes");
  for (std::size_t i = 0; i < pool.size(); ++i) {
    EXPECT_FALSE(server::PoolBlob::Decode(pool.substr(0, i)).ok()) << i;
  }
}

}  // namespace
}  // namespace codband::engine
