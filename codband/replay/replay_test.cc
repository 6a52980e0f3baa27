#include "codband/replay/replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>

#include "codband/base/file.h"
#include "codband/linalg/kernels.h"
#include "codband/policy/user_graph.h"

namespace codband::replay {
namespace {

class ReadStreamTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    directory_ =
        std::filesystem::path(testing::TempDir()) / (std::string("replay_") + test->name());
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  Result<RecordedStream> Read(const std::string& features, const std::string& events) const {
    EXPECT_TRUE(WriteFileDurably(directory_ / "features.tsv", features).ok());
    EXPECT_TRUE(WriteFileDurably(directory_ / "events.tsv", events).ok());
    return ReadStream(directory_);
  }

  Result<RecordedStream> ReadLogOf(const std::string& features, const std::string& log) const {
    EXPECT_TRUE(WriteFileDurably(directory_ / "features.tsv", features).ok());
    EXPECT_TRUE(WriteFileDurably(directory_ / "log.tsv", log).ok());
    return ReadLog(directory_);
  }

  std::filesystem::path directory_;
};

constexpr const char* kFeatures = "7\t0.5\t-1\n3\t0\t2e-3\n12\t1\t1\n";
constexpr const char* kEvents = "40\t1254348000000\t3,7\n5\t1254348000000.5\t12\n40\t-1\t7,12,3\n";

TEST_F(ReadStreamTest, HoldsRowsOfFeaturesAndCandidatesInTheOrderOfTheFiles) {
  const auto stream = Read(kFeatures, kEvents);
  ASSERT_TRUE(stream.ok()) << stream.status().message();
  EXPECT_EQ(stream.value().dim, 2U);
  EXPECT_EQ(stream.value().item_count(), 3U);
  EXPECT_EQ(stream.value().features, (std::vector<double>{0.5, -1, 0, 2e-3, 1, 1}));
  EXPECT_EQ(stream.value().candidates, (std::vector<std::uint32_t>{1, 0, 2, 0, 2, 1}));
  ASSERT_EQ(stream.value().events.size(), 3U);
  EXPECT_EQ(stream.value().events[1].user, 5U);
  EXPECT_EQ(stream.value().events[2].user, 40U);
  EXPECT_EQ(stream.value().events[2].begin, 3U);
  EXPECT_EQ(stream.value().events[2].end, 6U);
  EXPECT_EQ(stream.value().user_count, 2U);
  EXPECT_DOUBLE_EQ(stream.value().chance(), 1.0 / 2 + 1 + 1.0 / 3);
}

TEST_F(ReadStreamTest, LogsPutWhatWasShownFirst) {
  const auto log = ReadLogOf(kFeatures, "40\t5\t7\t1\t3,7,12\n5\t6\t12\t0\t12\n");
  ASSERT_TRUE(log.ok()) << log.status().message();
  EXPECT_TRUE(log.value().logged);
  EXPECT_EQ(log.value().candidates, (std::vector<std::uint32_t>{0, 1, 2, 2}));
  ASSERT_EQ(log.value().events.size(), 2U);
  EXPECT_EQ(log.value().events[0].reward, 1);
  EXPECT_EQ(log.value().events[1].reward, 0);
  EXPECT_EQ(log.value().total_reward(), 1);
  EXPECT_EQ(log.value().chance(), 1);
  EXPECT_EQ(log.value().user_count, 2U);
}

TEST_F(ReadStreamTest, WrongLogsAreRefusedWithTheLine) {
  const auto message = [&](const std::string& log) {
    const auto read = ReadLogOf(kFeatures, log);
    EXPECT_EQ(read.status().code(), StatusCode::kInvalidArgument);
    return read.status().message();
  };
  const std::string good = "40\t5\t7\t1\t3,7,12\n";
  EXPECT_NE(message(good + "1\t2\t3,7\n")
                .find("log.tsv, line 2: 3 fields, expected 5: user id, "
                      "timestamp, item shown, click, item ids"),
            std::string::npos);
  EXPECT_NE(message("1\t2\t7\t2\t7\n").find("click = '2', expected 0 or 1"), std::string::npos);
  EXPECT_NE(message("1\t2\t7\t1\t3,12\n").find("item shown = '7', expected one of the candidates"),
            std::string::npos);
  EXPECT_NE(message("1\t2\t7\t1\t\n").find("no candidates"), std::string::npos);
  EXPECT_NE(message("1\t2\t7\t0\t7\n").find("none of 1 events has a click"), std::string::npos);
  EXPECT_NE(message("").find("is empty"), std::string::npos);
  std::filesystem::remove(directory_ / "log.tsv");
  EXPECT_EQ(ReadLog(directory_).status().code(), StatusCode::kNotFound);
}

TEST_F(ReadStreamTest, LineEndsOfWindowsAndAMissingLastOneAreFine) {
  const auto stream = Read("7\t0.5\r\n3\t0", "40\t0\t3,7\r\n5\t0\t7");
  ASSERT_TRUE(stream.ok()) << stream.status().message();
  EXPECT_EQ(stream.value().features, (std::vector<double>{0.5, 0}));
  EXPECT_EQ(stream.value().events.size(), 2U);
}

TEST_F(ReadStreamTest, BadInputNamesFileLineAndWhatWasExpected) {
  std::string wide = "1";
  for (std::size_t i = 0; i <= kMaxFeatures; ++i) wide += "\t0";
  const struct {
    std::string features;
    std::string events;
    std::string message;
  } cases[] = {
      {"", kEvents, "features.tsv is empty, expected a line for each item"},
      {"7\n", kEvents, "features.tsv, line 1: 0 features, expected an item id and 1 to 1024"},
      {wide, kEvents, "features.tsv, line 1: 1025 features, expected an item id and 1 to 1024"},
      {"7\t1\t2\n3\t1\n", kEvents, "features.tsv, line 2: 1 features, expected 2 as on the first"},
      {"7\t1\t2\n\n", kEvents, "features.tsv, line 2: 0 features, expected 2 as on the first"},
      {"7\t1\n3\t1\t\n", kEvents, "features.tsv, line 2: 2 features, expected 1 as on the first"},
      {"7\t1\n3\t1\nx\t1\n", kEvents, "features.tsv, line 3: item = 'x', expected a whole number"},
      {"7\t1\t2\n3\t1\t1.x\n", kEvents,
       "line 2: feature 2 = '1.x', expected a number within ±1e+15"},
      {"7\tnan\n", kEvents, "line 1: feature 1 = 'nan', expected a number within ±1e+15"},
      {"7\t1e16\n", kEvents, "line 1: feature 1 = '1e16', expected a number within ±1e+15"},
      {"7\t\n", kEvents, "line 1: feature 1 = '', expected a number within ±1e+15"},
      {"7\t1\n3\t1\n7\t2\n", kEvents,
       "features.tsv, line 3: item 7 a second time, expected each item once"},
      {kFeatures, "", "events.tsv is empty, expected a line for each event"},
      {kFeatures, "1\t0\n", "events.tsv, line 1: 2 fields, expected 3: user id, timestamp, item"},
      {kFeatures, "1\t0\t3\t7\n", "events.tsv, line 1: 4 fields, expected 3: user id, timestamp"},
      {kFeatures, "1\t0\t3\n-1\t0\t3\n", "events.tsv, line 2: user = '-1', expected a whole"},
      {kFeatures, "1\tnow\t3\n", "events.tsv, line 1: timestamp = 'now', expected a number"},
      {kFeatures, "1\t0\t3\n1\t0\t\n", "events.tsv, line 2: no candidates, expected at least 1"},
      {kFeatures, "1\t0\t3,\n", "events.tsv, line 1: item = '', expected a whole number"},
      {kFeatures, "1\t0\t3,a\n", "events.tsv, line 1: item = 'a', expected a whole number"},
      {kFeatures, "1\t0\t3\n1\t0\t3,4\n",
       "events.tsv, line 2: item 4 is unknown, expected one of features.tsv"},
      {kFeatures, "1\t0\t3,7\n1\t0\t7,3,7\n",
       "events.tsv, line 2: item 7 a second time, expected each candidate once"},
      {std::string(1000, 'x') + "\t1\n", kEvents,
       "item = '" + std::string(40, 'x') + "...', expected"},
  };
  for (const auto& [features, events, message] : cases) {
    const auto stream = Read(features, events);
    ASSERT_FALSE(stream.ok()) << message;
    EXPECT_EQ(stream.status().code(), StatusCode::kInvalidArgument) << message;
    EXPECT_NE(stream.status().message().find(message), std::string::npos)
        << message << "\n"
        << stream.status().message();
    EXPECT_EQ(stream.status().message().rfind(directory_.string(), 0), 0U)
        << stream.status().message();
  }
}

TEST_F(ReadStreamTest, MissingFilesAreNamed) {
  for (const char* name : {"features.tsv", "events.tsv"}) {
    ASSERT_TRUE(Read(kFeatures, kEvents).ok());
    std::filesystem::remove(directory_ / name);
    const auto stream = ReadStream(directory_);
    EXPECT_EQ(stream.status().code(), StatusCode::kNotFound);
    EXPECT_NE(stream.status().message().find(directory_ / name), std::string::npos);
  }
}

// Two users with opposite tastes; the positive candidate is the one that the user likes best.
RecordedStream MakeStream(std::size_t events) {
  constexpr std::size_t kItems = 60;
  constexpr std::size_t kCandidates = 5;
  RecordedStream stream;
  stream.dim = 3;
  stream.user_count = 2;
  RandomStream random({.seed = 9, .event = 0}, 500);
  stream.features.resize(kItems * stream.dim);
  random.FillNormal(stream.features);
  std::vector<double> taste(stream.dim);
  random.FillNormal(taste);
  std::vector<std::uint32_t> items(kItems);
  for (std::uint32_t i = 0; i < kItems; ++i) items[i] = i;
  for (std::size_t e = 0; e < events; ++e) {
    const UserId user = e % 2;
    random.Shuffle(std::span(items));
    const auto value = [&](std::uint32_t item) {
      const std::span<const double> row(&stream.features[item * stream.dim], stream.dim);
      return (user == 0 ? 1 : -1) * linalg::Dot(row, taste);
    };
    std::swap(items[0],
              *std::ranges::max_element(items.begin(), items.begin() + kCandidates, {}, value));
    const std::size_t begin = stream.candidates.size();
    stream.candidates.insert(stream.candidates.end(), items.begin(), items.begin() + kCandidates);
    stream.events.push_back({.user = user, .begin = begin, .end = stream.candidates.size()});
  }
  return stream;
}

// Always takes the first arm, and keeps what it saw.
class FirstArm final : public Policy {
 public:
  explicit FirstArm(std::size_t dim) : Policy(dim) {}

