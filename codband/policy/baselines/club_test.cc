#include "codband/policy/baselines/club.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "codband/base/random.h"
#include "codband/linalg/gaussian_posterior.h"
#include "codband/policy/baselines/clustering_testing.h"
#include "codband/policy/baselines/linucb.h"
#include "codband/policy/registry.h"
#include "codband/policy/test_support.h"

namespace codband {
namespace {

// Users in the same set have the same model.
std::set<std::set<UserId>> Partition(const Policy& policy, const std::set<UserId>& users) {
  std::map<ModelId, std::set<UserId>> by_model;
  const std::vector<double> arm(kDim, 1);
  for (const UserId user : users) by_model[policy.Choose(user, {arm, kDim}, {}).model].insert(user);
  std::set<std::set<UserId>> partition;
  for (const auto& [model, members] : by_model) partition.insert(members);
  return partition;
}

// The definition: a matrix of edges, components by walking them, models summed anew.
class PlainClub {
 public:
  explicit PlainClub(const ClubOptions& options) : options_(options) {}

  void Learn(const Decision& decision, double reward) {
    const UserId i = decision.user;
    if (!users_.contains(i)) {
      for (const auto& [j, other] : users_) edges_.insert(std::minmax(i, j));
      users_.emplace(i, linalg::GaussianPosterior(kDim, options_.lambda, 1));
    }
    users_.at(i).Add(decision.features, reward);
    for (const auto& [j, other] : users_) {
      if (j != i && Distance(i, j) > Bound(i) + Bound(j)) edges_.erase(std::minmax(i, j));
    }
  }

  std::set<UserId> ComponentOf(UserId user) const {
    std::set<UserId> component = {user};
    std::vector<UserId> pending = {user};
    while (!pending.empty()) {
      const UserId i = pending.back();
      pending.pop_back();
      for (const auto& [j, other] : users_) {
        if (edges_.contains(std::minmax(i, j)) && component.insert(j).second) pending.push_back(j);
      }
    }
    return component;
  }

  std::set<std::set<UserId>> Components() const {
    std::set<std::set<UserId>> components;
    std::set<UserId> seen;
    for (const auto& [user, posterior] : users_) {
      if (seen.contains(user)) continue;
      const std::set<UserId> component = ComponentOf(user);
      seen.insert(component.begin(), component.end());
      components.insert(component);
    }
    return components;
  }

  linalg::GaussianPosterior ModelOf(UserId user) const {
    linalg::GaussianPosterior model(kDim, options_.lambda, 1);
    if (!users_.contains(user)) {
      for (const auto& [other, posterior] : users_) model.Add(posterior.stats());
    } else {
      for (const UserId other : ComponentOf(user)) model.Add(users_.at(other).stats());
    }
    return model;
  }

  std::set<UserId> users() const {
    std::set<UserId> users;
    for (const auto& [user, posterior] : users_) users.insert(user);
    return users;
  }

 private:
  double Distance(UserId i, UserId j) const {
    double sum = 0;
    for (std::size_t k = 0; k < kDim; ++k) {
      sum += std::pow(users_.at(i).mean()[k] - users_.at(j).mean()[k], 2);
    }
    return std::sqrt(sum);
  }

  double Bound(UserId i) const {
    const auto T = static_cast<double>(users_.at(i).stats().m());
    return options_.alpha2 * std::sqrt((1 + std::log(1 + T)) / (1 + T));
  }

