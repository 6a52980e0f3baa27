// Changes early in a period: what counts is whether the user's place in the pool is known, not how
// many features there are. Seeds are fixed: a test fails because the code changed, not by chance.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "codband/linalg/kernels.h"
#include "codband/policy/registry.h"

namespace codband {
namespace {

constexpr std::size_t kTastes = 3;
constexpr std::size_t kOffered = 10;
constexpr std::size_t kFields = 5;

// Users of three tastes, on features that are dense or name a value in each of five fields. Rewards
// have deviation 1, and noise 0.1.
class EarlyWorld {
 public:
  EarlyWorld(std::size_t dim, bool sparse)
      : dim_(dim),
        sparse_(sparse),
        policy_(std::move(MakePolicy("codband", {.dim = dim})).value()),
        tastes_(kTastes, std::vector<double>(dim)) {
    RandomStream random({1, dim}, 920);
    for (auto& taste : tastes_) {
      random.FillNormal(taste);
      for (double& value : taste) value /= sparse ? std::sqrt(kFields) : 1.0;
    }
  }

  // Returns whether a change was noticed.
  bool Visit(UserId user, std::size_t taste) {
    const EventKey key{1, event_++};
    RandomStream random(key, 921);
    std::vector<double> arms(kOffered * dim_);
    for (std::size_t i = 0; i < kOffered; ++i)
      Draw(random, std::span(arms).subspan(i * dim_, dim_));
    const Decision decision = policy_->Choose(user, {arms, dim_}, key);
    const double mean = linalg::Dot(decision.features, tastes_[taste]);
    return policy_->Learn(decision, mean + 0.1 * random.Normal(), key).change_detected;
  }

  // Others have taught the pool all tastes: 15 users, until each taste has 2 rewards a feature.
  void Teach() {
    for (std::size_t i = 0; i < 2 * dim_ / 5 + 8; ++i) {
      for (UserId user = 1000; user < 1015; ++user) Visit(user, user % kTastes);
    }
  }

 private:
  void Draw(RandomStream& random, std::span<double> arm) const {
    if (!sparse_) {
      random.FillNormal(arm);
      for (double& value : arm) value /= std::sqrt(static_cast<double>(dim_));
      return;
    }
    const std::size_t values = dim_ / kFields;
    for (std::size_t field = 0; field < kFields; ++field) {
      arm[field * values + random.Below(values)] = 1;
    }
  }

  std::size_t dim_;
  bool sparse_;
  std::unique_ptr<Policy> policy_;
  std::vector<std::vector<double>> tastes_;
  std::uint64_t event_ = 0;
};

// After so many visits on the old taste: for each of 30 users, how many visits it took until the
// change was noticed.
std::vector<int> Delays(std::size_t dim, bool sparse, std::size_t visits) {
  constexpr UserId kUsers = 30;
  constexpr int kNever = 99;
  EarlyWorld world(dim, sparse);
  world.Teach();
  for (std::size_t i = 0; i < visits; ++i) {
    for (UserId user = 0; user < kUsers; ++user) {
      EXPECT_FALSE(world.Visit(user, user % kTastes)) << dim << ", visit " << i;
    }
  }
  std::vector<int> delays(kUsers, kNever);
  for (int i = 1; i <= 5; ++i) {
    for (UserId user = 0; user < kUsers; ++user) {
      const bool noticed = world.Visit(user, (user + 1) % kTastes);
      if (noticed && delays[user] == kNever) delays[user] = i;
    }
  }
  std::ranges::sort(delays);
  return delays;
}

TEST(EarlyChangeTest, ChangeIsNoticedLongBeforeThereAreAsManyRewardsAsFeatures) {
  for (const bool sparse : {false, true}) {
    for (const std::size_t dim : {30, 60}) {
      const std::vector<int> delays = Delays(dim, sparse, 20);
      EXPECT_LE(delays[26], 5) << dim << ", sparse " << sparse;  // nine in ten
      EXPECT_LE(delays[15], 3) << dim << ", sparse " << sparse;  // the median
    }
  }
}

TEST(EarlyChangeTest, ChangeIsNoticedAfterTenVisits) {
  for (const std::size_t dim : {10, 25, 100}) EXPECT_LE(Delays(dim, true, 10)[15], 3) << dim;
  for (const std::size_t dim : {8, 25}) EXPECT_LE(Delays(dim, false, 10)[15], 3) << dim;
}

TEST(EarlyChangeTest, NobodyChangesWhileThePoolIsBeingFound) {
  std::size_t alarms = 0;
  for (const std::size_t dim : {10, 25}) {
    EarlyWorld world(dim, false);
    for (std::size_t i = 0; i < 100; ++i) {
      for (UserId user = 0; user < 30; ++user) alarms += world.Visit(user, user % kTastes) ? 1 : 0;
    }
  }
  EXPECT_LE(alarms, 1U);  // of 6000
}

}  // namespace
}  // namespace codband
