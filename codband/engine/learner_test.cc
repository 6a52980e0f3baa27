#include "codband/engine/learner.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "codband/engine/learner_testing.h"

namespace codband::engine {
namespace {

using store::Table;
using testing::HasSubstr;
using testing::IsEmpty;

// Readers see one copy after the first entry, the other after the second, and so on.
TEST_F(LearnerTest, BothCopiesLearnEveryEntryInOrder) {
  const Reference reference = MakeReference(60, 4);
  Open();
  for (std::size_t i = 0; i < reference.log.size(); ++i) {
    ASSERT_TRUE(Learn(reference.log[i]).ok());
    ASSERT_EQ(State(), reference.states[i + 1]) << "entry " << i;
    ASSERT_EQ(learner_->applied_sequence(), i + 1);
  }
  EXPECT_EQ(Observations("user3"), 15U);
  EXPECT_EQ(learner_->Read([](const Learned& learned) { return learned.users; }), 4U);
}

TEST_F(LearnerTest, EntriesSubmittedTogetherAreAppliedInTheirOrder) {
  const Reference reference = MakeReference(50, 3);
  Open();
  std::vector<Learner::Entry> entries;
  std::vector<std::uint64_t> told;
  std::promise<void> last;
  for (const LogRecord& record : reference.log) {
    PutIntoLog(record);
    entries.push_back({.sequence = last_sequence_,
                       .record = record,
                       .done = [&, sequence = last_sequence_](const Status&) {
                         told.push_back(sequence);
                         if (sequence == 50) last.set_value();
                       }});
  }
  learner_->Submit(std::move(entries));
  last.get_future().get();
  EXPECT_EQ(State(), reference.states.back());
  EXPECT_EQ(told.size(), 50U);
  EXPECT_TRUE(std::ranges::is_sorted(told));
}

TEST_F(LearnerTest, ARewardIsAcknowledgedWhenReadersSeeIt) {
  const Reference reference = MakeReference(1, 1);
  Open();
  PutIntoLog(reference.log[0]);
  std::promise<std::uint64_t> seen;
  std::vector<Learner::Entry> entries;
  entries.push_back({.sequence = 1, .record = reference.log[0], .done = [&](const Status&) {
                       seen.set_value(Observations("user0"));
                     }});
  learner_->Submit(std::move(entries));
  EXPECT_EQ(seen.get_future().get(), 1U);
}

// More than are applied at a time.
TEST_F(LearnerTest, ReplayAppliesEveryEntryOfTheLog) {
  const Reference reference = MakeReference(2300, 5, false);
  for (const LogRecord& record : reference.log) PutIntoLog(record);
  Open();
  EXPECT_EQ(learner_->applied_sequence(), 2300U);
  EXPECT_EQ(State(), reference.states.back());
  EXPECT_EQ(Observations("user4"), 460U);
}

TEST_F(LearnerTest, ReplayStartsAfterTheCheckpoint) {
  const Reference reference = MakeReference(40, 3);
  Open();
  for (std::size_t i = 0; i < 25; ++i) ASSERT_TRUE(Learn(reference.log[i]).ok());
  const FakeStore::Content log = store_.content(Table::kLog);
  ASSERT_TRUE(learner_->Checkpoint().ok());
  EXPECT_EQ(learner_->checkpoint_sequence(), 25U);
  EXPECT_THAT(store_.content(Table::kLog), IsEmpty());
  for (std::size_t i = 25; i < 40; ++i) ASSERT_TRUE(Learn(reference.log[i]).ok());
  EXPECT_EQ(store_.content(Table::kLog).size(), 15U);
  // A crash before the log was shortened leaves entries that the checkpoint contains.
  for (const auto& [key, value] : log) store_.Put(Table::kLog, key, value);
  Crash();
  EXPECT_EQ(learner_->applied_sequence(), 40U);
  EXPECT_EQ(learner_->checkpoint_sequence(), 25U);
  for (std::size_t user = 0; user < 3; ++user) {
    EXPECT_EQ(Observations(UserName(user)), (40 - user + 2) / 3) << user;
  }
  // All users have been seen since, so all of them are in memory again.
  EXPECT_EQ(State(), reference.states[40]);
}

// The committer writes entries to the log before the learner has them.
TEST_F(LearnerTest, ACheckpointLeavesTheLogEntriesThatItDoesNotContain) {
  const Reference reference = MakeReference(4, 2);
  Open();
  for (std::size_t i = 0; i < 2; ++i) ASSERT_TRUE(Learn(reference.log[i]).ok());
  for (std::size_t i = 2; i < 4; ++i) PutIntoLog(reference.log[i]);
  ASSERT_TRUE(learner_->Checkpoint().ok());
  EXPECT_EQ(learner_->checkpoint_sequence(), 2U);
  Crash();
  EXPECT_EQ(learner_->applied_sequence(), 4U);
  EXPECT_EQ(State(), reference.states[4]);
}

TEST_F(LearnerTest, ReplayRefusesAFailedScanAndADamagedCheckpoint) {
  const Reference reference = MakeReference(5, 2);
  for (const LogRecord& record : reference.log) PutIntoLog(record);
  store_.Fail(FakeStore::Call::kScan, Table::kLog, 4);
  EXPECT_EQ(TryOpen().message(), FakeStore::kFault);
  store_.Fail(FakeStore::Call::kGet, Table::kCheckpoint);
  EXPECT_EQ(TryOpen().message(), FakeStore::kFault);
  store_.Heal();
  EXPECT_TRUE(TryOpen().ok());
  EXPECT_EQ(learner_->applied_sequence(), 5U);
  store_.Put(Table::kCheckpoint, std::string(CheckpointRecord::kKey), "junk");
  EXPECT_EQ(TryOpen().code(), StatusCode::kCorruption);
  EXPECT_THAT(TryOpen().message(), HasSubstr("the checkpoint cannot be read: "));
}

TEST_F(LearnerTest, EitherCopyOfTheCheckpointIsEnough) {
  const Reference reference = MakeReference(5, 2);
  Open();
  for (const LogRecord& record : reference.log) ASSERT_TRUE(Learn(record).ok());
  const std::string key(CheckpointRecord::kKey);
  ASSERT_TRUE(learner_->Checkpoint().ok());
  ASSERT_TRUE(TryOpen().ok());
  const auto undamaged = State();
  for (const Table damaged : {Table::kCheckpoint, Table::kCheckpointCopy}) {
    ASSERT_TRUE(learner_->Checkpoint().ok());
    store_.Put(damaged, key, "junk");
    ASSERT_TRUE(TryOpen().ok());
    EXPECT_EQ(learner_->applied_sequence(), 5U);
    EXPECT_TRUE(State() == undamaged);
  }
  store_.Put(Table::kCheckpoint, key, "junk");
  EXPECT_EQ(TryOpen().code(), StatusCode::kCorruption);
}

TEST_F(LearnerTest, ACheckpointHoldsEveryUserWhoChanged) {
  const Reference reference = MakeReference(40, 8);
  Open();
  for (std::size_t i = 0; i < 8; ++i) ASSERT_TRUE(Learn(reference.log[i]).ok());
  ASSERT_TRUE(learner_->Checkpoint().ok());
  EXPECT_EQ(store_.content(Table::kUsers).size(), 8U);
  EXPECT_EQ(store_.content(Table::kPeople).size(), 8U);
  const FakeStore::Content first = store_.content(Table::kPeople);
  // Users 0 to 3 change, the others do not.
  for (std::size_t i = 8; i < 12; ++i) ASSERT_TRUE(Learn(reference.log[i]).ok());
  ASSERT_TRUE(learner_->Checkpoint().ok());
  const FakeStore::Content second = store_.content(Table::kPeople);
  ASSERT_EQ(second.size(), 8U);
  for (std::size_t user = 0; user < 8; ++user) {
    const std::string key = NumberKey(HashUser(UserName(user)));
    EXPECT_EQ(second.at(key) != first.at(key), user < 4) << user;
  }
  Crash();
  for (std::size_t user = 0; user < 8; ++user) {
    EXPECT_EQ(Observations(UserName(user)), user < 4 ? 2U : 1U) << user;
  }
  // It goes on as if it had not been stopped.
  for (std::size_t i = 12; i < 40; ++i) ASSERT_TRUE(Learn(reference.log[i]).ok());
  EXPECT_EQ(State(), reference.states[40]);
}

TEST_F(LearnerTest, AFailedCheckpointChangesNothingAndTheNextOneHasItAll) {
  const Reference reference = MakeReference(20, 4);
  Open();
  for (std::size_t i = 0; i < 20; ++i) ASSERT_TRUE(Learn(reference.log[i]).ok());
  store_.Fail(FakeStore::Call::kWriteBulk, Table::kUsers);
  EXPECT_EQ(learner_->Checkpoint().message(), FakeStore::kFault);
  EXPECT_EQ(learner_->last_error(), std::string("checkpoint: ") + FakeStore::kFault);
  EXPECT_EQ(learner_->checkpoint_sequence(), 0U);
  EXPECT_FALSE(learner_->has_checkpoint());
  EXPECT_EQ(store_.content(Table::kLog).size(), 20U);
  EXPECT_EQ(State(), reference.states[20]);
  store_.Heal();
  ASSERT_TRUE(learner_->Checkpoint().ok());
  EXPECT_EQ(learner_->last_error(), "");
  EXPECT_EQ(store_.content(Table::kUsers).size(), 4U);
  Crash();
  EXPECT_EQ(Observations("user3"), 5U);
}

TEST_F(LearnerTest, ALogThatCannotBeShortenedIsReported) {
  const Reference reference = MakeReference(3, 1);
  Open();
  for (const LogRecord& record : reference.log) ASSERT_TRUE(Learn(record).ok());
  store_.Fail(FakeStore::Call::kWrite, Table::kLog);
  EXPECT_FALSE(learner_->Checkpoint().ok());
  EXPECT_THAT(learner_->last_error(), HasSubstr(FakeStore::kFault));
  EXPECT_EQ(learner_->checkpoint_sequence(), 3U) << "the checkpoint itself was made";
  store_.Heal();
  ASSERT_TRUE(learner_->Checkpoint().ok());
  EXPECT_EQ(learner_->last_error(), "");
  EXPECT_THAT(store_.content(Table::kLog), IsEmpty());
}

TEST_F(LearnerTest, ALogThatCouldNotBeShortenedIsShortenedLaterWithoutNewEntries) {
  const Reference reference = MakeReference(3, 1);
  options_.checkpoint_interval_ms = 1;
  Open();
  store_.Fail(FakeStore::Call::kWrite, Table::kLog);
  for (const LogRecord& record : reference.log) ASSERT_TRUE(Learn(record).ok());
  Await([&] { return !learner_->last_error().empty(); });
  store_.Heal();
  Await([&] { return learner_->last_error().empty(); });
}

TEST_F(LearnerTest, AForgottenUserLeavesTheStoreWithTheNextCheckpoint) {
  const Reference reference = MakeReference(12, 3);
  Open();
  for (const LogRecord& record : reference.log) ASSERT_TRUE(Learn(record).ok());
  ASSERT_TRUE(learner_->Checkpoint().ok());
  const std::uint64_t checkpoints = learner_->checkpoints();
  EXPECT_TRUE(Forget("user1").ok());
  EXPECT_EQ(Observations("user1"), 0U);
  EXPECT_EQ(Forget("user1").code(), StatusCode::kNotFound);
  EXPECT_EQ(learner_->Read([](const Learned& learned) { return learned.users; }), 2U);
  // The checkpoint follows by itself.
  Await([&] { return learner_->checkpoints() > checkpoints; });
  ASSERT_TRUE(learner_->Checkpoint().ok());
  const std::string key = NumberKey(HashUser("user1"));
  for (const Table table : {Table::kUsers, Table::kPeople}) {
    EXPECT_EQ(store_.content(table).size(), 2U);
    EXPECT_EQ(store_.content(table).count(key), 0U);
  }
  Crash();
  EXPECT_EQ(Observations("user1"), 0U);
  EXPECT_EQ(Observations("user2"), 4U);
}

// Where ids have no secret two names may have one id: forgetting the one leaves the other alone.
TEST_F(LearnerTest, ForgettingANameWithTheIdOfAnotherUserForgetsNobody) {
  constexpr const char* kCustomer = "customer-1109";
  constexpr const char* kForged = "&/(Q4~R)";
  ASSERT_EQ(HashUser(kCustomer), HashUser(kForged));
  Reference reference = MakeReference(2, 1);
  for (LogRecord& record : reference.log) {
    record.user = kCustomer;
    record.decision.user = HashUser(kCustomer);
  }
  Open();
  for (const LogRecord& record : reference.log) ASSERT_TRUE(Learn(record).ok());
  ASSERT_TRUE(learner_->Checkpoint().ok());
  EXPECT_EQ(Forget(kForged).code(), StatusCode::kConflict);
  ASSERT_TRUE(learner_->Checkpoint().ok());
  for (const Table table : {Table::kUsers, Table::kPeople}) {
    EXPECT_EQ(store_.content(table).size(), 1U);
  }
  EXPECT_EQ(Observations(kCustomer), 2U);
}

TEST_F(LearnerTest, AFailedCheckpointIsReportedAndSoIsTheNextThatSucceeds) {
  const Reference reference = MakeReference(3, 1);
  std::vector<std::string> lines;
  options_.log = [&](const LogLine& line) {
    lines.push_back(fmt::format("{} {}", line.cause, line.level == LogLevel::kError));
  };
  Open();
  for (const LogRecord& record : reference.log) ASSERT_TRUE(Learn(record).ok());
  store_.Fail(FakeStore::Call::kWriteBulk, Table::kUsers);
  EXPECT_FALSE(learner_->Checkpoint().ok());
  store_.Heal();
  EXPECT_TRUE(learner_->Checkpoint().ok());
  EXPECT_TRUE(learner_->Checkpoint().ok());
  EXPECT_THAT(lines, testing::ElementsAre("checkpoint true", "checkpoint false"));
}

TEST_F(LearnerTest, UsersWhoAreForgottenAreUnsavedUntilACheckpointSucceeds) {
  const Reference reference = MakeReference(6, 3);
  Open();
  for (const LogRecord& record : reference.log) ASSERT_TRUE(Learn(record).ok());
  ASSERT_TRUE(learner_->Checkpoint().ok());
  store_.Fail(FakeStore::Call::kWriteBulk, Table::kUsers);
  EXPECT_TRUE(Forget("user1").ok());
  EXPECT_THAT(learner_->CollectUnsaved().erased, testing::ElementsAre(HashUser("user1")));
  store_.Heal();
  ASSERT_TRUE(learner_->Checkpoint().ok());
  EXPECT_THAT(learner_->CollectUnsaved().erased, IsEmpty());
}

TEST_F(LearnerTest, UsersWhoLeftTheMemoryComeBackAsTheyWere) {
  const Reference reference = MakeReference(120, 30);
  options_.users_in_memory = 5;
  Open();
  for (const LogRecord& record : reference.log) ASSERT_TRUE(Learn(record).ok());
  ASSERT_TRUE(learner_->Checkpoint().ok());
  EXPECT_LE(learner_->Read([](const Learned& learned) { return learned.people.size(); }), 5U);
  EXPECT_EQ(store_.content(Table::kUsers).size(), 30U);
  for (std::size_t user = 0; user < 30; ++user) EXPECT_EQ(Observations(UserName(user)), 4U);
  ExpectTheRecordsOfALearnerWithoutPaging(reference);
}

// A few users with rich records need as much memory as many with poor ones.
TEST_F(LearnerTest, UsersLeaveTheMemoryWhenTheyTakeTooMuchOfIt) {
  const Reference reference = MakeReference(400, 40);
  options_.checkpoint_events = 1'000'000;
  options_.user_memory_bytes = 20'000;
  Open();
  std::size_t most = 0;
  for (const LogRecord& record : reference.log) {
    ASSERT_TRUE(Learn(record).ok());
    learner_->RunBetween([] {});  // a checkpoint that is due is made before
    most =
        std::max(most, learner_->Read([](const Learned& learned) { return learned.user_bytes(); }));
  }
  EXPECT_LE(most, options_.user_memory_bytes / kCopies);
  EXPECT_GT(most, options_.user_memory_bytes / kCopies / 2);
  EXPECT_LT(learner_->Read([](const Learned& learned) { return learned.people.size(); }), 30U);
  for (std::size_t user = 0; user < 40; ++user) EXPECT_EQ(Observations(UserName(user)), 10U);
  ASSERT_TRUE(learner_->Checkpoint().ok());
  ExpectTheRecordsOfALearnerWithoutPaging(reference);
}

// That is not the entry's fault: it is learned once the store can be read again.
TEST_F(LearnerTest, LearningWaitsWhileAUserCannotBeReadAndGoesOnByItself) {
  const Reference reference = MakeReference(20, 4);
  Open();
  for (std::size_t i = 0; i < 10; ++i) ASSERT_TRUE(Learn(reference.log[i]).ok());
  ASSERT_TRUE(learner_->Checkpoint().ok());
  Crash();  // no user is in memory
  store_.Fail(FakeStore::Call::kGet, Table::kUsers);
  const Status failed = Learn(reference.log[10]);
  EXPECT_EQ(failed.code(), StatusCode::kUnavailable);
  EXPECT_THAT(failed.message(), HasSubstr("learning waits at log entry 11: the disk is broken"));
  EXPECT_EQ(learner_->last_error(), failed.message());
  EXPECT_EQ(Learn(reference.log[11]).code(), StatusCode::kUnavailable);
  EXPECT_EQ(learner_->applied_sequence(), 10U);
  EXPECT_EQ(learner_->Checkpoint().code(), StatusCode::kUnavailable);
  EXPECT_EQ(learner_->checkpoint_sequence(), 10U);
  store_.Heal();
  Await([&] { return learner_->last_error().empty(); });
  EXPECT_EQ(learner_->applied_sequence(), 12U);
  EXPECT_EQ(learner_->quarantine().entries(), 0U);
  for (std::size_t i = 12; i < 20; ++i) ASSERT_TRUE(Learn(reference.log[i]).ok());
  EXPECT_EQ(State(), reference.states[20]);
}

TEST_F(LearnerTest, CheckpointsComeAfterSoManyEntriesAndWhenItStops) {
  const Reference reference = MakeReference(7, 2);
  options_.checkpoint_events = 5;
  Open();
  for (std::size_t i = 0; i < 7; ++i) {
    ASSERT_TRUE(Learn(reference.log[i]).ok());
    learner_->RunBetween([] {});  // a checkpoint that is due is made before
  }
  EXPECT_EQ(learner_->checkpoint_sequence(), 5U);
  EXPECT_EQ(learner_->checkpoints(), 1U);
  learner_->Stop();
  EXPECT_EQ(learner_->checkpoint_sequence(), 7U);
  EXPECT_THAT(store_.content(Table::kLog), IsEmpty());
}

TEST_F(LearnerTest, UnsavedRecordsAreThoseSinceTheCheckpoint) {
  const Reference reference = MakeReference(8, 4);
  Open();
  for (std::size_t i = 0; i < 6; ++i) ASSERT_TRUE(Learn(reference.log[i]).ok());
  ASSERT_TRUE(learner_->Checkpoint().ok());
  EXPECT_THAT(learner_->CollectUnsaved().people, IsEmpty());
  for (std::size_t i = 6; i < 8; ++i) ASSERT_TRUE(Learn(reference.log[i]).ok());
  const Learner::Unsaved unsaved = learner_->CollectUnsaved();
  EXPECT_EQ(unsaved.people.size(), 2U);
  EXPECT_EQ(unsaved.people.count(HashUser("user2")), 1U);
  EXPECT_EQ(unsaved.people.count(HashUser("user3")), 1U);
}

TEST_F(LearnerTest, RunsTasksOnItsThreadAndPassesOnWhatTheyThrow) {
  Open();
  std::thread::id where;
  learner_->RunBetween([&] { where = std::this_thread::get_id(); });
  EXPECT_NE(where, std::this_thread::get_id());
  EXPECT_THROW(learner_->RunBetween([] { throw std::runtime_error("no"); }), std::runtime_error);
}

}  // namespace
}  // namespace codband::engine
