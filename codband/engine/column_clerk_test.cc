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
  EXPECT_EQ(clerk.Admit(first).size(), 3U);
  EXPECT_EQ(clerk.FeaturesOf(first), (std::vector<double>{2, 3, 6}));
  EXPECT_TRUE(clerk.Admit(first).empty());
}

}  // namespace
}  // namespace codband::engine
