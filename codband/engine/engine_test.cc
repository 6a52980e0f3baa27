#include "codband/engine/engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <mutex>
#include <set>
#include <thread>

#include "codband/engine/engine_testing.h"
#include "codband/engine/fake_store.h"

namespace codband::engine {
namespace {

TEST(EngineTest, LearnsWhatUsersLikeAndSaysSo) {
  EngineBox box;
  ASSERT_TRUE(box.Put(ThreeItems()).ok());
  Play(box, 0, 40);
  const auto even = box.Rank({.event_id = "x1", .user = "user0"});
  const auto odd = box.Rank({.event_id = "x2", .user = "user1"});
  ASSERT_TRUE(even.ok() && odd.ok());
  EXPECT_EQ(even.value().reward_action_id, "a");
  EXPECT_EQ(odd.value().reward_action_id, "b");
  EXPECT_NE(even.value().model, odd.value().model);

  const auto user = box->GetUser("user0");
  ASSERT_TRUE(user.ok());
  EXPECT_EQ(user.value().observations, 40U);
  EXPECT_EQ(user.value().model, even.value().model);
  EXPECT_EQ(user.value().since_ms, box.now_ms());
  const auto models = box->Models(2);
  ASSERT_GE(models.size(), 2U);
  std::uint64_t users = 0;
  double popularity = 0;
  for (const ModelReport& model : models) {
    users += model.users;
    popularity += model.popularity;
    if (model.id == even.value().model) {
      EXPECT_EQ(model.items.at(0).name, "a");
      ASSERT_EQ(model.tags.size(), 2U);  // those of "a": the group likes no other
      EXPECT_EQ(model.tags[0].name, "loud");
      EXPECT_EQ(model.tags[1].name, "rock");
      EXPECT_EQ(model.tags[1].weight, 1);
    }
  }
  EXPECT_EQ(users, 6U);
  EXPECT_NEAR(popularity, 1, 1e-12);
  EXPECT_EQ(box->Stats().users, 6U);
  EXPECT_EQ(box->Stats().rewards_accepted, 240U);
}

TEST(EngineTest, SaysWhenAUserChanged) {
  EngineBox box;
  ASSERT_TRUE(box.Put(ThreeItems()).ok());
  Play(box, 0, 60);
  box.Advance(5000);
  Play(box, 60, 110);
  const auto user = box->GetUser("user0");
  ASSERT_TRUE(user.ok());
  ASSERT_FALSE(user.value().changes.empty());
  EXPECT_EQ(user.value().changes[0].time_ms, box.now_ms());
  EXPECT_EQ(user.value().since_ms, box.now_ms());
  EXPECT_LT(user.value().period_observations, 60U);
  EXPECT_EQ(box->RecentChanges(1).size(), 1U);
  EXPECT_GE(box->Stats().changes, 1U);
  const std::uint64_t last_hour = box->Stats().changes_last_hour;
  EXPECT_GE(last_hour, 1U);
  // A restart forgets none of them, whether they are in the checkpoint or in the log after it.
  box.Open();
  EXPECT_EQ(box->Stats().changes_last_hour, last_hour);
  box.Advance(2 * 3'600'000);
  EXPECT_EQ(box->Stats().changes_last_hour, 0U);
}

TEST(EngineTest, RewardsAreCountedOnce) {
  EngineBox box;
  ASSERT_TRUE(box.Put(ThreeItems()).ok());
  const std::string event = Visit(box, "ann", "a", 1);
  EXPECT_EQ(box.Reward(event, 1).value().outcome, RewardOutcome::kDuplicate);
  EXPECT_EQ(box.Reward("never", 1).value().outcome, RewardOutcome::kUnknown);
  // Ranking again with the same event id does not reopen it.
  EXPECT_EQ(box.Rank({.event_id = event, .user = "ann"}).status().code(), StatusCode::kConflict);
  EXPECT_EQ(box.Reward(event, 1).value().outcome, RewardOutcome::kDuplicate);
  EXPECT_EQ(box->GetUser("ann").value().observations, 1U);
  const EngineStats stats = box->Stats();
  EXPECT_EQ(stats.pending, 0U);
  EXPECT_EQ(stats.rewards_accepted, 1U);
  EXPECT_EQ(stats.rewards_duplicate, 2U);
  EXPECT_EQ(stats.rewards_unknown, 1U);
}

// Waits for the committer to notice that time has passed.
void WaitForExpiry(EngineBox& box, std::uint64_t expired) {
  while (box->Stats().expired < expired) std::this_thread::yield();
  while (box->Stats().applied_sequence < box->Stats().committed_sequence) std::this_thread::yield();
}

TEST(EngineTest, DecisionsWithoutARewardGetTheDefault) {
  EngineBox box({.reward_wait_ms = 100, .default_reward = 0.25});
  ASSERT_TRUE(box.Put(ThreeItems()).ok());
  ASSERT_TRUE(box.Rank({.event_id = "e", .user = "ann"}).ok());
  EXPECT_EQ(box->GetUser("ann").status().code(), StatusCode::kNotFound);
  box.Advance(101);
  WaitForExpiry(box, 1);
  EXPECT_EQ(box->GetUser("ann").value().observations, 1U);
  EXPECT_EQ(box->Stats().rewards_defaulted, 1U);
  EXPECT_EQ(box.Reward("e", 1).value().outcome, RewardOutcome::kLate);
  EXPECT_EQ(box->GetUser("ann").value().observations, 1U);
  const auto finished = box.TakeFinished();
  ASSERT_EQ(finished.size(), 1U);
  EXPECT_TRUE(finished[0].defaulted);
  EXPECT_EQ(finished[0].reward, 0.25);
}

TEST(EngineTest, ManyDecisionsExpireAtOnce) {
  EngineBox box({.reward_wait_ms = 100, .default_reward = 0});
  ASSERT_TRUE(box.Put(ThreeItems()).ok());
  for (int i = 0; i < 2500; ++i) {
    ASSERT_TRUE(box.Rank({.event_id = "e" + std::to_string(i), .user = "ann"}).ok());
  }
  box.Advance(101);
  WaitForExpiry(box, 2500);
  EXPECT_EQ(box->GetUser("ann").value().observations, 2500U);
}

TEST(EngineTest, NoDefaultRewardMeansNothingIsLearned) {
  EngineBox box({.reward_wait_ms = 100, .default_reward = std::nullopt});
  ASSERT_TRUE(box.Put(ThreeItems()).ok());
  ASSERT_TRUE(box.Rank({.event_id = "e", .user = "ann"}).ok());
  box.Advance(101);
  WaitForExpiry(box, 1);
  EXPECT_EQ(box->GetUser("ann").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(box->Stats().rewards_defaulted, 0U);
}

TEST(EngineTest, DeferredDecisionsWaitToBeActivated) {
  EngineBox box({.reward_wait_ms = 100, .default_reward = 0});
  ASSERT_TRUE(box.Put(ThreeItems()).ok());
  ASSERT_TRUE(box.Rank({.event_id = "never", .user = "ann", .defer_activation = true}).ok());
  ASSERT_TRUE(box.Rank({.event_id = "shown", .user = "bob", .defer_activation = true}).ok());
  box.Advance(60);
  ASSERT_TRUE(box.Activate("shown").ok());
  EXPECT_EQ(box.Activate("nobody's").code(), StatusCode::kNotFound);
  box.Advance(60);  // the wait of "shown" restarted with its activation
  WaitForExpiry(box, 1);
  EXPECT_EQ(box->GetUser("ann").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(box->Stats().pending, 1U);
  EXPECT_EQ(box.Reward("never", 1).value().outcome, RewardOutcome::kLate);
  EXPECT_EQ(box.Activate("never").code(), StatusCode::kGone);
  EXPECT_EQ(box.Reward("shown", 1).value().outcome, RewardOutcome::kAccepted);
}

TEST(EngineTest, PendingDecisionsSurviveARestart) {
  EngineBox box;
  ASSERT_TRUE(box.Put(ThreeItems()).ok());
  ASSERT_TRUE(box.Rank({.event_id = "e", .user = "ann"}).ok());
  box.Open();
  EXPECT_EQ(box->Stats().pending, 1U);
  EXPECT_EQ(box.Reward("e", 1).value().outcome, RewardOutcome::kAccepted);
  box.Open();
  EXPECT_EQ(box->Stats().pending, 0U);
  EXPECT_EQ(box.Reward("e", 1).value().outcome, RewardOutcome::kDuplicate);
  EXPECT_EQ(box->GetUser("ann").value().observations, 1U);
  EXPECT_EQ(box->Stats().items, 3U);
}

TEST(EngineTest, RestartsChangeNothing) {
  EngineBox straight;
  EngineBox restarted;
  for (EngineBox* box : {&straight, &restarted}) ASSERT_TRUE(box->Put(ThreeItems()).ok());
  Play(straight, 0, 90);
  for (int round = 0; round < 90; round += 15) {
    Play(restarted, round, round + 15);
    restarted.Open();
  }
  straight.Close();
  restarted.Close();
  const StoredState expected = ReadStoredState(straight.directory());
  EXPECT_GT(expected.size(), 12U);
  EXPECT_EQ(expected, ReadStoredState(restarted.directory()));
}

TEST(EngineTest, FewUsersInMemoryChangeNothing) {
  EngineBox all;
  EngineBox few({.users_in_memory = 12});
  for (EngineBox* box : {&all, &few}) {
    ASSERT_TRUE(box->Put(ThreeItems()).ok());
    Play(*box, 50, 75, 24);
  }
  EXPECT_EQ((*all).Stats().users_in_memory, 24U);
  ASSERT_TRUE((*few).Checkpoint().ok());
  EXPECT_LE((*few).Stats().users_in_memory, 12U);
  EXPECT_EQ((*few).Stats().users, 24U);
  EXPECT_GT((*few).Stats().checkpoints, 50U);
  EXPECT_EQ((*few).GetUser("user3").value().observations, 25U);
  all.Close();
  few.Close();
  EXPECT_EQ(ReadStoredState(all.directory()), ReadStoredState(few.directory()));
}

TEST(EngineTest, ForgetsAUserForGood) {
  EngineBox box;
  ASSERT_TRUE(box.Put(ThreeItems()).ok());
  Play(box, 0, 20);
  ASSERT_TRUE(box.Rank({.event_id = "open", .user = "user0"}).ok());
  ASSERT_TRUE(box.Forget("user0").ok());
  EXPECT_EQ(box->GetUser("user0").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(box.Forget("user0").code(), StatusCode::kNotFound);
  EXPECT_EQ(box.Reward("open", 1).value().outcome, RewardOutcome::kUnknown);
  EXPECT_EQ(box->Stats().users, 5U);
  ASSERT_TRUE(box->Check().ok()) << box->Check().ToString();
  box.Open();
  EXPECT_EQ(box->GetUser("user0").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(box.Reward("open", 1).value().outcome, RewardOutcome::kUnknown);
  std::uint64_t observations = 0;
  for (const ModelReport& model : box->Models(0)) observations += model.observations;
  EXPECT_EQ(observations, 5U * 20U);
  box.Close();
  for (const auto& [key, value] : ReadStoredState(box.directory())) {
    EXPECT_EQ(value.find("user0"), std::string::npos) << key.second;
  }
  // They may come back as a new user.
  box.Open();
  box.Advance(1);
  Visit(box, "user0", "a", 1000);
  EXPECT_EQ(box->GetUser("user0").value().observations, 1U);
}

TEST(EngineTest, AShorterWaitDoesNotBringTheForgottenBack) {
  EngineBox box({.reward_wait_ms = 100'000});
  ASSERT_TRUE(box.Put(ThreeItems()).ok());
  ASSERT_TRUE(box.Rank({.event_id = "open", .user = "ann"}).ok());
  EXPECT_TRUE(box.Forget("ann").ok());
  box.options().reward_wait_ms = 10;
  box.Open();
  // Once this one has expired, everything that was due has been handled.
  ASSERT_TRUE(box.Rank({.event_id = "short", .user = "bob"}).ok());
  box.Advance(1000);
  while (box->Stats().expired == 0) std::this_thread::yield();
  EXPECT_EQ(box.Reward("open", 1).value().outcome, RewardOutcome::kUnknown);
  EXPECT_EQ(box->GetUser("ann").status().code(), StatusCode::kNotFound);
}

// The committer looks at deadlines every 10 ms here, and has nothing to write.
TEST(EngineTest, ADiskErrorIsReportedUntilAWriteSucceeds) {
  auto store = std::make_unique<FakeStore>();
  FakeStore& disk = *store;
  const auto engine =
      Engine::Open(std::move(store), {.dim = 3, .reward_wait_ms = 100, .sync = false}).value();
  const auto put = [&] {
    return Wait<Status>([&](auto done) { engine->PutItems(ThreeItems(), std::move(done)); });
  };
  disk.Fail(FakeStore::Call::kWrite, store::Table::kItems);
  EXPECT_EQ(put().code(), StatusCode::kIoError);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const auto unknown =
      Wait<Result<RewardReply>>([&](auto done) { engine->Reward("nothing", 1, std::move(done)); });
  EXPECT_EQ(unknown.value().outcome, RewardOutcome::kUnknown);
  EXPECT_EQ(engine->Stats().last_error, FakeStore::kFault);
  disk.Heal();
  EXPECT_TRUE(put().ok());
  EXPECT_EQ(engine->Stats().last_error, "");
}

TEST(EngineTest, ClosingTellsOfTroubleAndOperatorsAreToldOnce) {
  auto store = std::make_unique<FakeStore>();
  FakeStore& disk = *store;
  std::mutex mutex;
  std::vector<std::string> lines;
  EngineOptions options{.dim = 3, .reward_wait_ms = 100, .sync = false};
  options.log = [&](const LogLine& line) {
    const std::lock_guard lock(mutex);
    lines.push_back(std::string(line.cause) + (line.level == LogLevel::kError ? "!" : ""));
  };
  const auto engine = Engine::Open(std::move(store), options).value();
  const auto put = [&] {
    return Wait<Status>([&](auto done) { engine->PutItems(ThreeItems(), std::move(done)); });
  };
  disk.Fail(FakeStore::Call::kWrite, store::Table::kItems);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(put().ok());
  disk.Heal();
  EXPECT_TRUE(put().ok());
  disk.Fail(FakeStore::Call::kWriteBulk, store::Table::kCheckpoint);
  EXPECT_FALSE(engine->Checkpoint().ok());
  disk.Heal();
  EXPECT_TRUE(engine->Checkpoint().ok());
  disk.Fail(FakeStore::Call::kWrite, store::Table::kItems);
  EXPECT_FALSE(put().ok());
  EXPECT_EQ(engine->Close().message(), FakeStore::kFault);
  EXPECT_EQ(put().code(), StatusCode::kUnavailable);
  const std::lock_guard lock(mutex);
  EXPECT_EQ(lines,
            (std::vector<std::string>{"store!", "store", "checkpoint!", "checkpoint", "store!"}));
}

TEST(EngineTest, RewardsAndFeaturesHaveARange) {
  EngineBox box({.reward_min = -1, .reward_max = 2, .max_abs_feature = 10});
  EXPECT_EQ(box.Put({{.id = "big", .features = {0, -10.5, 0}, .named = {}, .tags = {}}}).message(),
            "features[1]: is -10.5, expected a number within ±10");
  ASSERT_TRUE(box.Put({{.id = "a", .features = {10, 0, 0}, .named = {}, .tags = {}}}).ok());
  const auto rank = [&](double feature) {
    return box.Rank(
        {.event_id = "e", .user = "ann", .candidates = {{.id = "x", .features = {0, 0, feature}}}});
  };
  EXPECT_EQ(rank(11).status().message(),
            "actions[0].features[2]: is 11, expected a number within ±10");
  ASSERT_TRUE(rank(-10).ok());
  EXPECT_EQ(box.Reward("e", 2.5).status().message(),
            "value: is 2.5, expected a number from -1 to 2");
  EXPECT_EQ(box->Stats().pending, 1U) << "nothing has changed";
  box.options().clip_rewards = true;
  box.options().max_abs_feature = 1;  // items of before stay
  box.Open();
  EXPECT_EQ(box->Stats().items, 1U);
  EXPECT_FALSE(box.Reward("e", std::nan("")).ok());
  EXPECT_EQ(box.Reward("e", -100).value().outcome, RewardOutcome::kAccepted);
  ASSERT_TRUE(box.Rank({.event_id = "f", .user = "ann"}).ok());
  ASSERT_TRUE(box.Reward("f", 1e300).ok());
  box.Close();
  const auto finished = box.TakeFinished();
  ASSERT_EQ(finished.size(), 2U);
  EXPECT_EQ(finished[0].reward, -1);
  EXPECT_EQ(finished[1].reward, 2);
  box.options().default_reward = 5;
  EXPECT_EQ(box.TryOpen().message(), "rewards.default: is 5, expected a number from -1 to 2");
  box.options().reward_min = 3;
  EXPECT_EQ(box.TryOpen().code(), StatusCode::kInvalidArgument);
}

// The policy's record of a user who is not in memory.
TEST(EngineTest, ARecordThatCannotBeReadIsAnErrorAndNoException) {
  auto store = std::make_unique<FakeStore>();
  FakeStore& disk = *store;
  const auto engine =
      Engine::Open(std::move(store), {.dim = 3, .users_in_memory = 0, .sync = false}).value();
  ASSERT_TRUE(Wait<Status>([&](auto done) {
                return engine->PutItems(ThreeItems(), std::move(done));
              }).ok());
  ASSERT_TRUE(Wait<Status>([&](auto done) {
                engine->Rank(
                    {.event_id = "e", .user = "ann"}, [](const RankReply&) {}, std::move(done));
              }).ok());
  ASSERT_TRUE(
      Wait<Result<RewardReply>>([&](auto done) { engine->Reward("e", 1, std::move(done)); }).ok());
  ASSERT_TRUE(engine->Checkpoint().ok());
  disk.Fail(FakeStore::Call::kGet, store::Table::kUsers);
  const auto visit = [](const UserReport&) { return true; };
  EXPECT_EQ(engine->VisitUsers(visit).message(), FakeStore::kFault);
  EXPECT_EQ(engine->GetUser("ann").status().message(), FakeStore::kFault);
  EXPECT_EQ(engine->Check().message(), FakeStore::kFault);
  disk.Heal();
  EXPECT_TRUE(engine->VisitUsers(visit).ok());
}

// A wait ends when it has lasted so long, however the clock was set meanwhile.
TEST(EngineTest, WaitsEndWhenTheClockIsSetBack) {
  EngineBox box({.reward_wait_ms = 1000, .default_reward = 0});
  ASSERT_TRUE(box.Put(ThreeItems()).ok());
  const auto wait_for_defaults = [&](std::uint64_t count) {
    while (box->Stats().rewards_defaulted < count) std::this_thread::yield();
  };
  box.Advance(100'000);
  ASSERT_TRUE(box.Rank({.event_id = "first", .user = "ann"}).ok());
  box.Advance(1001);
  wait_for_defaults(1);
  box.SetWallClock(-50'000);
  ASSERT_TRUE(box.Rank({.event_id = "second", .user = "ann"}).ok());
  box.Advance(1001);
  wait_for_defaults(2);
  EXPECT_EQ(box.Reward("second", 1).value().outcome, RewardOutcome::kLate);
}

// More decisions than expire in one group, all of a user who was forgotten before they expire.
TEST(EngineTest, DecisionsOfTheForgottenAreNeverLearned) {
  EngineBox box({.reward_wait_ms = 100, .default_reward = 0});
  ASSERT_TRUE(box.Put(ThreeItems()).ok());
  constexpr int kDecisions = 2500;
  for (int i = 0; i < kDecisions; ++i) {
    box->Rank(
        {.event_id = "e" + std::to_string(i), .user = "ann"}, [](const RankReply&) {},
        [](const Status& status) { EXPECT_TRUE(status.ok()) << status.ToString(); });
  }
  EXPECT_TRUE(box.Forget("ann").ok());
  box.Advance(1000);
  while (box->Stats().pending > 0 && box->Stats().rewards_defaulted == 0) {
    std::this_thread::yield();
  }
  EXPECT_EQ(box->GetUser("ann").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(box->Stats().rewards_defaulted, 0U);
}

TEST(EngineTest, SettingsChangeWithoutForgettingUnlessTheyCannot) {
  EngineBox box;
  ASSERT_TRUE(box.Put(ThreeItems()).ok());
  Play(box, 0, 10);
  box.options().policy = "codband:explore=thompson,v=0.5";
  box.options().mode = Mode::kApprentice;
  box.options().reward_wait_ms = 5;
  box.Open();
  EXPECT_EQ(box->GetUser("user0").value().observations, 10U);

  box.options().policy = "codband:window=4";
  EXPECT_EQ(
      box.TryOpen().message(),
      "policy 'codband': window = 4, expected 8, with which the saved state was learned: this "
      "parameter cannot change");
  box.options().policy = "linucb";
  EXPECT_EQ(box.TryOpen().message(), "policy 'linucb' cannot continue from the state of 'codband'");
  box.options().policy = "codband";
  box.options().dim = 4;
  EXPECT_EQ(box.TryOpen().message(),
            "dimension: is 4, but this data directory was made for 3 features, and what was "
            "learned about them means nothing for another number; keep 3 or start a new directory");
  box.options().dim = 0;
  box.Open();
  EXPECT_EQ(box->GetUser("user0").value().observations, 10U);
}

TEST(EngineTest, ADirectoryKnowsItsPolicyFromTheFirstReward) {
  EngineBox box;
  ASSERT_TRUE(box.Put(ThreeItems()).ok());
  box.options().policy = "linucb";
  box.Open();  // nothing was learned
  Visit(box, "ann", "a", 1);
  box.options().policy = "codband";
  EXPECT_EQ(box.TryOpen().message(), "policy 'codband' cannot continue from the state of 'linucb'");
}

TEST(EngineTest, ServesEveryPolicy) {
  for (const std::string policy : {"linucb", "lints", "club", "random", "codband:paper"}) {
    EngineBox box({.policy = policy});
    ASSERT_TRUE(box.Put(ThreeItems()).ok());
    Play(box, 0, 10);
    box.Open();
    Play(box, 10, 12);
    EXPECT_EQ(box->GetUser("user1").value().observations, 12U) << policy;
    double sum = 0;
    const auto reply = box.Rank({.user = "user1"});
    for (const RankedItem& item : reply.value().ranking) sum += item.probability;
    EXPECT_NEAR(sum, 1, 1e-9) << policy;
  }
}

TEST(EngineTest, VisitsEveryUserInOrderWhereverTheyAre) {
  EngineBox box({.users_in_memory = 3});
  ASSERT_TRUE(box.Put(ThreeItems()).ok());
  Play(box, 0, 4, 12);
  std::set<std::string> names;
  ASSERT_TRUE(box->VisitUsers([&](const UserReport& user) {
                   EXPECT_EQ(user.observations, 4U);
                   EXPECT_TRUE(names.insert(user.user).second);
                   return true;
                 })
                  .ok());
  EXPECT_EQ(names.size(), 12U);
  EXPECT_TRUE(box->Check().ok()) << box->Check().ToString();
}

TEST(EngineTest, BackupIsTheSameState) {
  EngineBox box;
  ASSERT_TRUE(box.Put(ThreeItems()).ok());
  Play(box, 0, 20);
  const std::filesystem::path copy = box.directory() / "copy";
  ASSERT_TRUE(box->Backup(copy).ok());
  Play(box, 20, 25);
  auto store = store::OpenRocksDbStore(copy);
  ASSERT_TRUE(store.ok());
  EngineOptions options = box.options();
  const auto engine = Engine::Open(std::move(store).value(), options);
  ASSERT_TRUE(engine.ok()) << engine.status().ToString();
  EXPECT_EQ(engine.value()->GetUser("user2").value().observations, 20U);
  EXPECT_EQ(engine.value()->Stats().items, 3U);
}

}  // namespace
}  // namespace codband::engine
