// Curves of a real engine: what they count, and that restarts and kills change nothing.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "codband/engine/engine_testing.h"
#include "codband/engine/records.h"

namespace codband::engine {
namespace {

constexpr std::int64_t kOneMinute = 60'000;
constexpr std::int64_t kOneHour = 60 * kOneMinute;

// Users come and change over half an hour.
void PlayOverTime(EngineBox& box) {
  ASSERT_TRUE(box.Put(ThreeItems()).ok());
  for (int round = 0; round < 80; ++round) {
    Play(box, round, round + 1);
    box.Advance(20'000);
  }
}

SeriesReport Curves(EngineBox& box, std::int64_t step_ms) {
  return box->Series(0, box.now_ms() + kOneMinute, step_ms);
}

void ExpectSame(const SeriesReport& a, const SeriesReport& b) {
  ASSERT_EQ(a.points.size(), b.points.size());
  for (std::size_t i = 0; i < a.points.size(); ++i) {
    EXPECT_EQ(a.points[i].time_ms, b.points[i].time_ms);
    EXPECT_EQ(a.points[i].activity, b.points[i].activity) << i;
    EXPECT_EQ(a.points[i].groups, b.points[i].groups) << i;
  }
}

TEST(EngineSeriesTest, CountsDecisionsRewardsChangesAndGroups) {
  EngineBox box;
  PlayOverTime(box);
  ASSERT_TRUE(box.Rank({.event_id = "waits", .user = "user0"}).ok());
  EXPECT_EQ(box.Reward("nobody's", 1).value().outcome, RewardOutcome::kUnknown);
  EXPECT_EQ(box.Reward("user0-79", 1).value().outcome, RewardOutcome::kDuplicate);
  const SeriesReport minutes = Curves(box, kOneMinute);
  ASSERT_GE(minutes.points.size(), 26U);
  Activity all;
  std::uint64_t changes = 0;
  double rewards = 0;
  for (const SeriesReport::Point& point : minutes.points) {
    EXPECT_EQ(point.time_ms % kOneMinute, 0);
    all += point.activity;
    changes += point.groups.changes;
  }
  for (const FinishedDecision& decision : box.TakeFinished()) rewards += decision.reward;
  EXPECT_EQ(all.decisions, 481U);
  EXPECT_EQ(all.all_rewards().count, 480U);
  EXPECT_EQ(all.all_rewards().sum, rewards);
  const Activity since = box->Stats().activity;
  EXPECT_EQ(since.decisions, all.decisions);
  EXPECT_EQ(since.all_rewards(), all.all_rewards());
  EXPECT_EQ(since.baseline.count, all.baseline.count);
  EXPECT_NEAR(since.baseline.sum, all.baseline.sum, 1e-9 * std::abs(all.baseline.sum));
  EXPECT_EQ(since.unknown, 1U);
  EXPECT_EQ(since.duplicate, 1U);
  EXPECT_GT(changes, 0U);
  EXPECT_EQ(changes, box->Stats().changes);
  std::uint64_t users = 0;
  for (const auto& [model, count] : minutes.points.back().groups.groups) users += count;
  EXPECT_EQ(users, 6U);
  EXPECT_EQ(minutes.points.back().groups.users, 6U);
}

TEST(EngineSeriesTest, CurvesAfterARestartAndAfterAKillAreThoseBefore) {
  EngineBox box({.checkpoint_events = 70});
  PlayOverTime(box);
  const SeriesReport minutes = Curves(box, kOneMinute);
  const SeriesReport hours = Curves(box, kOneHour);
  const auto user = box->GetUser("user0").value();
  // A copy of the store as it is: what a kill at this moment would leave.
  const std::filesystem::path killed = box.directory() / "killed";
  ASSERT_TRUE(box->Backup(killed).ok());
  {
    auto engine = Engine::Open(store::OpenRocksDbStore(killed).value(), box.options()).value();
    ExpectSame(engine->Series(0, box.now_ms() + kOneMinute, kOneMinute), minutes);
    ExpectSame(engine->Series(0, box.now_ms() + kOneMinute, kOneHour), hours);
  }
  box.Close();
  box.Open();
  ExpectSame(Curves(box, kOneMinute), minutes);
  ExpectSame(Curves(box, kOneHour), hours);
  const auto again = box->GetUser("user0").value();
  ASSERT_EQ(again.ticks.size(), user.ticks.size());
  EXPECT_EQ(again.ticks.back().reward, user.ticks.back().reward);
  ASSERT_FALSE(user.changes.empty());
  EXPECT_EQ(again.changes.back().evidence.rewards, user.changes.back().evidence.rewards);
  EXPECT_EQ(again.changes.back().evidence.got, user.changes.back().evidence.got);
  EXPECT_EQ(box->Stats().activity.decisions, 0U);  // that one is since the start
}

TEST(EngineSeriesTest, SaysWhoChose) {
  for (const double floor : {0.0, 0.5, 1.0}) {
    EngineBox box({.exploration_floor = floor});
    ASSERT_TRUE(box.Put(ThreeItems()).ok());
    Play(box, 0, 40);
    const Activity all = box->Stats().activity;
    const auto of = [&](Source source) {
      return all.rewards[0][static_cast<std::size_t>(source)].count;
    };
    EXPECT_EQ(of(Source::kPolicy) + of(Source::kFloor), 240U);
    EXPECT_EQ(of(Source::kBaseline), 0U);
    EXPECT_NEAR(static_cast<double>(of(Source::kFloor)), 240 * floor, floor == 0.5 ? 40 : 0);
    EXPECT_EQ(all.uniform.count, floor == 0 ? 0U : 240U);
    EXPECT_EQ(all.compared, 0U);
  }
}

TEST(EngineSeriesTest, AnApprenticeIsComparedWithTheBaseline) {
  EngineBox box({.mode = Mode::kApprentice, .exploration_floor = 0});
  ASSERT_TRUE(box.Put(ThreeItems()).ok());
  std::uint64_t agreed_at_first = 0;
  for (int i = 0; i < 120; ++i) {
    if (i == 60) agreed_at_first = box->Stats().activity.agreed;
    const std::string event = "e" + std::to_string(i);
    const auto reply = box.Rank({.event_id = event, .user = "ada"});
    ASSERT_TRUE(reply.ok());
    ASSERT_EQ(reply.value().reward_action_id, "a");
    ASSERT_TRUE(box.Reward(event, 1).ok());
  }
  const Activity all = box->Stats().activity;
  EXPECT_EQ(all.rewards[1][2].count, 120U);
  EXPECT_EQ(all.compared, 120U);
  // The baseline is what is liked: the policy comes to agree.
  EXPECT_GT(all.agreed - agreed_at_first, 50U);
  EXPECT_EQ(all.baseline.count, 120U);
  EXPECT_EQ(all.baseline.sum, 120);
}

TEST(EngineSeriesTest, AChangeHasItsEvidence) {
  EngineBox box;
  PlayOverTime(box);
  const auto changes = box->RecentChanges(100);
  ASSERT_FALSE(changes.empty());
  for (const Change& change : changes) {
    if (change.user != "user0" && change.user != "user1") continue;
    EXPECT_EQ(change.evidence.rewards, Person::kMostTicks);
    EXPECT_GT(change.evidence.before, change.evidence.got);
  }
}

TEST(EngineSeriesTest, ADefaultedDecisionCountsOnceAndHasNoDelay) {
  EngineBox box({.reward_wait_ms = 1000, .default_reward = 0.25});
  ASSERT_TRUE(box.Put(ThreeItems()).ok());
  ASSERT_TRUE(box.Rank({.event_id = "x", .user = "ada"}).ok());
  box.Advance(5000);
  Await([&] { return box->Stats().activity.defaulted == 1; });
  const Activity all = box->Stats().activity;
  EXPECT_EQ(all.all_rewards().count, 1U);
  EXPECT_EQ(all.all_rewards().sum, 0.25);
  EXPECT_EQ(all.delay_s.count, 0U);
  EXPECT_EQ(box.Reward("x", 1).value().outcome, RewardOutcome::kLate);
  EXPECT_EQ(box->Stats().activity.late, 1U);
}

}  // namespace
}  // namespace codband::engine
