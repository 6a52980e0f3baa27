#include "codband/engine/committer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "codband/engine/committer_testing.h"
#include "codband/engine/eraser.h"

namespace codband::engine {
namespace {

using store::Table;
using testing::ElementsAre;
using testing::IsEmpty;

class CommitterTest : public testing::Test {
 protected:
  using Log = std::map<std::uint64_t, std::pair<std::string, double>>;

  void SetUp() override { box_.Open(); }
  CommitterBox box_;
};

TEST_F(CommitterTest, AcknowledgesAfterASyncedWriteOnly) {
  ASSERT_TRUE(box_.Rank("e").ok());
  box_.journal().Take();
  box_.store().HoldWrites();
  std::promise<void> acknowledged;
  box_.SubmitReward("e", 1, [&](const Result<RewardReply>&) {
    box_.journal().Add("acknowledged");
    acknowledged.set_value();
  });
  box_.store().AwaitHeldWrite();
  EXPECT_THAT(box_.journal().Take(), IsEmpty());
  box_.store().ReleaseWrites();
  acknowledged.get_future().get();
  box_.committer().Stop();
  EXPECT_THAT(box_.journal().Take(),
              ElementsAre("written", "learn 1", "acknowledged", "finished e"));
  for (const FakeStore::Written& write : box_.store().writes()) EXPECT_TRUE(write.sync);
}

TEST_F(CommitterTest, CommandsThatWaitAreCommittedTogetherAndAcknowledgedInOrder) {
  std::promise<void> last;
  box_.InOneGroup(3, [&] {
    box_.SubmitRank("a", box_.Pending("ann"), [&](const Status&) { box_.journal().Add("a"); });
    box_.SubmitRank("b", box_.Pending("bob"), [&](const Status&) { box_.journal().Add("b"); });
    box_.SubmitRank("c", box_.Pending("cyd"), [&](const Status&) {
      box_.journal().Add("c");
      last.set_value();
    });
  });
  last.get_future().get();
  EXPECT_THAT(box_.journal().Take(), ElementsAre("written", "written", "a", "b", "c"));
  EXPECT_EQ(box_.store().content(Table::kPending).size(), 3U);
  EXPECT_EQ(box_.store().content(Table::kDeadlines).size(), 1U) << "one deadline for the group";
}

TEST_F(CommitterTest, RewardsOfOneGroupAreAllLoggedInOrder) {
  ASSERT_TRUE(box_.Rank("a", "ann").ok());
  ASSERT_TRUE(box_.Rank("b", "bob").ok());
  std::promise<std::uint64_t> first, second;
  box_.InOneGroup(2, [&] {
    box_.SubmitReward("a", 1, [&](const auto& reply) { first.set_value(reply.value().sequence); });
    box_.SubmitReward("b", 2, [&](const auto& reply) { second.set_value(reply.value().sequence); });
  });
  EXPECT_EQ(first.get_future().get(), 1U);
  EXPECT_EQ(second.get_future().get(), 2U);
  EXPECT_EQ(box_.Log(), (Log{{1, {"ann", 1}}, {2, {"bob", 2}}}));
  ASSERT_EQ(box_.learned().size(), 2U);
  EXPECT_EQ(box_.learned()[1].event, HashEvent("b"));
  EXPECT_EQ(box_.committer().committed_sequence(), 2U);
  EXPECT_EQ(box_.committer().counters().accepted, 2U);
  EXPECT_EQ(box_.committer().counters().pending, 0);
}

TEST_F(CommitterTest, ARewardAndTheMarkOfItsDecisionAreOneWrite) {
  ASSERT_TRUE(box_.Rank("e").ok());
  ASSERT_TRUE(box_.Reward("e").ok());
  const auto writes = box_.store().writes();
  int with_log = 0;
  for (const FakeStore::Written& write : writes) {
    if (!write.Touches(Table::kLog)) continue;
    ++with_log;
    EXPECT_TRUE(write.Touches(Table::kPending));
  }
  EXPECT_EQ(with_log, 1);
  const auto decision = PendingDecision::Decode(box_.store().content(Table::kPending).at("e"));
  EXPECT_EQ(decision.value().state, PendingDecision::State::kRewarded);
}

TEST_F(CommitterTest, TheSecondRewardOfAnEventIsADuplicateInTheSameGroupToo) {
  ASSERT_TRUE(box_.Rank("e").ok());
  std::promise<RewardOutcome> first, second;
  box_.InOneGroup(2, [&] {
    box_.SubmitReward("e", 1, [&](const auto& reply) { first.set_value(reply.value().outcome); });
    box_.SubmitReward("e", 2, [&](const auto& reply) { second.set_value(reply.value().outcome); });
  });
  EXPECT_EQ(second.get_future().get(), RewardOutcome::kDuplicate);
  EXPECT_EQ(first.get_future().get(), RewardOutcome::kAccepted);
  EXPECT_EQ(box_.Log(), (Log{{1, {"ann", 1}}}));
}

TEST_F(CommitterTest, AFailedWriteChangesNothing) {
  ASSERT_TRUE(box_.Rank("e").ok());
  box_.store().Fail(FakeStore::Call::kWrite, Table::kLog);
  EXPECT_EQ(box_.Reward("e").status().message(), FakeStore::kFault);
  EXPECT_EQ(box_.committer().last_error(), FakeStore::kFault);
  EXPECT_EQ(box_.committer().committed_sequence(), 0U);
  EXPECT_EQ(box_.committer().counters().accepted, 0U);
  EXPECT_EQ(box_.committer().counters().pending, 1);
  EXPECT_THAT(box_.learned(), IsEmpty());
  box_.store().Fail(FakeStore::Call::kWrite, Table::kItems);
  EXPECT_EQ(box_.PutItem("x").message(), FakeStore::kFault);
  EXPECT_EQ(box_.items(), 0U);
  box_.store().Heal();
  EXPECT_EQ(box_.Reward("e").value().sequence, 1U) << "the number was not used";
  EXPECT_EQ(box_.committer().last_error(), "");
  EXPECT_TRUE(box_.PutItem("x").ok());
  EXPECT_EQ(box_.items(), 1U);
  box_.committer().Stop();
  const std::vector<std::string> lines = box_.journal().Take();
  EXPECT_EQ(std::ranges::count(lines, "finished e"), 1);
}

TEST_F(CommitterTest, ADecisionWithoutARewardGetsTheDefaultOnce) {
  // Twice under the same name, in one group: the deadline names it twice.
  std::promise<void> ranked;
  box_.InOneGroup(2, [&] {
    box_.SubmitRank("e", box_.Pending("ann"), [](const Status&) {});
    box_.SubmitRank("e", box_.Pending("ann"), [&](const Status&) { ranked.set_value(); });
  });
  ranked.get_future().get();
  EXPECT_EQ(box_.committer().counters().pending, 1);
  box_.Advance(kWaitMs);
  Await([&] { return box_.committer().counters().expired == 1; });
  EXPECT_EQ(box_.Reward("e").value().outcome, RewardOutcome::kLate);
  // After one more wait nothing is left of it.
  box_.Advance(kWaitMs);
  Await([&] { return box_.store().content(Table::kPending).empty(); });
  EXPECT_EQ(box_.Reward("e").value().outcome, RewardOutcome::kUnknown);
  EXPECT_THAT(box_.store().content(Table::kDeadlines), IsEmpty());
  EXPECT_EQ(box_.Log(), (Log{{1, {"ann", 0.5}}}));
  EXPECT_EQ(box_.learned().size(), 1U);
  EXPECT_EQ(box_.committer().counters().expired, 1U);
  EXPECT_EQ(box_.committer().counters().defaulted, 1U);
  EXPECT_EQ(box_.committer().counters().pending, 0);
}

TEST_F(CommitterTest, ARewardThatComesInTimeKeepsTheDefaultAway) {
  ASSERT_TRUE(box_.Rank("e").ok());
  ASSERT_TRUE(box_.Reward("e", 7).ok());
  box_.Advance(kWaitMs);
  Await([&] { return box_.store().content(Table::kPending).empty(); });
  EXPECT_EQ(box_.Log(), (Log{{1, {"ann", 7}}}));
  EXPECT_EQ(box_.committer().counters().expired, 0U);
}

TEST_F(CommitterTest, AnActivatedDecisionGetsAWaitOfItsOwn) {
  PendingDecision deferred = box_.Pending("ann");
  deferred.state = PendingDecision::State::kDeferred;
  ASSERT_TRUE(box_.Rank("e", deferred).ok());
  ASSERT_TRUE(box_.Rank("other").ok());
  box_.Advance(kWaitMs - 1);
  ASSERT_TRUE(box_.Activate("e").ok());
  box_.Advance(1);
  Await([&] { return box_.committer().counters().expired == 1; });
  EXPECT_EQ(box_.Reward("other").value().outcome, RewardOutcome::kLate);
  EXPECT_EQ(box_.Reward("e").value().outcome, RewardOutcome::kAccepted);
}

// The deadline must not be deleted before its decisions have been read.
TEST_F(CommitterTest, ADecisionThatCannotBeReadWhenItsWaitEndsEndsLater) {
  ASSERT_TRUE(box_.Rank("e").ok());
  box_.store().Fail(FakeStore::Call::kGet, Table::kPending);
  box_.Advance(kWaitMs);
  Await([&] { return !box_.committer().last_error().empty(); });
  EXPECT_EQ(box_.committer().last_error(), FakeStore::kFault);
  EXPECT_EQ(box_.store().content(Table::kDeadlines).size(), 1U);
  box_.store().Heal();
  Await([&] { return box_.committer().counters().expired == 1; });
  Await([&] { return box_.committer().last_error().empty(); });
  EXPECT_EQ(box_.Log(), (Log{{1, {"ann", 0.5}}}));
}

TEST_F(CommitterTest, AFailedScanOfDeadlinesIsReportedAndTriedAgain) {
  ASSERT_TRUE(box_.Rank("e").ok());
  ASSERT_TRUE(box_.Rank("f").ok());
  box_.store().Fail(FakeStore::Call::kScan, Table::kDeadlines);
  box_.Advance(kWaitMs);
  Await([&] { return !box_.committer().last_error().empty(); });
  EXPECT_EQ(box_.committer().last_error(), FakeStore::kFault);
  EXPECT_EQ(box_.committer().counters().expired, 0U);
  box_.store().Heal();
  Await([&] { return box_.committer().counters().expired == 2; });
  Await([&] { return box_.committer().last_error().empty(); });
  EXPECT_EQ(box_.Log().size(), 2U);
}

TEST_F(CommitterTest, AWriteThatWorksDoesNotHideThatDeadlinesCannotBeRead) {
  box_.store().Fail(FakeStore::Call::kScan, Table::kDeadlines);
  Await([&] { return !box_.committer().last_error().empty(); });
  ASSERT_TRUE(box_.PutItem("x").ok());
  EXPECT_EQ(box_.committer().last_error(), FakeStore::kFault);
}

TEST_F(CommitterTest, ADamagedDecisionDoesNotHoldUpTheOthers) {
  ASSERT_TRUE(box_.Rank("a").ok());
  ASSERT_TRUE(box_.Rank("b").ok());
  box_.store().Put(Table::kPending, "a", "junk");
  box_.Advance(kWaitMs);
  Await([&] { return box_.committer().counters().expired == 1; });  // "b"
  EXPECT_NE(box_.committer().last_error(), "");
  EXPECT_EQ(box_.Log().size(), 1U);
}

TEST_F(CommitterTest, ADamagedDeadlineIsReportedAndKept) {
  const std::string key = Deadline{.time_ms = box_.now_ms() + 5}.Key();
  box_.store().Put(Table::kDeadlines, key, "junk");
  ASSERT_TRUE(box_.Rank("e").ok());
  box_.Advance(5);
  Await([&] { return !box_.committer().last_error().empty(); });
  EXPECT_EQ(box_.store().content(Table::kDeadlines).count(key), 1U);
  EXPECT_EQ(box_.Reward("e").value().outcome, RewardOutcome::kAccepted);
}

// Taken for a new one, an event that has its reward could get a second.
TEST_F(CommitterTest, ARankOfAnEventThatCannotBeReadIsRefused) {
  ASSERT_TRUE(box_.Rank("e").ok());
  ASSERT_TRUE(box_.Reward("e").ok());
  box_.store().Fail(FakeStore::Call::kGet, Table::kPending);
  EXPECT_EQ(box_.Rank("e").message(), FakeStore::kFault);
  EXPECT_EQ(box_.Reward("e").status().message(), FakeStore::kFault);
  EXPECT_EQ(box_.Activate("e").message(), FakeStore::kFault);
  EXPECT_TRUE(box_.Rank("new", box_.Pending("bob"), false).ok()) << "which need not be read";
  box_.store().Heal();
  EXPECT_EQ(box_.Reward("e").value().outcome, RewardOutcome::kDuplicate);
  EXPECT_EQ(box_.Log().size(), 1U);
  EXPECT_EQ(box_.committer().counters().pending, 1);
}

TEST_F(CommitterTest, WantOfMemoryRefusesAGroupAndChangesNothing) {
  ASSERT_TRUE(box_.Rank("e").ok());
  box_.store().Starve(FakeStore::Call::kGet, Table::kPending);
  std::promise<Status> put, rewarded, last;
  box_.InOneGroup(3, [&] {
    box_.committer().Submit(
        Committer::PutItemsCommand{.items = {CommitterBox::MakeItem("x")},
                                   .done = [&](const Status& status) { put.set_value(status); }});
    box_.SubmitReward("e", 1, [&](const auto& reply) { rewarded.set_value(reply.status()); });
    box_.committer().Submit(Committer::DeleteItemCommand{
        .id = "first", .done = [&](const Status& status) { last.set_value(status); }});
  });
  for (std::promise<Status>* told : {&put, &rewarded, &last}) {
    EXPECT_EQ(told->get_future().get().code(), StatusCode::kUnavailable);
  }
  EXPECT_EQ(box_.items(), 1U) << "the one of before";
  box_.store().Starve(FakeStore::Call::kScan, Table::kDeadlines);
  Await([&] { return !box_.committer().last_error().empty(); });
  box_.store().Heal();
  Await([&] { return box_.committer().last_error().empty(); });
  EXPECT_EQ(box_.Reward("e").value().sequence, 1U);
}

TEST_F(CommitterTest, DeletingAnItemThatIsNotThereLogsNothing) {
  std::promise<Status> gone, put, deleted;
  box_.committer().Submit(Committer::DeleteItemCommand{
      .id = "nothing", .done = [&](const Status& status) { gone.set_value(status); }});
  EXPECT_EQ(gone.get_future().get().code(), StatusCode::kNotFound);
  EXPECT_TRUE(box_.Log().empty());
  // One that came in the same group is there.
  box_.InOneGroup(2, [&] {
    box_.committer().Submit(
        Committer::PutItemsCommand{.items = {CommitterBox::MakeItem("x")},
                                   .done = [&](const Status& status) { put.set_value(status); }});
    box_.committer().Submit(Committer::DeleteItemCommand{
        .id = "x", .done = [&](const Status& status) { deleted.set_value(status); }});
  });
  EXPECT_TRUE(put.get_future().get().ok());
  EXPECT_TRUE(deleted.get_future().get().ok());
  EXPECT_EQ(box_.Log().size(), 1U);
}

TEST_F(CommitterTest, UserZeroIsAUserLikeAnyOther) {
  const auto put = [&](const std::string& event, PendingDecision::State state,
                       std::int64_t time_ms) {
    PendingDecision pending = box_.Pending("nemo");
    pending.state = state;
    pending.time_ms = pending.made_ms = time_ms;
    pending.decision.user = 0;
    box_.store().Put(Table::kPending, event, pending.Encode());
  };
  using State = PendingDecision::State;
  put("before", State::kWaiting, box_.now_ms());
  put("after", State::kWaiting, box_.now_ms() + 1);
  put("rewarded", State::kRewarded, box_.now_ms());
  put("expired", State::kExpired, box_.now_ms());
  box_.store().Put(Table::kMeta, "forgotten/" + NumberKey(0),
                   NumberKey(static_cast<std::uint64_t>(box_.now_ms())));
  box_.Open();
  EXPECT_EQ(box_.Reward("before").value().outcome, RewardOutcome::kUnknown);
  EXPECT_EQ(box_.Reward("after").value().outcome, RewardOutcome::kAccepted);
  // What is left of these names no user, so they are not those of user 0.
  EXPECT_EQ(box_.Reward("rewarded").value().outcome, RewardOutcome::kDuplicate);
  EXPECT_EQ(box_.Reward("expired").value().outcome, RewardOutcome::kLate);
  EXPECT_TRUE(box_.Activate("rewarded").ok());
}

TEST_F(CommitterTest, ForgettingCountsForWhatFollowsInItsGroup) {
  ASSERT_TRUE(box_.Rank("before").ok());
  std::promise<RewardOutcome> outcome;
  box_.InOneGroup(2, [&] {
    box_.committer().Submit(Committer::ForgetCommand{.user = "ann", .done = [](const Status&) {}});
    box_.SubmitReward("before", 1,
                      [&](const auto& reply) { outcome.set_value(reply.value().outcome); });
  });
  EXPECT_EQ(outcome.get_future().get(), RewardOutcome::kUnknown);
  ASSERT_EQ(box_.learned().size(), 1U);
  EXPECT_EQ(box_.learned()[0].kind, LogRecord::Kind::kForget);
  // It also counts after a restart, and for the default reward.
  box_.Open();
  EXPECT_EQ(box_.Reward("before").value().outcome, RewardOutcome::kUnknown);
  box_.Advance(kWaitMs);
  Await([&] { return box_.store().content(Table::kPending).empty(); });
  EXPECT_EQ(box_.learned().size(), 1U);
  // The mark is needed no longer than a decision can wait.
  const std::string key = NumberKey(HashUser("ann"));
  EXPECT_EQ(box_.store().content(Table::kMeta).count("forgotten/" + key), 1U);
  box_.Advance(1);
  Await([&] { return box_.store().content(Table::kMeta).count("forgotten/" + key) == 0; });
}

// Whatever the learner and the store still have, the eraser goes by this mark.
TEST_F(CommitterTest, WhoIsForgottenIsMarkedForTheEraser) {
  ASSERT_TRUE(box_.Rank("e").ok());
  const Status forgotten = Wait<Status>([&](auto done) {
    box_.committer().Submit(Committer::ForgetCommand{.user = "ann", .done = std::move(done)});
  });
  ASSERT_TRUE(forgotten.ok()) << forgotten.ToString();
  EXPECT_EQ(box_.store().content(Table::kMeta).count(Eraser::Key(HashUser("ann"))), 1U);
}

TEST_F(CommitterTest, ADecisionOfAUserWhoIsBeingForgottenCountsAsMadeAfterThat) {
  std::promise<Status> ranked;
  const PendingDecision asked_before = box_.Pending("ann");
  box_.Advance(1);
  box_.InOneGroup(2, [&] {
    box_.committer().Submit(Committer::ForgetCommand{.user = "ann", .done = [](const Status&) {}});
    box_.SubmitRank("e", asked_before, [&](const Status& status) { ranked.set_value(status); });
  });
  ASSERT_TRUE(ranked.get_future().get().ok());
  EXPECT_EQ(box_.Reward("e").value().outcome, RewardOutcome::kAccepted);
}

TEST_F(CommitterTest, AnActivationAfterTheWaitOrAfterForgettingIsRefused) {
  ASSERT_TRUE(box_.Rank("e").ok());
  ASSERT_TRUE(box_.Rank("f", "bob").ok());
  std::promise<Status> late;
  std::promise<Status> forgotten;
  const auto activate = [&](const std::string& event, std::promise<Status>& told) {
    box_.committer().Submit(Committer::ActivateCommand{
        .event_id = event, .done = [&told](const Status& status) { told.set_value(status); }});
  };
  box_.InOneGroup(3, [&] {
    box_.committer().Submit(Committer::ForgetCommand{.user = "bob", .done = [](const Status&) {}});
    activate("f", forgotten);
    box_.Advance(kWaitMs + 1);  // before it is looked whose waits are over
    activate("e", late);
  });
  EXPECT_EQ(forgotten.get_future().get().code(), StatusCode::kNotFound);
  EXPECT_EQ(late.get_future().get().code(), StatusCode::kGone);
}

TEST_F(CommitterTest, AnImportedDecisionTakesItsRewardHoweverLate) {
  PendingDecision past = box_.Pending("ann");
  past.state = PendingDecision::State::kPast;
  ASSERT_TRUE(box_.Rank("e", past).ok());
  ASSERT_TRUE(box_.Rank("f").ok());
  std::promise<RewardOutcome> imported;
  std::promise<RewardOutcome> late;
  box_.InOneGroup(2, [&] {
    box_.Advance(kWaitMs + 1);
    box_.SubmitReward("e", 1,
                      [&](const auto& reply) { imported.set_value(reply.value().outcome); });
    box_.SubmitReward("f", 1, [&](const auto& reply) { late.set_value(reply.value().outcome); });
  });
  EXPECT_EQ(imported.get_future().get(), RewardOutcome::kAccepted);
  EXPECT_EQ(late.get_future().get(), RewardOutcome::kLate);
}

TEST_F(CommitterTest, OfTwoEqualRequestsThatChoseDifferentlyOneIsToldToAskAgain) {
  PendingDecision other = box_.Pending("ann");
  other.action = "y";
  std::promise<Status> first;
  std::promise<Status> second;
  box_.InOneGroup(2, [&] {
    box_.SubmitRank("e", box_.Pending("ann"), [&](const Status& told) { first.set_value(told); });
    box_.SubmitRank("e", other, [&](const Status& told) { second.set_value(told); });
  });
  EXPECT_TRUE(first.get_future().get().ok());
  EXPECT_EQ(second.get_future().get().code(), StatusCode::kUnavailable);
}

TEST_F(CommitterTest, AStoreThatFailsAndIsMendedIsReportedOnceEach) {
  box_.options().log = [&](const LogLine& line) {
    box_.journal().Add(fmt::format("{} {}", line.cause, line.level == LogLevel::kError));
  };
  box_.store().on_written = nullptr;
  box_.Open();
  box_.store().Fail(FakeStore::Call::kWrite, Table::kItems);
  EXPECT_FALSE(box_.PutItem("x").ok());
  EXPECT_FALSE(box_.PutItem("y").ok());
  box_.store().Heal();
  EXPECT_TRUE(box_.PutItem("x").ok());
  EXPECT_TRUE(box_.PutItem("y").ok());
  EXPECT_THAT(box_.journal().Take(), ElementsAre("store true", "store false"));
}

TEST_F(CommitterTest, AStopSavesTheClockWhileDecisionsWait) {
  ASSERT_TRUE(box_.Rank("e").ok());
  const auto clock = [&] {
    return ClockRecord::Decode(
               box_.store().content(Table::kMeta).at(std::string(ClockRecord::kKey)))
        .value();
  };
  const std::int64_t before = clock().wait_ms;
  box_.Advance(kWaitMs / 2);
  box_.committer().Stop();
  EXPECT_EQ(clock().wait_ms, before + kWaitMs / 2);
}

TEST_F(CommitterTest, GoesOnAfterARestartWhereItWas) {
  ASSERT_TRUE(box_.Rank("a", "ann").ok());
  ASSERT_TRUE(box_.Rank("b", "bob").ok());
  ASSERT_TRUE(box_.Reward("a").ok());
  box_.Open();
  EXPECT_EQ(box_.committer().counters().pending, 1);
  EXPECT_EQ(box_.Reward("a").value().outcome, RewardOutcome::kDuplicate);
  // A new deadline of the same time is one more, not the same.
  ASSERT_TRUE(box_.Rank("c", "cyd").ok());
  EXPECT_EQ(box_.store().content(Table::kDeadlines).size(), 3U);
  box_.Advance(kWaitMs);
  Await([&] { return box_.committer().counters().expired == 2; });
  EXPECT_EQ(box_.Log(), (Log{{1, {"ann", 1}}, {2, {"bob", 0.5}}, {3, {"cyd", 0.5}}}));
}

TEST_F(CommitterTest, RefusesToOpenWhatItCannotRead) {
  ASSERT_TRUE(box_.Rank("e").ok());
  for (const Table table : {Table::kMeta, Table::kPending, Table::kDeadlines}) {
    box_.store().Fail(FakeStore::Call::kScan, table);
    EXPECT_EQ(box_.TryOpen().message(), FakeStore::kFault);
  }
  box_.store().Heal();
  box_.store().Put(Table::kDeadlines, "short", "");
  EXPECT_EQ(box_.TryOpen().code(), StatusCode::kCorruption);
}

TEST_F(CommitterTest, StoppingCommitsWhatWaitsAndRefusesTheRest) {
  std::promise<Status> waiting;
  box_.InOneGroup(1, [&] {
    box_.SubmitRank("e", box_.Pending("ann"),
                    [&](const Status& status) { waiting.set_value(status); });
  });
  box_.committer().Stop();
  EXPECT_TRUE(waiting.get_future().get().ok());
  EXPECT_EQ(box_.store().content(Table::kPending).size(), 1U);
  EXPECT_EQ(box_.Rank("late").code(), StatusCode::kUnavailable);
}

TEST_F(CommitterTest, AFullQueueRefusesAtOnce) {
  box_.options().max_queue = 1;
  box_.Open();
  std::promise<void> queued;
  box_.InOneGroup(1, [&] {
    box_.SubmitRank("a", box_.Pending("ann"), [&](const Status&) { queued.set_value(); });
    EXPECT_EQ(box_.Rank("b").code(), StatusCode::kUnavailable);
  });
  queued.get_future().get();
  EXPECT_EQ(box_.store().content(Table::kPending).size(), 1U);
}

}  // namespace
}  // namespace codband::engine