  ClubOptions options_;
  std::map<UserId, linalg::GaussianPosterior> users_;
  std::set<std::pair<UserId, UserId>> edges_;
};

void CompareWithPlainClub(std::size_t users, std::size_t steps) {
  const ClubOptions options{.alpha2 = 0.6};
  const auto policy = MakeClub(kDim, options);
  PlainClub plain(options);
  std::set<std::size_t> sizes_seen;
  std::size_t joined_while_split = 0;
  for (std::size_t t = 0; t < steps; ++t) {
    const Visit visit = VisitAt(t, users);
    const Decision decision = policy->Choose(visit.user, {visit.arms, kDim}, {1, t});
    const bool is_new = !plain.users().contains(visit.user);
    joined_while_split += is_new && policy->model_count() > 1;
    EXPECT_EQ(decision.model == kNoModel, is_new);
    const linalg::GaussianPosterior model = plain.ModelOf(visit.user);
    double mean = 0;
    for (std::size_t k = 0; k < kDim; ++k) mean += decision.features[k] * model.mean()[k];
    ASSERT_NEAR(decision.mean, mean, 1e-9) << "at " << t;
    ASSERT_NEAR(decision.width, std::sqrt(model.Variance(decision.features)), 1e-9);
    const double reward = Reward(decision, visit.noise);
    policy->Learn(decision, reward, {1, t});
    plain.Learn(decision, reward);
    const auto components = plain.Components();
    ASSERT_EQ(policy->model_count(), components.size()) << "at " << t;
    if (t % 10 == 0) {
      ASSERT_EQ(Partition(*policy, plain.users()), components) << "at " << t;
    }
    for (const auto& component : components) sizes_seen.insert(component.size());
  }
  EXPECT_GT(joined_while_split, 0);
  EXPECT_GT(sizes_seen.size(), users / 3) << "components of many sizes make it a test";
}

TEST(ClubTest, ComponentsEqualThoseOfAPlainGraph) { CompareWithPlainClub(30, 4000); }

TEST(ClubTest, ComponentsEqualThoseOfAPlainGraphBeyondOneWord) { CompareWithPlainClub(75, 3000); }

TEST(ClubTest, EqualsUniformLinUcbIfNoEdgeIsCut) {
  const auto policy = MakeClub(kDim, {.alpha = 0.6, .alpha2 = 1e6});
  const auto uniform = MakePolicy("uniform-linucb", {.dim = kDim});
  ASSERT_TRUE(uniform.ok());
  const auto mine = Play(*policy, 20, 0, 1000);
  const auto theirs = Play(*uniform.value(), 20, 0, 1000);
  for (std::size_t t = 0; t < mine.size(); ++t) {
    ASSERT_EQ(mine[t].arm, theirs[t].arm) << "at " << t;
    ASSERT_EQ(mine[t].score, theirs[t].score) << "at " << t;
  }
  EXPECT_EQ(policy->model_count(), 1);
}

TEST(ClubTest, EqualsLinUcbForEachUserIfAllEdgesAreCut) {
  const auto policy = MakeClub(kDim, {.alpha = 0.6, .alpha2 = 0});
  const auto linucb = MakeLinUcb(kDim, LinUcbOptions{.alpha = 0.6});
  std::set<UserId> known;
  for (std::size_t t = 0; t < 1000; ++t) {
    const Visit visit = VisitAt(t, 20);
    const Decision mine = policy->Choose(visit.user, {visit.arms, kDim}, {1, t});
    const Decision theirs = linucb->Choose(visit.user, {visit.arms, kDim}, {1, t});
    if (!known.insert(visit.user).second) {
      ASSERT_EQ(mine.arm, theirs.arm) << "at " << t;
      ASSERT_NEAR(mine.score, theirs.score, 1e-12) << "at " << t;
    }
    policy->Learn(mine, Reward(mine, visit.noise), {1, t});
    linucb->Learn(mine, Reward(mine, visit.noise), {1, t});
    ASSERT_EQ(policy->model_count(), known.size());
  }
}

TEST(ClubTest, WithFewChecksEveryEdgeStillGetsItsTurn) {
  const auto policy = MakeClub(kDim, {.alpha2 = 0.5, .checks = 2});
  std::set<UserId> known;
  for (const Decision& decision : Play(*policy, 20, 0, 8000)) known.insert(decision.user);
  for (const std::set<UserId>& component : Partition(*policy, known)) {
    for (const UserId user : component) EXPECT_EQ(user % 3, *component.begin() % 3);
  }
}

TEST(ClubTest, ForgetEqualsNeverHavingSeenTheUser) {
  const ClubOptions options{.alpha2 = 0.6};
  for (const UserId forgotten : {0, 4, 11}) {
    const auto policy = MakeClub(kDim, options);
    PlainClub without(options);
    for (std::size_t t = 0; t < 2500; ++t) {
      const Visit visit = VisitAt(t, 30);
      if (t == 900 || t == 1500) {
        EXPECT_TRUE(policy->Forget(forgotten));
        EXPECT_FALSE(policy->Forget(forgotten));
      }
      const Decision decision = policy->Choose(visit.user, {visit.arms, kDim}, {1, t});
      if (t >= 1500 && visit.user == forgotten) continue;
      policy->Learn(decision, Reward(decision, visit.noise), {1, t});
      if (visit.user == forgotten) continue;
      without.Learn(decision, Reward(decision, visit.noise));
      if (t < 1500) continue;
      ASSERT_EQ(policy->model_count(), without.Components().size()) << "at " << t;
      if (t % 20 == 0) {
        ASSERT_EQ(Partition(*policy, without.users()), without.Components());
      }
      const linalg::GaussianPosterior model = without.ModelOf(visit.user);
      const Decision now = policy->Choose(visit.user, {visit.arms, kDim}, {1, t});
      ASSERT_NEAR(now.width, std::sqrt(model.Variance(now.features)), 1e-9);
    }
    // A newcomer is served by the data of all others.
    const Visit visit = VisitAt(0, 30);
    const Decision newcomer = policy->Choose(1000, {visit.arms, kDim}, {});
    EXPECT_NEAR(newcomer.width, std::sqrt(without.ModelOf(1000).Variance(newcomer.features)), 1e-9);
  }
}

TEST(ClubTest, AUserOfAnotherScaleLeavesNoRounding) {
  const auto policy = MakeClub(kDim, {.alpha2 = 1e30});
  PlainClub without({.alpha2 = 1e30});
  for (std::size_t t = 0; t < 200; ++t) {
    const Visit visit = VisitAt(t, 10);
    Decision decision{.user = visit.user,
                      .features = {visit.arms.begin(), visit.arms.begin() + kDim}};
    policy->Learn(decision, visit.noise, {});
    without.Learn(decision, visit.noise);
    decision.user = 77;
    for (double& feature : decision.features) feature *= 1e10;
    policy->Learn(decision, visit.noise, {});
  }
  ASSERT_EQ(policy->model_count(), 1);
  EXPECT_TRUE(policy->Forget(77));
  const linalg::GaussianPosterior model = without.ModelOf(0);
  for (const UserId user : {0, 1000}) {
    const Decision decision = policy->Choose(user, {VisitAt(0, 10).arms, kDim}, {});
    EXPECT_NEAR(decision.width, std::sqrt(model.Variance(decision.features)), 1e-9);
  }
}

TEST(ClubTest, ForgettingEverybodyLeavesNothing) {
  const auto policy = MakeClub(kDim, {.alpha2 = 0.6});
  Play(*policy, 10, 0, 500);
  for (UserId user = 0; user < 10; ++user) EXPECT_TRUE(policy->Forget(user));
  EXPECT_EQ(policy->model_count(), 0);
  const Visit visit = VisitAt(0, 10);
  const Decision decision = policy->Choose(3, {visit.arms, kDim}, {});
  EXPECT_EQ(decision.mean, 0);
  policy->Learn(decision, 1, {});
  EXPECT_EQ(policy->model_count(), 1);
}

TEST(ClubTest, SaveLoadContinueEqualsAnUninterruptedRun) {
  for (const std::size_t checks : {3, 1000}) {
    const ClubOptions options{.alpha2 = 0.6, .checks = checks};
    for (const std::size_t stop : {0, 1, 50, 500, 2000}) {
      const auto policy = MakeClub(kDim, options);
      Play(*policy, 70, 0, stop);
      policy->Forget(2);
      const std::string saved = Saved(*policy);
      const auto restored = MakeClub(kDim, options);
      ByteReader in(saved);
      restored->LoadState(in);
      in.ExpectEnd();
      ASSERT_TRUE(in.ok()) << in.status().ToString();
      EXPECT_EQ(Saved(*restored), saved);
      const auto mine = Play(*policy, 70, stop, stop + 1500);
      const auto theirs = Play(*restored, 70, stop, stop + 1500);
      for (std::size_t t = 0; t < mine.size(); ++t) {
        ASSERT_EQ(mine[t].score, theirs[t].score);
        ASSERT_EQ(mine[t].model, theirs[t].model);
      }
      EXPECT_EQ(Saved(*restored), Saved(*policy));
    }
  }
}

TEST(ClubTest, DamagedStateIsReported) {
  const auto policy = MakeClub(kDim, {.alpha2 = 0.5});
  Play(*policy, 8, 0, 400);
  ASSERT_GT(policy->model_count(), 1);
  const std::string saved = Saved(*policy);
  const auto load = [](std::string_view bytes) {
    const auto loaded = MakeClub(kDim, {.alpha2 = 0.5});
    ByteReader in(bytes);
    loaded->LoadState(in);
    in.ExpectEnd();
    // As good as new, but for features that damaged bytes made it grow by.
    if (!in.ok() && loaded->dim() == kDim) Play(*loaded, 8, 0, 10);
    return in.ok();
  };
  EXPECT_TRUE(load(saved));
  for (std::size_t size = 0; size < saved.size(); ++size) {
    ASSERT_FALSE(load(std::string_view(saved).substr(0, size))) << size;
  }
  for (std::size_t i = 0; i < saved.size(); ++i) {
    std::string damaged = saved;
    damaged[i] = static_cast<char>(~damaged[i]);
    load(damaged);  // must neither crash nor ask for absurd memory
  }
  // The last word holds the cuts of the last user. Without them the components do not fit; with
  // all bits set it has cuts to users who do not exist.
  std::string uncut = saved;
  std::fill(uncut.end() - 8, uncut.end(), '\0');
  EXPECT_FALSE(load(uncut));
  std::string beyond = saved;
  std::fill(beyond.end() - 8, beyond.end(), '\xff');
  EXPECT_FALSE(load(beyond));
}

}  // namespace
}  // namespace codband
