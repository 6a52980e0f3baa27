// The life of an event, from its rank to its reward and after, with restarts and set clocks.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "codband/engine/engine_testing.h"
#include "codband/engine/fake_store.h"
#include "codband/engine/records.h"
#include "codband/engine/wait_clock.h"

namespace codband::engine {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kWait = 1000;

class EventLifeTest : public testing::Test {
 protected:
  EventLifeTest() { EXPECT_TRUE(box_.Put(ThreeItems()).ok()); }

  StatusCode RankCode(const RankRequest& request) { return box_.Rank(request).status().code(); }
  RewardOutcome Outcome(const std::string& event) { return box_.Reward(event, 1).value().outcome; }
  void AwaitExpired(std::uint64_t count) {
    Await([&] { return box_->Stats().expired >= count; });
  }
  // Everything that is due ends: an event that was made just now is over.
  void EndWaits() {
    const std::string last = fmt::format("last {}", ++ended_);
    const Status ranked = box_.Rank({.event_id = last, .user = "nobody"}).status();
    ASSERT_TRUE(ranked.ok()) << ranked.ToString();
    const std::uint64_t expired = box_->Stats().expired;
    box_.Advance(kWait + 1);
    AwaitExpired(expired + 1);
  }

  EngineBox box_{{.reward_wait_ms = kWait, .default_reward = 0}};
  int ended_ = 0;
};

TEST_F(EventLifeTest, TheSameRequestGivesTheSameDecisionWhateverWasLearnedMeanwhile) {
  const RankRequest request{.event_id = "e", .user = "ann"};
  const RankReply first = box_.Rank(request).value();
  Play(box_, 0, 20);
  ASSERT_TRUE(box_.Put({{.id = "A", .features = {1, 1, 1}, .named = {}, .tags = {}}}).ok());
  for (int restart = 0; restart < 2; ++restart) {
    const RankReply again = box_.Rank(request).value();
    EXPECT_EQ(again.reward_action_id, first.reward_action_id);
    EXPECT_EQ(again.ranking[0].id, first.ranking[0].id);
    EXPECT_EQ(again.ranking[0].probability, first.ranking[0].probability);
    EXPECT_EQ(again.ranking[0].mean, first.ranking[0].mean);
    EXPECT_EQ(again.model, first.model);
    double sum = 0;
    for (const RankedItem& item : again.ranking) sum += item.probability;
    EXPECT_NEAR(sum, 1, 1e-12);
    EXPECT_EQ(box_->Stats().pending, 1U);
    box_.Open();
  }
  // What is rewarded is the one decision, once.
  EXPECT_EQ(Outcome("e"), RewardOutcome::kAccepted);
  EXPECT_EQ(box_->GetUser("ann").value().observations, 1U);
  // What it chose must be there to be shown.
  const RankReply second = box_.Rank({.event_id = "f", .user = "ann"}).value();
  ASSERT_TRUE(box_.Delete(second.reward_action_id).ok());
  EXPECT_EQ(RankCode({.event_id = "f", .user = "ann"}), StatusCode::kConflict);
}

TEST_F(EventLifeTest, AnotherRequestNeverTakesTheEventOver) {
  const RankRequest request{.event_id = "e", .user = "ann", .candidates = {{.id = "a"}}};
  ASSERT_TRUE(box_.Rank(request).ok());
  for (int restart = 0; restart < 2; ++restart) {
    RankRequest other_user = request;
    other_user.user = "mallory";
    EXPECT_EQ(box_.Rank(other_user).status().message(),
              "eventId: 'e' is the event of another request: its user, context, actions or options "
              "differ, "
              "expected the id of a new event");
    EXPECT_EQ(RankCode(other_user), StatusCode::kConflict);
    RankRequest other_actions = request;
    other_actions.candidates = {{.id = "b"}};
    EXPECT_EQ(RankCode(other_actions), StatusCode::kConflict);
    other_actions.candidates = {{.id = "a", .features = {1, 0, 0}}};
    EXPECT_EQ(RankCode(other_actions), StatusCode::kConflict);
    RankRequest deferred = request;
    deferred.defer_activation = true;
    EXPECT_EQ(RankCode(deferred), StatusCode::kConflict);
    EXPECT_TRUE(box_.Rank(request).ok());
    box_.Open();
  }
  EXPECT_EQ(Outcome("e"), RewardOutcome::kAccepted);
  EXPECT_EQ(box_->GetUser("ann").value().observations, 1U);
  EXPECT_EQ(box_->GetUser("mallory").status().code(), StatusCode::kNotFound);
  // Nor can a made-up id be used again.
  const std::string made_up = box_.Rank({.user = "ann"}).value().event_id;
  EXPECT_EQ(RankCode({.event_id = made_up, .user = "ann"}), StatusCode::kConflict);
}

TEST_F(EventLifeTest, AnEventOfThePastIsLearnedOnceForGood) {
  const RankRequest past{
      .event_id = "past", .user = "ann", .candidates = {{.id = "a"}}, .past = true};
  ASSERT_TRUE(box_.Rank(past).ok());
  ASSERT_TRUE(box_.Rank(past).ok());  // sent twice
  ASSERT_EQ(Outcome("past"), RewardOutcome::kAccepted);
  ASSERT_EQ(Outcome("past"), RewardOutcome::kDuplicate);
  EndWaits();
  EndWaits();
  ASSERT_EQ(Outcome("past"), RewardOutcome::kUnknown);  // nothing is left of the decision
  for (int restart = 0; restart < 2; ++restart) {
    EXPECT_EQ(box_.Rank(past).status().message(), "eventId: 'past' was imported before");
    EXPECT_EQ(RankCode(past), StatusCode::kConflict);
    box_.Open();
  }
  ASSERT_TRUE(box_.Forget("ann").ok());
  EXPECT_EQ(RankCode(past), StatusCode::kConflict);  // nor does it bring a forgotten user back
  // An event of the present may have the same id.
  EXPECT_TRUE(box_.Rank({.event_id = "past", .user = "bob"}).ok());
}

TEST_F(EventLifeTest, AnEventOfThePastWithoutItsRewardTeachesNothingAndMayComeAgain) {
  const RankRequest past{
      .event_id = "past", .user = "ann", .candidates = {{.id = "a"}}, .past = true};
  ASSERT_TRUE(box_.Rank(past).ok());
  box_.Open();  // the import was interrupted
  EndWaits();
  EXPECT_EQ(box_->GetUser("ann").status().code(), StatusCode::kNotFound);  // no default reward
  EXPECT_EQ(box_->Stats().pending, 0U);
  ASSERT_TRUE(box_.Rank(past).ok());
  EXPECT_EQ(Outcome("past"), RewardOutcome::kAccepted);
  EXPECT_EQ(box_->GetUser("ann").value().observations, 1U);
}

TEST_F(EventLifeTest, AnEventWithItsOutcomeIsNotRankedAgain) {
  ASSERT_TRUE(box_.Rank({.event_id = "rewarded", .user = "ann"}).ok());
  ASSERT_EQ(Outcome("rewarded"), RewardOutcome::kAccepted);
  for (int restart = 0; restart < 2; ++restart) {
    EXPECT_EQ(box_.Rank({.event_id = "rewarded", .user = "ann"}).status().message(),
              "eventId: 'rewarded' has its reward, expected the id of a new event");
    EXPECT_EQ(Outcome("rewarded"), RewardOutcome::kDuplicate);
    box_.Open();
  }
  ASSERT_TRUE(box_.Rank({.event_id = "expired", .user = "ann"}).ok());
  EndWaits();
  for (int restart = 0; restart < 2; ++restart) {
    EXPECT_EQ(RankCode({.event_id = "expired", .user = "ann"}), StatusCode::kConflict);
    EXPECT_EQ(Outcome("expired"), RewardOutcome::kLate);
    EXPECT_EQ(box_.Activate("expired").code(), StatusCode::kGone);
    box_.Open();
  }
  EXPECT_EQ(Outcome("never"), RewardOutcome::kUnknown);
  EXPECT_EQ(box_.Activate("never").code(), StatusCode::kNotFound);
}

TEST_F(EventLifeTest, ADeferredEventThatWasNeverShownIsLateAndTeachesNothing) {
  ASSERT_TRUE(box_.Rank({.event_id = "deferred", .user = "ann", .defer_activation = true}).ok());
  EndWaits();
  for (int restart = 0; restart < 2; ++restart) {
    EXPECT_EQ(Outcome("deferred"), RewardOutcome::kLate);
    EXPECT_EQ(box_->GetUser("ann").status().code(), StatusCode::kNotFound);
    box_.Open();
  }
}

// One meaning for each answer: something was removed, or nothing is known.
TEST_F(EventLifeTest, ForgettingAUserWhoOnlyHasPendingDecisionsRemovesThem) {
  EXPECT_EQ(box_.Forget("ann").code(), StatusCode::kNotFound);
  box_.Advance(1);
  ASSERT_TRUE(box_.Rank({.event_id = "named", .user = "ann"}).ok());
  const std::string made_up = box_.Rank({.user = "ann"}).value().event_id;
  ASSERT_TRUE(box_.Rank({.event_id = "other", .user = "bob"}).ok());
  box_.Open();  // they are counted anew
  EXPECT_TRUE(box_.Forget("ann").ok());
  EXPECT_EQ(box_->Stats().pending, 1U);
  EXPECT_EQ(box_.Forget("ann").code(), StatusCode::kNotFound);
  EXPECT_EQ(Outcome("named"), RewardOutcome::kUnknown);
  EXPECT_EQ(Outcome(made_up), RewardOutcome::kUnknown);
  EXPECT_EQ(Outcome("other"), RewardOutcome::kAccepted);
  box_.Close();
  const auto store = store::OpenRocksDbStore(box_.directory(), {.read_only = true}).value();
  ASSERT_TRUE(store
                  ->Scan(store::Table::kPending, {}, {},
                         [](auto key, auto value) {
                           EXPECT_EQ(value.find("ann"), value.npos) << key;
                           return true;
                         })
                  .ok());
}

TEST_F(EventLifeTest, AUserWhoComesBackAfterTheyWereForgottenStartsAnew) {
  ASSERT_TRUE(box_.Rank({.event_id = "e", .user = "ann"}).ok());
  ASSERT_TRUE(box_.Forget("ann").ok());
  // At the very same moment.
  ASSERT_TRUE(box_.Rank({.event_id = "e", .user = "ann"}).ok());
  EXPECT_EQ(Outcome("e"), RewardOutcome::kAccepted);
  ASSERT_TRUE(box_.Rank({.event_id = "f", .user = "ann"}).ok());
  ASSERT_TRUE(box_.Forget("ann").ok());
  EXPECT_EQ(Outcome("f"), RewardOutcome::kUnknown);
  box_.SetWallClock(-3'600'000);  // must not make the new decision look older
  box_.Advance(2);
  ASSERT_TRUE(box_.Rank({.event_id = "f", .user = "ann"}).ok());
  EXPECT_EQ(Outcome("f"), RewardOutcome::kAccepted);
}

TEST_F(EventLifeTest, AWallClockThatIsSetEndsNoWait) {
  ASSERT_TRUE(box_.Rank({.event_id = "a", .user = "ann"}).ok());
  ASSERT_TRUE(box_.Rank({.event_id = "b", .user = "ann"}).ok());
  for (const std::int64_t jump : {3'600'000, -7'200'000, 86'400'000}) {
    box_.SetWallClock(jump);
    ASSERT_TRUE(box_.Rank({.event_id = "c" + std::to_string(jump), .user = "bob"}).ok());
    box_.Advance(100);
    EXPECT_EQ(box_->Stats().pending, jump == 3'600'000 ? 3U : jump < 0 ? 4U : 5U);
  }
  EXPECT_EQ(Outcome("a"), RewardOutcome::kAccepted);
  // It is the time for people.
  EXPECT_EQ(box_->GetUser("ann").value().since_ms, box_.now_ms());
  EXPECT_EQ(box_->Stats().rewards_defaulted, 0U);
  box_.Advance(kWait - 300);
  EXPECT_EQ(Outcome("b"), RewardOutcome::kAccepted) << "to the last moment";
  box_.Advance(301);
  AwaitExpired(3);
  EXPECT_EQ(box_->Stats().rewards_defaulted, 3U);
}

TEST_F(EventLifeTest, ARestartCountsTheRealDowntimeWhateverTheWallClockSays) {
  ASSERT_TRUE(box_.Rank({.event_id = "a", .user = "ann"}).ok());
  ASSERT_TRUE(box_.Rank({.event_id = "b", .user = "ann"}).ok());
  box_.Close();
  box_.SetWallClock(86'400'000);
  box_.Advance(kWait - 1);
  box_.Open();
  EXPECT_EQ(Outcome("a"), RewardOutcome::kAccepted);
  box_.Close();
  box_.SetWallClock(-2 * 86'400'000);
  box_.Advance(2);
  box_.Open();
  AwaitExpired(1);
  EXPECT_EQ(Outcome("b"), RewardOutcome::kLate);
}

// After a restart of the machine only the wall clock can tell how long it took.
TEST_F(EventLifeTest, ARebootCountsHalfAWaitAtMost) {
  for (const std::int64_t down_ms : {86'400'000, -86'400'000, 300}) {
    const std::string event = "e" + std::to_string(down_ms);
    ASSERT_TRUE(box_.Rank({.event_id = event, .user = "ann"}).ok());
    ASSERT_TRUE(box_.Rank({.event_id = event + "'", .user = "ann"}).ok());
    box_.Close();
    box_.Reboot(down_ms);
    box_.Open();
    const std::int64_t counted = down_ms < 0 ? 0 : std::min<std::int64_t>(down_ms, kWait / 2);
    box_.Advance(kWait - counted);
    EXPECT_EQ(Outcome(event), RewardOutcome::kAccepted) << down_ms;
    box_.Advance(1);
    EXPECT_EQ(Outcome(event + "'"), RewardOutcome::kLate) << down_ms;
  }
}

TEST(WaitClockTest, ARecordThatCannotBeReadIsAsNone) {
  FakeStore store;
  store.Put(store::Table::kMeta, std::string(ClockRecord::kKey), "junk");
  EngineOptions options;
  options.now_ms = [] { return std::int64_t{77}; };
  options.steady_ms = [] { return std::int64_t{5}; };
  EXPECT_EQ(WaitClock::Open(store, options).value().now_ms(), 77);
}

TEST(FingerprintTest, DiffersWhereTheRequestsDo) {
  const RankRequest request{.user = "ann", .candidates = {{.id = "ab"}, {.id = "c"}}};
  RankRequest other = request;
  other.candidates = {{.id = "a"}, {.id = "bc"}};
  EXPECT_NE(FingerprintOf(request), FingerprintOf(other));
  other = request;
  other.excluded = {"c"};
  EXPECT_NE(FingerprintOf(request), FingerprintOf(other));
  other = request;
  other.candidates[1].features = {1, 2};
  EXPECT_NE(FingerprintOf(request), FingerprintOf(other));
  other.candidates = {{.id = "ab"}};
  other.excluded = {"c"};
  EXPECT_NE(FingerprintOf(request), FingerprintOf(other));
  other = request;
  other.top_k = 1;
  other.explain = true;
  EXPECT_EQ(FingerprintOf(request), FingerprintOf(other)) << "the same decision, told otherwise";
}

}  // namespace
}  // namespace codband::engine
