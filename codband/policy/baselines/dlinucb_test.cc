#include "codband/policy/baselines/dlinucb.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "codband/base/random.h"
#include "codband/policy/baselines/linucb.h"
#include "codband/policy/test_support.h"

namespace codband {
namespace {

// One feature that is always 1, so that every slave's estimate is known in closed form:
// m rewards of r give θ̂ = m r / (m + 0.1), width 1/sqrt(m + 0.1).
class OneArm {
 public:
  explicit OneArm(const DLinUcbOptions& options) : policy(MakeDLinUcb(1, options)) {}

  Decision Choose() const { return policy->Choose(1, {arm_, 1}, {}); }
  bool Step(double reward) { return policy->Learn(Choose(), reward, {}).change_detected; }

  std::unique_ptr<Policy> policy;

 private:
  std::vector<double> arm_ = {1};
};

constexpr DLinUcbOptions kScripted{.alpha = 1, .lambda = 0.1, .epsilon = 0.5, .delta0 = 0};

double Mean(double r, double m) { return m * r / (m + 0.1); }

TEST(DLinUcbTest, MakesAndDiscardsSlavesAsScripted) {
  OneArm user(kScripted);
  for (int i = 0; i < 25; ++i) EXPECT_FALSE(user.Step(1));
  EXPECT_NEAR(user.Choose().mean, Mean(1, 25), 1e-12);
  EXPECT_EQ(user.Choose().period, 0);

  // Now the reward is 3: bad for the slave (error 2 > 0.2 + 0.5). Bound for 20 flags: 0.2399. The
  // slave is in doubt above 4 bad ones of 20, discarded above 6.
  for (int bad = 1; bad <= 4; ++bad) EXPECT_FALSE(user.Step(3)) << bad;
  EXPECT_NEAR(user.Choose().mean, Mean(1, 25), 1e-12)
      << "a slave must not learn what is bad for it";
  EXPECT_EQ(user.policy->model_count(), 1);
  EXPECT_TRUE(user.Step(3));
  EXPECT_EQ(user.policy->model_count(), 2);

  // The new slave plays at once.
  Decision decision = user.Choose();
  EXPECT_EQ(decision.period, 1);
  EXPECT_EQ(decision.mean, 0);
  EXPECT_NEAR(decision.width, 1 / std::sqrt(0.1), 1e-12);

  EXPECT_FALSE(user.Step(3));  // 6 of 20
  EXPECT_EQ(user.policy->model_count(), 2);
  EXPECT_FALSE(user.Step(3));  // 7 of 20: the old slave goes
  EXPECT_EQ(user.policy->model_count(), 1);
  EXPECT_NEAR(user.Choose().mean, Mean(3, 2), 1e-12);
  EXPECT_EQ(user.Choose().period, 1);
}

TEST(DLinUcbTest, WithEqualThresholdsOneSlaveReplacesTheOther) {
  DLinUcbOptions options = kScripted;
  options.delta0 = options.delta1;
  OneArm user(options);
  for (int i = 0; i < 25; ++i) user.Step(1);
  for (int bad = 1; bad <= 6; ++bad) EXPECT_FALSE(user.Step(3)) << bad;
  EXPECT_TRUE(user.Step(3));
  EXPECT_EQ(user.policy->model_count(), 1);
  EXPECT_EQ(user.Choose().mean, 0);
}

TEST(DLinUcbTest, TheSlaveWithTheSmallestLowerBoundOfBadnessPlays) {
  OneArm user(kScripted);
  for (int i = 0; i < 25; ++i) user.Step(1);
  for (int bad = 1; bad <= 5; ++bad) user.Step(3);
  ASSERT_EQ(user.policy->model_count(), 2);
  // Back to 1, which suits both: the new slave has not learned anything else. The old one has
  // 5 bad of 20, bound 0.25 - 1.7308 · 0.2399 = -0.165; the new one 0 of n, -1.7308 · 1.0730/√n:
  // smaller as long as it is without a bad one.
  for (int i = 1; i <= 10; ++i) {
    EXPECT_FALSE(user.Step(1));
    EXPECT_NEAR(user.Choose().mean, Mean(1, i), 1e-12);
  }
  // Flags of the old slave leave its window of 20 one by one; with both at 0 of 20 the older plays.
  for (int i = 11; i <= 25; ++i) user.Step(1);
  EXPECT_EQ(user.policy->model_count(), 2);
  EXPECT_NEAR(user.Choose().mean, Mean(1, 25 + 25), 1e-12);
}

TEST(DLinUcbTest, AYoungSlaveHasTheBenefitOfTheDoubt) {
  OneArm user(kScripted);
  for (int i = 0; i < 25; ++i) user.Step(1);
  for (int bad = 1; bad <= 5; ++bad) user.Step(3);
  for (const double reward : {1, 1, 3}) user.Step(reward);
  ASSERT_EQ(user.policy->model_count(), 2);
  // The old one has 6 bad of 20, the new one 1 of 3, which is more; but the lower bounds are
  // 0.3 - 1.7308 · 0.2399 = -0.115 and 0.333 - 1.7308 · 0.6195 = -0.739.
  EXPECT_NEAR(user.Choose().mean, Mean(1, 2), 1e-12);
}

TEST(DLinUcbTest, TheWorstSlaveGivesWayWhenThereAreTooMany) {
  DLinUcbOptions options = kScripted;
  options.delta1 = 1;  // none is ever discarded
  options.slaves = 3;
  OneArm user(options);
  std::vector<std::size_t> counts;
  for (double level = 0; counts.size() < 6; level += 100) {
    for (int i = 0; i < 25; ++i) user.Step(level);
    while (!user.Step(level + 50)) continue;
    counts.push_back(user.policy->model_count());
    EXPECT_EQ(user.Choose().mean, 0) << "the new one plays";
  }
  EXPECT_EQ(counts, (std::vector<std::size_t>{2, 3, 3, 3, 3, 3}));
}

TEST(DLinUcbTest, NoiseAllowanceFollowsSigma) {
  // α = 0: bad beyond ε = √2 · 0.1 · erf⁻¹(0.9) = 0.1 · 1.6448536.
  for (const double reward : {0.1644, -0.1644, 0.1646, -0.1646}) {
    OneArm user({.alpha = 0, .sigma = 0.1});
    user.Step(reward);
    EXPECT_EQ(user.Choose().mean != 0, std::abs(reward) < 0.1645) << reward;
  }
}

TEST(DLinUcbTest, LateRewardIsShownOnlyToSlavesOfItsTime) {
  OneArm user(kScripted);
  const Decision early = user.Choose();
  for (int i = 0; i < 25; ++i) user.Step(1);
  for (int bad = 1; bad <= 5; ++bad) user.Step(3);
  ASSERT_EQ(user.policy->model_count(), 2);
  user.policy->Learn(early, 1, {});
  EXPECT_EQ(user.Choose().mean, 0) << "the new slave must not see it";
  for (int i = 0; i < 10; ++i) user.Step(3);
  ASSERT_EQ(user.policy->model_count(), 1);
  const std::string before = Saved(*user.policy);
  EXPECT_FALSE(user.policy->Learn(early, 1, {}).change_detected);
  EXPECT_EQ(Saved(*user.policy), before) << "no slave of that time is left";
}

constexpr std::size_t kDLinUcbDim = 3;

// Several users who change sides at different times.
std::vector<std::uint32_t> Play(Policy& policy, std::size_t from, std::size_t to) {
  std::vector<std::uint32_t> arms_and_changes;
  std::vector<double> arms(4 * kDLinUcbDim);
  for (std::size_t t = from; t < to; ++t) {
    RandomStream random({.seed = 11, .event = t}, 1000);
    random.FillNormal(arms);
    const UserId user = t % 3;
    const Decision decision = policy.Choose(user, {arms, kDLinUcbDim}, {5, t});
    const double sign = (t / (100 * (user + 1))) % 2 == 0 ? 1 : -1;
    const double reward = sign * decision.features[0] + 0.1 * random.Normal();
    const bool changed = policy.Learn(decision, reward, {5, t}).change_detected;
    arms_and_changes.push_back(2 * decision.arm + changed);
  }
  return arms_and_changes;
}

TEST(DLinUcbTest, EqualsLinUcbIfNothingIsBad) {
  const auto policy = MakeDLinUcb(kDLinUcbDim, {.epsilon = 1e6});
  const auto linucb = MakeLinUcb(kDLinUcbDim, LinUcbOptions{});
  EXPECT_EQ(Play(*policy, 0, 1000), Play(*linucb, 0, 1000));
}

TEST(DLinUcbTest, SaveLoadContinueEqualsAnUninterruptedRun) {
  std::size_t most_slaves = 0;
  for (std::size_t stop = 0; stop < 700; stop += 9) {
    const auto policy = MakeDLinUcb(kDLinUcbDim, {.delta0 = 0});
    Play(*policy, 0, stop);
    most_slaves = std::max(most_slaves, policy->model_count());
    const std::string saved = Saved(*policy);
    const auto restored = MakeDLinUcb(kDLinUcbDim, {.delta0 = 0});
    ByteReader in(saved);
    restored->LoadState(in);
    in.ExpectEnd();
    ASSERT_TRUE(in.ok()) << in.status().ToString();
    EXPECT_EQ(Saved(*restored), saved);
    EXPECT_EQ(Play(*policy, stop, stop + 300), Play(*restored, stop, stop + 300));
    EXPECT_EQ(Saved(*restored), Saved(*policy));
  }
  EXPECT_GT(most_slaves, 3) << "one of the three users should have had two slaves";
}

TEST(DLinUcbTest, DamagedStateIsReported) {
  OneArm user(kScripted);
  for (int i = 0; i < 25; ++i) user.Step(1);
  for (int bad = 1; bad <= 5; ++bad) user.Step(3);
  const std::string saved = Saved(*user.policy);
  for (std::size_t size = 0; size < saved.size(); ++size) {
    ByteReader in(std::string_view(saved).substr(0, size));
    MakeDLinUcb(1, kScripted)->LoadState(in);
    ASSERT_FALSE(in.ok()) << size;
  }
  for (std::size_t i = 0; i < saved.size(); ++i) {
    std::string damaged = saved;
    damaged[i] = static_cast<char>(~damaged[i]);
    ByteReader in(damaged);
    MakeDLinUcb(1, kScripted)->LoadState(in);  // must neither crash nor ask for absurd memory
  }
  // The number of features (16 bytes), one user (8), the id (8), then changes and the number of
  // slaves.
  const auto fails_with = [&](std::size_t at, char value) {
    std::string damaged = saved;
    damaged[at] = value;
    ByteReader in(damaged);
    MakeDLinUcb(1, kScripted)->LoadState(in);
    return !in.ok();
  };
  EXPECT_FALSE(fails_with(32, 1));
  EXPECT_TRUE(fails_with(32, 0)) << "a slave of period 1 without a change";
  EXPECT_TRUE(fails_with(36, 0)) << "no slave";
}

TEST(DLinUcbTest, ForgetEqualsNeverHavingSeenTheUser) {
  const auto policy = MakeDLinUcb(kDLinUcbDim, {.delta0 = 0});
  Play(*policy, 0, 500);
  const std::string without = Saved(*policy);
  const Decision decision{.user = 77, .features = {1, 2, 3}};
  policy->Learn(decision, 1, {});
  EXPECT_NE(Saved(*policy), without);
  EXPECT_TRUE(policy->Forget(77));
  EXPECT_FALSE(policy->Forget(77));
  EXPECT_EQ(Saved(*policy), without);
}

}  // namespace
}  // namespace codband
