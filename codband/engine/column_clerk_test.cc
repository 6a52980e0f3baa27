#include "codband/engine/column_clerk.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "codband/engine/committer_testing.h"

namespace codband::engine {
namespace {

using features::Side;
using store::Table;

Committer::RankCommand RankWithNames(CommitterBox& box, const std::string& event,
                                     std::vector<std::string> names, Engine::Done<Status> done) {
  const PendingDecision pending = box.Pending("ann");
  auto columns = std::make_unique<NewColumns>();
  for (const std::string& name : names) {
    columns->names.push_back({.side = Side::kItem, .name = name});
    columns->item_features.push_back({name, 2});
  }
  return {.event_id = event,
          .user = HashUser("ann"),
          .made_ms = pending.made_ms,
          .deadline_ms = pending.deadline_ms,
          .fingerprint = pending.fingerprint,
          .action = pending.action,
          .pending = pending.Encode(),
          .columns = std::move(columns),
          .done = std::move(done)};
}

Status Rank(CommitterBox& box, const std::string& event, std::vector<std::string> names) {
  return Wait<Status>([&](auto done) {
    box.committer().Submit(RankWithNames(box, event, std::move(names), std::move(done)));
  });
}

// A decision, its columns and their log entry are one write: none of them is there without the
// others, and a write that fails leaves the columns to the next who asks.
TEST(ColumnClerkTest, ColumnsOfAFailedWriteAreGivenOutAgain) {
  CommitterBox box;
  box.UseColumns();
  box.Open();
  ASSERT_TRUE(Rank(box, "e1", {"a", "b"}).ok());
  box.store().Fail(FakeStore::Call::kWrite, Table::kPending);
  EXPECT_FALSE(Rank(box, "e2", {"c", "d"}).ok());
  box.store().Heal();
  ASSERT_TRUE(Rank(box, "e3", {"d", "a"}).ok());
  const std::vector<LogRecord> learned = box.learned();
  ASSERT_EQ(learned.size(), 2U);
  EXPECT_EQ(learned[0].kind, LogRecord::Kind::kColumns);
  EXPECT_EQ(learned[0].first_column, 0U);
  EXPECT_EQ(learned[0].additions.size(), 2U);
  EXPECT_EQ(learned[1].first_column, 2U);
  ASSERT_EQ(learned[1].additions.size(), 1U);
  EXPECT_EQ(learned[1].additions[0].name, "d");
  const PendingDecision third = box.committer().Look("e3").value();
  EXPECT_EQ(third.decision.features, (std::vector<double>{2, 0, 2}));
  EXPECT_FALSE(box.committer().Look("e2").ok());
}

// The next ranking of a client that has its answer knows the columns.
TEST(ColumnClerkTest, ARankIsAcknowledgedOnceTheLearnerHasItsColumns) {
  CommitterBox box;
  box.UseColumns();
  box.Open();
  box.journal().Take();
  const Status status = Wait<Status>([&](auto done) {
    box.committer().Submit(RankWithNames(box, "e", {"a"}, [&box, done](const Status& ranked) {
      box.journal().Add("acknowledged");
      done(ranked);
    }));
  });
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(box.journal().Take(), (std::vector<std::string>{"written", "learn 1", "acknowledged"}));
}

TEST(ColumnClerkTest, FeaturesAreCompletedWithCrossings) {
  const features::ColumnLimits limits{.columns = 20};
  ColumnClerk clerk({}, limits, {});
  NewColumns first{.names = {{Side::kItem, "genre=jazz"}, {Side::kContext, "device=phone"}},
                   .crossings = {{.item = "genre=jazz", .other = "device=phone"}},
                   .item_features = {{"genre=jazz", 2}},
                   .context_features = {{"device=phone", 3}}};
  store::StoreBatch batch;
  EXPECT_EQ(clerk.Admit(first, 1, batch).size(), 3U);
  EXPECT_EQ(clerk.FeaturesOf(first), (std::vector<double>{2, 3, 6}));
  store::StoreBatch again;
  EXPECT_TRUE(clerk.Admit(first, 1, again).empty());
  EXPECT_TRUE(again.empty());
}

NewColumns Named(std::initializer_list<std::string> names) {
  NewColumns wanted;
  for (const std::string& name : names) wanted.names.push_back({Side::kContext, name});
  return wanted;
}

// Beyond the first ones a name of a request waits until several users have sent it.
TEST(ColumnClerkTest, LaterNamesOfRequestsWaitUntilSeveralUsersHadThem) {
  const features::ColumnLimits limits{.columns = 20, .at_once = 2};
  ColumnClerk clerk({}, limits, {});
  store::StoreBatch batch;
  clerk.Begin();
  EXPECT_EQ(clerk.Admit(Named({"a=1", "b=1", "c=1"}), 1, batch).size(), 2U);
  EXPECT_TRUE(clerk.Admit(Named({"c=1"}), 1, batch).empty());  // the same user
  EXPECT_TRUE(clerk.Admit(Named({"c=1"}), 2, batch).empty());
  clerk.Begin();
  EXPECT_EQ(clerk.Admit(Named({"c=1"}), 3, batch).size(), 1U);
  clerk.Undo();  // it was not written: the next one brings it
  clerk.Begin();
  EXPECT_EQ(clerk.Admit(Named({"c=1"}), 4, batch).size(), 1U);
  // Of one user alone it takes longer.
  std::size_t decisions = 1;
  while (clerk.Admit(Named({"d=1"}), 1, batch).empty()) ++decisions;
  EXPECT_EQ(decisions, Sightings::kDecisions);
}

// A partition: columns come from the loop alone.
TEST(ColumnClerkTest, WhatIsAskedForIsNotThereUntilTheLoopGivesIt) {
  using features::ColumnSpace;
  const features::ColumnLimits limits{.columns = 20};
  ColumnClerk clerk({}, limits, {}, {}, ColumnClerk::Source::kLoop);
  store::StoreBatch batch;
  const NewColumns wanted{.names = {{Side::kItem, "genre=jazz"}, {Side::kContext, "device=phone"}},
                          .crossings = {{.item = "genre=jazz", .other = "device=phone"}},
                          .item_features = {{"genre=jazz", 2}},
                          .context_features = {{"device=phone", 3}}};
  const ColumnClerk::Additions asked = clerk.Ask(wanted, kNobody, batch);
  ASSERT_EQ(asked.size(), 2U);  // the crossing of names without columns waits
  EXPECT_EQ(clerk.size(), 0U);
  EXPECT_EQ(clerk.FeaturesOf(wanted), std::vector<double>());
  // Somebody else was before.
  const ColumnSpace::Addition first{.name = "price"};
  ASSERT_TRUE(clerk.Follow(0, std::span(&first, 1)).ok());
  ASSERT_TRUE(clerk.Follow(1, asked).ok());
  EXPECT_EQ(clerk.Follow(1, asked).code(), StatusCode::kCorruption);
  EXPECT_EQ(clerk.FeaturesOf(wanted), (std::vector<double>{0, 2, 3}));
  const ColumnClerk::Additions more = clerk.Ask(wanted, kNobody, batch);
  ASSERT_EQ(more.size(), 1U);
  EXPECT_EQ(more[0],
            (ColumnSpace::Addition{.kind = ColumnSpace::Kind::kCrossing, .item = 1, .other = 2}));
  ASSERT_TRUE(clerk.Follow(3, more).ok());
  EXPECT_EQ(clerk.FeaturesOf(wanted), (std::vector<double>{0, 2, 3, 6}));
  EXPECT_TRUE(clerk.Ask(wanted, kNobody, batch).empty());
  // What does not fit changes nothing, nor does a group that was not written.
  const ColumnSpace::Addition twice[] = {{.name = "new"}, {.name = "price"}};
  EXPECT_EQ(clerk.Follow(4, twice).code(), StatusCode::kCorruption);
  EXPECT_EQ(clerk.size(), 4U);
  clerk.Begin();
  ASSERT_TRUE(clerk.Follow(4, std::span(twice, 1)).ok());
  clerk.Undo();
  EXPECT_EQ(clerk.size(), 4U);
}

TEST(ColumnClerkTest, APartitionAsksForNoNameThatOneUserAloneHasSent) {
  const features::ColumnLimits limits{.columns = 20};
  ColumnClerk clerk({}, limits, {}, {}, ColumnClerk::Source::kLoop);
  store::StoreBatch batch;
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(clerk.Ask(Named({"city=Bath"}), 1, batch).empty());
  EXPECT_TRUE(clerk.Ask(Named({"city=Bath"}), 2, batch).empty());
  EXPECT_EQ(clerk.Ask(Named({"city=Bath"}), 3, batch).size(), 1U);
  EXPECT_EQ(clerk.Ask(Named({"campaign=may"}), kNobody, batch).size(), 1U);
  // Where all columns are used up a name is listed; the same holds then.
  ColumnClerk full({}, {.columns = 1, .at_once = 0}, {}, {}, ColumnClerk::Source::kLoop);
  const features::ColumnSpace::Addition given[] = {
      {.name = "price"}, {.kind = features::ColumnSpace::Kind::kShared, .count = 8}};
  ASSERT_TRUE(full.Follow(0, given).ok());
  const NewColumns sharing{.sharing = {{Side::kContext, "segment-of-ann"}}};
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(full.Ask(sharing, 1, batch).empty());
  EXPECT_TRUE(full.Ask(sharing, 2, batch).empty());
  EXPECT_EQ(full.Ask(sharing, 3, batch).size(), 1U);
  EXPECT_EQ(full.Ask({.sharing = {{Side::kContext, "campaign=*"}}}, kNobody, batch).size(), 1U);
  // Of an action that a request describes it is not said whose it is.
  NewColumns described;
  described.names = {{Side::kItem, "genre=jazz"}};
  EXPECT_EQ(clerk.Ask(described, 1, batch).size(), 1U);
}

TEST(ColumnClerkTest, AnArrayGetsAllItsColumnsOrNone) {
  const features::ColumnLimits limits{.columns = 20, .at_once = 2};
  ColumnClerk clerk({}, limits, {});
  store::StoreBatch batch;
  const NewColumns array = Named({"e[0]", "e[1]", "e[2]"});
  EXPECT_TRUE(clerk.Admit(array, 1, batch).empty());
  EXPECT_TRUE(clerk.Admit(array, 2, batch).empty());
  EXPECT_EQ(clerk.Admit(array, 3, batch).size(), 3U);
}

}  // namespace
}  // namespace codband::engine