  bool Forget(UserId) override { return false; }
  std::size_t model_count() const override { return 7; }
  void SaveState(ByteWriter&) const override {}
  void LoadState(ByteReader&) override {}

  struct Seen {
    UserId user;
    EventKey key;
    std::vector<double> arms;

    friend bool operator==(const Seen&, const Seen&) = default;
  };
  mutable std::vector<Seen> seen;
  std::vector<double> rewards;

 private:
  Propensity DoChoose(UserId user, ArmsView arms, EventKey key, Decision&) const override {
    seen.push_back({user, key, {arms.features.begin(), arms.features.end()}});
    return Propensity::Certain();
  }
  // Every fourth event looks like a change.
  LearnOutcome DoLearn(const Decision&, double reward, EventKey key, LearnMemo*) override {
    EXPECT_EQ(key, seen.back().key);
    rewards.push_back(reward);
    return {.change_detected = key.event % 4 == 0};
  }
};

TEST(ReplayTest, PositionTellsNothing) {
  const RecordedStream stream = MakeStream(3000);
  FirstArm policy(stream.dim);
  const ReplayRun run = PlayStream(stream, policy, 1);
  // Its standard deviation is √(3000 · 0.2 · 0.8) = 22.
  EXPECT_NEAR(run.reward(), stream.chance(), 110);
  EXPECT_NEAR(run.times_chance, run.reward() / 600, 1e-9);
}

TEST(ReplayTest, OrderOfCandidatesDependsOnSeedAndEventAlone) {
  const RecordedStream stream = MakeStream(100);
  FirstArm once(stream.dim);
  FirstArm again(stream.dim);
  FirstArm other(stream.dim);
  PlayStream(stream, once, 1);
  PlayStream(stream, again, 1, 3);
  PlayStream(stream, other, 2);
  EXPECT_EQ(once.seen, again.seen);
  std::size_t same = 0;
  for (std::size_t e = 0; e < stream.events.size(); ++e) {
    EXPECT_EQ(once.seen[e].user, stream.events[e].user);
    EXPECT_EQ(once.seen[e].key, (EventKey{.seed = 1, .event = e}));
    same += once.seen[e].arms == other.seen[e].arms;
    // Whatever the order, it is the same candidates, and the reward is that of the arm taken.
    std::vector<std::vector<double>> offered;
    std::vector<std::vector<double>> recorded;
    for (std::size_t i = 0; i < 5; ++i) {
      const auto seen = once.seen[e].arms.begin() + static_cast<std::ptrdiff_t>(i * stream.dim);
      offered.emplace_back(seen, seen + 3);
      const auto row =
          stream.features.begin() +
          static_cast<std::ptrdiff_t>(stream.candidates[stream.events[e].begin + i] * stream.dim);
      recorded.emplace_back(row, row + 3);
    }
    EXPECT_EQ(once.rewards[e], offered[0] == recorded[0] ? 1 : 0);
    EXPECT_TRUE(std::ranges::is_permutation(offered, recorded));
  }
  EXPECT_LT(same, 10U);
}

TEST(ReplayTest, RunHoldsWhatHappened) {
  const RecordedStream stream = MakeStream(250);
  FirstArm policy(stream.dim);
  double progress = 0;
  const ReplayRun run =
      PlayStream(stream, policy, 3, 100, [&](double share) { progress += share; });
  EXPECT_NEAR(progress, 1, 1e-9);
  const std::vector<std::size_t> checkpoints = sim::CheckpointRounds(250, 100);
  ASSERT_EQ(run.reward_curve.size(), checkpoints.size());
  for (std::size_t i = 0; i < checkpoints.size(); ++i) {
    EXPECT_EQ(run.reward_curve[i],
              std::count(policy.rewards.begin(),
                         policy.rewards.begin() + static_cast<std::ptrdiff_t>(checkpoints[i]), 1));
  }
  EXPECT_EQ(run.models, 7U);
  EXPECT_DOUBLE_EQ(run.changes_per_1000, 1000 * 63.0 / 250);
}

TEST(ReplayTest, InterleavingMixesUsersAndKeepsEachOnesOrder) {
  RecordedStream stream = MakeStream(300);
  std::ranges::stable_sort(stream.events, {}, &RecordedStream::Event::user);
  RecordedStream mixed = stream;
  InterleaveUsers(mixed);
  RecordedStream again = stream;
  InterleaveUsers(again);
  ASSERT_EQ(mixed.events.size(), 300U);
  std::size_t switches = 0;
  std::map<UserId, std::vector<std::size_t>> before;
  std::map<UserId, std::vector<std::size_t>> after;
  for (std::size_t e = 0; e < 300; ++e) {
    EXPECT_EQ(mixed.events[e].begin, again.events[e].begin);
    before[stream.events[e].user].push_back(stream.events[e].begin);
    after[mixed.events[e].user].push_back(mixed.events[e].begin);
    if (e > 0) switches += mixed.events[e].user != mixed.events[e - 1].user ? 1 : 0;
  }
  EXPECT_EQ(before, after);
  // 149.5 on average, with a standard deviation of 9.
  EXPECT_GT(switches, 100U);
  EXPECT_LT(switches, 200U);
}

// A log in which item i of four is shown at random to one of three users and clicked with a chance
// of 0.1 (i + 1). Features tell the items from each other.
RecordedStream MakeLog(std::size_t events) {
  constexpr std::uint32_t kItems = 4;
  RecordedStream log;
  log.logged = true;
  log.dim = kItems;
  log.user_count = 3;
  log.features.resize(kItems * kItems);
  for (std::size_t i = 0; i < kItems; ++i) log.features[i * kItems + i] = 1;
  RandomStream random({.seed = 5, .event = 0}, 1);
  for (std::size_t e = 0; e < events; ++e) {
    std::vector<std::uint32_t> items = {0, 1, 2, 3};
    random.Shuffle(std::span(items));
    const double reward = random.Below(10) <= items[0] ? 1 : 0;
    log.events.push_back(
        {.user = e % 3, .begin = kItems * e, .end = kItems * (e + 1), .reward = reward});
    log.candidates.insert(log.candidates.end(), items.begin(), items.end());
  }
  return log;
}

// Always takes the same item of MakeLog.
class OneItem final : public Policy {
 public:
  explicit OneItem(std::size_t item) : Policy(4), item_(item) {}

