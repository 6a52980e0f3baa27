#include "codband/replay/play.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <string>

#include "codband/linalg/kernels.h"
#include "codband/policy/user_graph.h"

namespace codband::replay {
namespace {

// Two users with opposite parameters; the positive candidate is the best one for the user.
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

// Always chooses the first arm, and records what it saw.
class FirstArm final : public Policy {
 public:
  explicit FirstArm(std::size_t dim) : Policy(dim) {}

  bool Forget(UserId) override { return false; }
  std::size_t model_count() const override { return 7; }
  void DoSaveState(ByteWriter&) const override {}
  void DoLoadState(ByteReader&) override {}
  void DoGrow(std::size_t) override {}

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

TEST(ReplayTest, PositionOfTheCandidateIsUninformative) {
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
    // The candidates are a permutation, and the reward is that of the chosen arm.
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

TEST(ReplayTest, RunRecordsRewardsModelsAndChanges) {
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

TEST(ReplayTest, InterleavingKeepsTheOrderOfEachUsersEvents) {
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
// of 0.1 (i + 1). The features of an item are its indicator vector.
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

// Always chooses the same item of MakeLog.
class OneItem final : public Policy {
 public:
  explicit OneItem(std::size_t item) : Policy(4), item_(item) {}

  bool Forget(UserId) override { return false; }
  std::size_t model_count() const override { return 1; }
  void DoSaveState(ByteWriter&) const override {}
  void DoLoadState(ByteReader&) override {}
  void DoGrow(std::size_t) override {}

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

TEST(LogReplayTest, ConstantPolicyHasTheClickThroughRateOfItsItem) {
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
    // It is the true rate of the item, within four standard errors.
    EXPECT_NEAR(ctr, 0.1 * (item + 1), 4 * run.mean_reward_error());
  }
}

TEST(LogReplayTest, RandomChoiceMatchesTheLogAndLearnersExceedIt) {
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

TEST(LogReplayTest, PolicyWithoutMatchesHasNoClickThroughRate) {
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
  // The users have opposite parameters.
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

TEST(ReplayTest, PoliciesGetTheFriendGraph) {
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

TEST(ReplayTest, InvalidOptionsAreRefusedBeforePlaying) {
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
