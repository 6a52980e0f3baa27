#include "codband/engine/quarantine.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <mutex>
#include <new>
#include <stdexcept>

#include "codband/engine/faulty_policy.h"
#include "codband/engine/learner_testing.h"

namespace codband::engine {
namespace {

using store::Table;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr double kPoison = 666;
constexpr double kHungry = 777;

// A learner whose policy learns rewards of kPoison in part and then throws.
class QuarantineTest : public LearnerTest {
 protected:
  QuarantineTest() {
    options_.now_ms = [] { return std::int64_t{5}; };
    options_.make_policy = FaultyPolicy::Maker([this](double reward) {
      if (reward == kPoison) {
        ++thrown_;
        if (when_poisoned_) when_poisoned_();
        throw std::domain_error("isfinite(mean)");
      }
      if (reward == kHungry && hunger_ > 0) {
        --hunger_;
        throw std::bad_alloc();
      }
    });
    options_.log = [this](const LogLine& line) {
      const std::lock_guard lock(mutex_);
      lines_.push_back(fmt::format("{}: {}", line.cause, line.message));
    };
  }

  // The reward at this place of the reference again, but of another value.
  static LogRecord Bad(const Reference& reference, std::size_t like, double reward = kPoison) {
    LogRecord record = reference.log[like];
    record.reward = reward;
    record.event = 1'000'000 + like;
    return record;
  }
  // Submits the records together; what each is told.
  std::vector<Status> LearnTogether(const std::vector<LogRecord>& records) {
    std::vector<Learner::Entry> entries;
    std::vector<std::promise<Status>> told(records.size());
    for (std::size_t i = 0; i < records.size(); ++i) {
      PutIntoLog(records[i]);
      entries.push_back({.sequence = last_sequence_,
                         .record = records[i],
                         .done = [&, i](const Status& status) { told[i].set_value(status); }});
    }
    learner_->Submit(std::move(entries));
    std::vector<Status> statuses;
    for (std::promise<Status>& each : told) statuses.push_back(each.get_future().get());
    return statuses;
  }
  // What a checkpoint holds of the policy, wherever the users are.
  std::pair<std::string, FakeStore::Content> Saved() {
    EXPECT_TRUE(learner_->Checkpoint().ok());
    const std::string bytes =
        store_.content(Table::kCheckpoint).at(std::string(CheckpointRecord::kKey));
    return {CheckpointRecord::Decode(bytes).value().shared, store_.content(Table::kUsers)};
  }
  std::vector<std::string> TakeLines() {
    const std::lock_guard lock(mutex_);
    return std::exchange(lines_, {});
  }