  bool Forget(UserId) override { return false; }
  std::size_t model_count() const override { return 1; }
  void SaveState(ByteWriter&) const override {}
  void LoadState(ByteReader&) override {}

  std::vector<std::uint64_t> learned;  // events
  double reward = 0;

 private:
  Propensity DoChoose(UserId, ArmsView arms, EventKey, Decision& decision) const override {
    while (arms.arm(decision.arm)[item_] != 1) ++decision.arm;
    return Propensity::Certain();
  }
  LearnOutcome DoLearn(const Decision&, double value, EventKey key, LearnMemo*) override {
    learned.push_back(key.event);
    reward += value;
    return {.change_detected = true};
  }

  std::size_t item_;
};

TEST(LogReplayTest, OneItemForeverHasTheClickRateThatTheLogHasForIt) {
  const RecordedStream log = MakeLog(4000);
  for (std::uint32_t item = 0; item < 4; ++item) {
    std::vector<std::uint64_t> shown;
    double clicks = 0;
    for (std::size_t e = 0; e < log.events.size(); ++e) {
      if (log.candidates[log.events[e].begin] != item) continue;
      shown.push_back(e);
      clicks += log.events[e].reward;
    }
    OneItem policy(item);
    const ReplayRun run = PlayStream(log, policy, 9);
    // It learns from these events, in their order, and from no others.
    EXPECT_EQ(policy.learned, shown);
    EXPECT_EQ(policy.reward, clicks);
    EXPECT_EQ(run.matched(), static_cast<double>(shown.size()));
    EXPECT_EQ(run.reward(), clicks);
    const double ctr = clicks / static_cast<double>(shown.size());
    EXPECT_DOUBLE_EQ(run.mean_reward(), ctr);
    EXPECT_DOUBLE_EQ(run.times_chance, ctr / (log.total_reward() / 4000));
    EXPECT_DOUBLE_EQ(run.mean_reward_error(),
                     std::sqrt(ctr * (1 - ctr) / static_cast<double>(shown.size())));
    EXPECT_EQ(run.changes_per_1000, 1000);
    // And that is the item's true one, within four standard errors.
    EXPECT_NEAR(ctr, 0.1 * (item + 1), 4 * run.mean_reward_error());
  }
}

TEST(LogReplayTest, RandomChoiceHasTheClickRateOfTheLogAndLearnersABetterOne) {
  const RecordedStream log = MakeLog(40'000);
  const auto played = CompareOnStream(
      log, {.policies = {"random", "uniform-linucb", "codband"}, .seeds = 2, .threads = 2});
  const auto& policies = played.value().policies;
  for (const ReplayRun& run : policies[0].runs) {
    // Every fourth event matches: a standard deviation of 87 events, and of 0.0043 of 0.25.
    EXPECT_NEAR(run.matched(), 10'000, 350);
    EXPECT_NEAR(run.times_chance, 1, 0.07);
  }
  for (std::size_t p = 1; p < 3; ++p) {
    for (const ReplayRun& run : policies[p].runs) {
      // The best item has 0.4 instead of 0.25.
      EXPECT_GT(run.times_chance, 1.45) << policies[p].spec;
      EXPECT_LT(run.times_chance, 1.68) << policies[p].spec;
    }
  }
}

TEST(LogReplayTest, PolicyThatNeverTakesWhatWasShownHasNoClickRate) {
  RecordedStream log = MakeLog(2000);
  std::erase_if(log.events, [&](const RecordedStream::Event& event) {
    return log.candidates[event.begin] == 2;
  });
  OneItem policy(2);
  const ReplayRun run = PlayStream(log, policy, 1);
  EXPECT_EQ(run.matched(), 0);
  EXPECT_TRUE(std::isnan(run.mean_reward()));
  EXPECT_TRUE(std::isnan(run.times_chance));
  EXPECT_EQ(run.changes_per_1000, 0);
}

TEST(ReplayTest, LearnersBeatChance) {
  const RecordedStream stream = MakeStream(600);
  const auto played =
      CompareOnStream(stream, {.policies = {"random", "uniform-linucb", "linucb"}, .threads = 2});
  const auto& policies = played.value().policies;
  EXPECT_NEAR(policies[0].runs[0].times_chance, 1, 0.4);
  EXPECT_GT(policies[2].runs[0].times_chance, 3);
  // The users want opposite things.
  EXPECT_GT(policies[2].runs[0].reward(), 1.5 * policies[1].runs[0].reward());
  EXPECT_EQ(policies[2].runs[0].models, 2U);
}

TEST(ReplayTest, ResultsDependNeitherOnThreadsNorOnOtherPoliciesNorOnTheNumberOfSeeds) {
  const RecordedStream stream = MakeStream(200);
  const auto all = CompareOnStream(
      stream,
      {.policies = {"random", "linucb", "codband"}, .first_seed = 4, .seeds = 3, .threads = 3});
  const auto alone =
      CompareOnStream(stream, {.policies = {"codband"}, .first_seed = 5, .threads = 1});
  const ReplayRun& a = all.value().policies[2].runs[1];
  const ReplayRun& b = alone.value().policies[0].runs[0];
  EXPECT_EQ(a.reward_curve, b.reward_curve);
  EXPECT_EQ(a.changes_per_1000, b.changes_per_1000);
  EXPECT_EQ(a.models, b.models);
  EXPECT_EQ(all.value().checkpoint_events, sim::CheckpointRounds(200, 100));
  EXPECT_NE(all.value().policies[0].runs[0].reward_curve,
            all.value().policies[0].runs[1].reward_curve);
}

TEST(ReplayTest, PoliciesAreToldWhoIsAFriendOfWhom) {
  const RecordedStream stream = MakeStream(20);
  UserGraph friends;
  friends.Add(0, 1);
  sim::RunnerOptions options{.policies = {"codband:prior=friends"}};
  EXPECT_FALSE(CompareOnStream(stream, options).ok());
  options.friends = &friends;
  EXPECT_TRUE(CompareOnStream(stream, options).ok());
}

TEST(ReplayTest, ProgressAddsUpToOne) {
  std::mutex mutex;
  double done = 0;
  const auto played = CompareOnStream(
      MakeStream(40),
      {.policies = {"random", "linucb"}, .seeds = 2, .threads = 2, .progress = [&](double share) {
         const std::lock_guard lock(mutex);
         done += share;
       }});
  EXPECT_TRUE(played.ok());
  EXPECT_NEAR(done, 1, 1e-9);
}

TEST(ReplayTest, WhatIsWrongIsFoundBeforeAnythingIsPlayed) {
  const RecordedStream stream = MakeStream(10);
  const auto refused = [&](std::vector<std::string> policies, std::size_t seeds = 1) {
    const auto played = CompareOnStream(
        stream, {.policies = std::move(policies), .seeds = seeds, .progress = [](double) {
                   FAIL() << "something was played";
                 }});
    EXPECT_EQ(played.status().code(), StatusCode::kInvalidArgument);
    return played.status().message();
  };
  EXPECT_NE(refused({"random", "nosuch"}).find("'nosuch' is unknown"), std::string::npos);
  EXPECT_NE(refused({"random", "oracle-greedy"}).find("only a simulation has them"),
            std::string::npos);
  refused({});
  refused({"random"}, 0);
}

}  // namespace
}  // namespace codband::replay