  std::atomic<int> thrown_ = 0;
  std::atomic<int> hunger_ = 0;
  std::function<void()> when_poisoned_;
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

TEST_F(QuarantineTest, AnEntryThatThrowsIsLeftOutAndTheRestIsLearned) {
  const Reference reference = MakeReference(30, 4);
  Open();
  for (std::size_t i = 0; i < 10; ++i) ASSERT_TRUE(Learn(reference.log[i]).ok());
  const Status told = Learn(Bad(reference, 3));
  EXPECT_EQ(told.code(), StatusCode::kRejected);
  EXPECT_EQ(told.message(),
            "value: is kept but cannot be learned: isfinite(mean); log entry 11 is in quarantine "
            "and changes no recommendation");
  EXPECT_EQ(learner_->last_error(), "");
  EXPECT_THAT(TakeLines(), ElementsAre(HasSubstr("quarantine: log entry 11 cannot be learned")));
  // Readers see one copy after the first of these, the other after the second.
  for (std::size_t i = 10; i < 20; ++i) {
    ASSERT_TRUE(Learn(reference.log[i]).ok());
    ASSERT_EQ(State(), reference.states[i + 1]) << "entry " << i;
  }
  const auto list = learner_->quarantine().List();
  ASSERT_THAT(list, SizeIs(1));
  EXPECT_EQ(list[0].first, 11U);
  EXPECT_EQ(list[0].user, "user3");
  EXPECT_EQ(list[0].reward, kPoison);
  EXPECT_EQ(list[0].reason, "isfinite(mean)");
  EXPECT_EQ(list[0].time_ms, 5);
  // A restart leaves it out without trying it, and has the same bits.
  thrown_ = 0;
  Crash();
  EXPECT_EQ(thrown_, 0);
  EXPECT_EQ(learner_->applied_sequence(), 21U);
  EXPECT_THAT(learner_->quarantine().List(), SizeIs(1));
  for (std::size_t i = 20; i < 30; ++i) ASSERT_TRUE(Learn(reference.log[i]).ok());
  EXPECT_EQ(State(), reference.states[30]);
  EXPECT_THAT(TakeLines(), IsEmpty());
}

TEST_F(QuarantineTest, OthersOfItsGroupAreLearnedAndToldSo) {
  const Reference reference = MakeReference(12, 3);
  Open();
  std::vector<LogRecord> group(reference.log.begin(), reference.log.begin() + 4);
  group.push_back(Bad(reference, 0));
  group.push_back({.kind = LogRecord::Kind::kForget, .user = "nobody"});
  group.insert(group.end(), reference.log.begin() + 4, reference.log.begin() + 8);
  group.push_back(Bad(reference, 1));
  group.insert(group.end(), reference.log.begin() + 8, reference.log.end());
  const std::vector<Status> told = LearnTogether(group);
  for (std::size_t i = 0; i < told.size(); ++i) {
    const StatusCode expected = i == 4 || i == 10 ? StatusCode::kRejected
                                : i == 5          ? StatusCode::kNotFound
                                                  : StatusCode::kOk;
    EXPECT_EQ(told[i].code(), expected) << i << ": " << told[i].ToString();
  }
  EXPECT_EQ(learner_->applied_sequence(), 15U);
  EXPECT_EQ(State(), reference.states[12]);
  EXPECT_EQ(learner_->quarantine().entries(), 2U);
  Crash();
  EXPECT_EQ(Observations("user0"), 4U);
}

TEST_F(QuarantineTest, ReadersNeverSeeHalfAnEntry) {
  const Reference reference = MakeReference(10, 2);
  Open();
  for (std::size_t i = 0; i < 9; ++i) ASSERT_TRUE(Learn(reference.log[i]).ok());
  when_poisoned_ = [&] { EXPECT_EQ(State(), reference.states[9]); };
  EXPECT_EQ(Learn(Bad(reference, 3)).code(), StatusCode::kRejected);
  EXPECT_EQ(thrown_, 1);
  EXPECT_EQ(State(), reference.states[9]);
  ASSERT_TRUE(Learn(reference.log[9]).ok());
  EXPECT_EQ(State(), reference.states[10]);
}

// A start with what an earlier version left behind.
TEST_F(QuarantineTest, AStartLeavesOutWhatIsMissingDamagedOrThrows) {
  const Reference reference = MakeReference(9, 2);
  std::vector<LogRecord> log = reference.log;
  log.insert(log.begin() + 6, Bad(reference, 2));
  log.insert(log.begin() + 8, Bad(reference, 3));
  for (const LogRecord& record : log) PutIntoLog(record);  // 7 and 9 are bad
  store::StoreBatch gap;
  gap.Delete(Table::kLog, NumberKey(3));
  gap.Delete(Table::kLog, NumberKey(4));
  ASSERT_TRUE(store_.Write(gap, true).ok());
  store_.Put(Table::kLog, NumberKey(11), "junk");
  store_.Put(Table::kLog, "short", "junk");
  Open();
  EXPECT_EQ(learner_->applied_sequence(), 11U);
  const auto list = learner_->quarantine().List();
  ASSERT_THAT(list, SizeIs(4));
  EXPECT_EQ(list[0].first, 3U);
  EXPECT_EQ(list[0].last, 4U);
  EXPECT_EQ(list[0].reason, "is missing from the log, a later one is there");
  EXPECT_EQ(list[1].first, 7U);
  EXPECT_EQ(list[2].first, 9U);
  EXPECT_EQ(list[3].first, 11U);
  EXPECT_THAT(list[3].reason, HasSubstr("cannot be read: "));
  EXPECT_EQ(learner_->quarantine().entries(), 5U);
  EXPECT_THAT(TakeLines(), SizeIs(testing::Ge(4U)));
  const auto saved = Saved();
  // The same as that of a learner that was never given them.
  learner_.reset();
  FakeStore().CopyTablesTo(store_);
  last_sequence_ = 0;
  for (const std::size_t i : {0, 1, 4, 5, 6, 7}) PutIntoLog(reference.log[i]);
  Open();
  EXPECT_TRUE(Saved() == saved);
}

TEST_F(QuarantineTest, WantOfMemoryPasses) {
  const Reference reference = MakeReference(10, 2);
  Open();
  for (std::size_t i = 0; i < 5; ++i) ASSERT_TRUE(Learn(reference.log[i]).ok());
  hunger_ = 2;
  EXPECT_TRUE(Learn(Bad(reference, 3, kHungry)).ok());
  EXPECT_EQ(learner_->quarantine().entries(), 0U);
  EXPECT_EQ(Observations("user0") + Observations("user1"), 6U);
  hunger_ = 1'000'000;
  EXPECT_EQ(Learn(Bad(reference, 4, kHungry)).code(), StatusCode::kRejected);
  ASSERT_EQ(learner_->quarantine().entries(), 1U);
  EXPECT_EQ(learner_->quarantine().List()[0].reason, "there was not enough memory");
  hunger_ = 0;
  EXPECT_TRUE(Learn(reference.log[5]).ok());
  Crash();
  EXPECT_TRUE(Learn(reference.log[6]).ok());
  EXPECT_EQ(Observations("user0") + Observations("user1"), 8U);
}

// The first copy has the entry and it is acknowledged: it must not be lost.
TEST_F(QuarantineTest, AFailureOfTheSecondCopyAloneLeavesNothingOut) {
  const Reference reference = MakeReference(10, 2);
  std::atomic<int> calls = 0;
  options_.make_policy = FaultyPolicy::Maker([&](double) {
    if (++calls == 6) throw std::bad_alloc();  // the second copy, third entry
  });
  Open();
  for (std::size_t i = 0; i < 10; ++i) {
    ASSERT_TRUE(Learn(reference.log[i]).ok());
    ASSERT_EQ(State(), reference.states[i + 1]) << "entry " << i;
  }
  EXPECT_GT(calls, 20);
  EXPECT_EQ(learner_->quarantine().entries(), 0U);
}

TEST_F(QuarantineTest, LearningWaitsUntilTheMarkCanBeWritten) {
  const Reference reference = MakeReference(10, 2);
  Open();
  for (std::size_t i = 0; i < 5; ++i) ASSERT_TRUE(Learn(reference.log[i]).ok());
  store_.Fail(FakeStore::Call::kWrite, Table::kMeta);
  EXPECT_EQ(Learn(Bad(reference, 3)).code(), StatusCode::kUnavailable);
  EXPECT_EQ(Learn(reference.log[5]).code(), StatusCode::kUnavailable);
  EXPECT_THAT(learner_->last_error(), HasSubstr("learning waits at log entry 6: "));
  EXPECT_EQ(State(), reference.states[5]);
  store_.Heal();
  Await([&] { return learner_->last_error().empty(); });
  EXPECT_EQ(State(), reference.states[6]);
  EXPECT_EQ(learner_->quarantine().entries(), 1U);
  EXPECT_THAT(TakeLines(), ElementsAre(HasSubstr("learning: learning waits at log entry 6"),
                                       HasSubstr("quarantine: log entry 6"),
                                       HasSubstr("learning: learning goes on")));
}

TEST_F(QuarantineTest, ForgettingAUserLeavesTheirEntryOutButNothingOfThem) {
  const Reference reference = MakeReference(6, 2);
  Open();
  for (std::size_t i = 0; i < 4; ++i) ASSERT_TRUE(Learn(reference.log[i]).ok());
  LogRecord bad = Bad(reference, 0);
  bad.user = "stranger";
  bad.decision.user = HashUser(bad.user);
  EXPECT_EQ(Learn(bad).code(), StatusCode::kRejected);
  EXPECT_TRUE(Forget("stranger").ok()) << "something was known of them";
  ASSERT_TRUE(learner_->Checkpoint().ok());
  EXPECT_EQ(Forget("stranger").code(), StatusCode::kNotFound);
  for (const auto& [key, value] : store_.content(Table::kMeta)) {
    EXPECT_EQ(value.find("stranger"), std::string::npos);
  }
  Crash();
  EXPECT_TRUE(learner_->quarantine().Contains(5));
  for (std::size_t i = 4; i < 6; ++i) ASSERT_TRUE(Learn(reference.log[i]).ok());
  EXPECT_EQ(State(), reference.states[6]);
}

TEST_F(QuarantineTest, OnlySoManyAreRememberedOnceACheckpointIsBehindThem) {
  Quarantine quarantine(store_, false);
  for (std::uint64_t i = 1; i <= Quarantine::kMostKept + 5; ++i) {
    ASSERT_TRUE(quarantine.Add({.first = i, .last = i}, 3).ok());
  }
  // Entries 4 and 5 come after the checkpoint: a replay meets them.
  EXPECT_EQ(quarantine.List().size(), Quarantine::kMostKept + 2);
  EXPECT_FALSE(quarantine.Contains(3));
  EXPECT_TRUE(quarantine.Contains(4));
  EXPECT_EQ(store_.content(Table::kMeta).size(), Quarantine::kMostKept + 2);
}

// Then it is what was learned before that is broken, and the operator must know.
TEST_F(QuarantineTest, ManyInARowAreTold) {
  const Reference reference = MakeReference(4, 2);
  Open();
  const auto told = [&] {
    const auto lines = TakeLines();
    return std::ranges::count_if(
        lines, [](const std::string& line) { return line.starts_with("learning: the last 5 "); });
  };
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(Learn(Bad(reference, 0)).ok());
  ASSERT_TRUE(Learn(reference.log[0]).ok());
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(Learn(Bad(reference, 0)).ok());
  EXPECT_EQ(told(), 0);
  EXPECT_FALSE(Learn(Bad(reference, 0)).ok());
  EXPECT_EQ(told(), 1);
}

TEST_F(QuarantineTest, ADamagedRecordStillSaysWhichEntryIsLeftOut) {
  store_.Put(Table::kMeta, QuarantineKey(7), "junk");
  Quarantine quarantine(store_, false);
  ASSERT_TRUE(quarantine.Load().ok());
  EXPECT_TRUE(quarantine.Contains(7));
  EXPECT_FALSE(quarantine.Contains(8));
}

TEST_F(QuarantineTest, AReadOnlyLearnerWritesNothing) {
  const Reference reference = MakeReference(4, 2);
  for (const LogRecord& record : reference.log) PutIntoLog(record);
  PutIntoLog(Bad(reference, 1));
  options_.read_only = true;
  ASSERT_TRUE(TryOpen().ok());
  EXPECT_EQ(State(), reference.states[4]);
  EXPECT_THAT(learner_->quarantine().List(), SizeIs(1));
  EXPECT_THAT(store_.writes(), IsEmpty());
}

// One request within the limits of an earlier version stopped learning for ever; a restart too.
TEST(EngineQuarantineTest, TheSenderIsToldAndEverythingGoesOn) {
  EngineOptions options;
  options.make_policy = FaultyPolicy::Maker([](double reward) {
    if (reward == kPoison) throw std::domain_error("isfinite(mean)");
  });
  EngineBox box(options);
  ASSERT_TRUE(box.Put(ThreeItems()).ok());
  Play(box, 0, 5);
  ASSERT_TRUE(box.Rank({.event_id = "poison", .user = "mallory"}).ok());
  EXPECT_EQ(box.Reward("poison", kPoison).status().code(), StatusCode::kRejected);
  EXPECT_EQ(box->Stats().last_error, "");
  EXPECT_EQ(box->Stats().quarantined, 1U);
  Play(box, 5, 10);
  for (int restart = 0; restart < 2; ++restart) {
    // Whoever repeats the reward is told the same.
    EXPECT_EQ(box.Reward("poison", kPoison).status().code(), StatusCode::kRejected);
    EXPECT_EQ(box->GetUser("user0").value().observations, 10U);
    EXPECT_EQ(box->GetUser("mallory").status().code(), StatusCode::kNotFound);
    ASSERT_TRUE(box->Check().ok()) << box->Check().ToString();
    EXPECT_EQ(box->Quarantined().at(0).user, "mallory");
    box.Open();
  }
  EXPECT_TRUE(box.Forget("mallory").ok());
  EXPECT_EQ(box->Stats().quarantined, 1U);
}

}  // namespace
}  // namespace codband::engine
