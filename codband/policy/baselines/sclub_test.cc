#include "codband/policy/baselines/sclub.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
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

double F(double T) { return std::sqrt((1 + std::log(1 + T)) / (1 + T)); }

double Distance(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t k = 0; k < kDim; ++k) sum += (a[k] - b[k]) * (a[k] - b[k]);
  return std::sqrt(sum);
}

// The definition: sets of users, everything summed and compared anew at every step.
class PlainSClub {
 public:
  struct Cluster {
    std::set<UserId> members;
    std::vector<double> phase_mean = std::vector<double>(kDim);
    double phase_served = 0;
  };

  explicit PlainSClub(const SClubOptions& options) : options_(options) { clusters_[0]; }

  void Learn(const Decision& decision, double reward) {
    if (left_ == 0) {
      left_ = std::size_t{1} << ++phase_;
      checked_.clear();
      for (auto& [id, cluster] : clusters_) Snapshot(cluster);
    }
    --left_;
    ++t_;
    const UserId i = decision.user;
    if (!users_.contains(i)) {
      users_.emplace(i, linalg::GaussianPosterior(kDim, options_.lambda, 1));
      clusters_.at(0).members.insert(i);
    }
    users_.at(i).Add(decision.features, reward);
    ModelId j = ClusterOf(i);
    const int reason = ReasonToSplit(i, clusters_.at(j));
    if (reason != 0) {
      ++(reason == 1 ? splits_by_estimate : splits_by_frequency);
      clusters_.at(j).members.erase(i);
      j = next_++;
      clusters_[j].members.insert(i);
      Snapshot(clusters_.at(j));
    }
    checked_.insert(i);
    for (bool merged = true; merged;) {
      merged = false;
      for (const auto& [k, other] : clusters_) {
        if (k == j || !ShouldMerge(clusters_.at(j), other)) continue;
        ++mergers;
        const ModelId into = std::min(j, k);
        const ModelId from = std::max(j, k);
        clusters_.at(into).members.merge(clusters_.at(from).members);
        clusters_.erase(from);
        Snapshot(clusters_.at(into));
        j = into;
        merged = true;
        break;
      }
    }
  }

  linalg::GaussianPosterior ModelOf(const Cluster& cluster) const {
    linalg::GaussianPosterior model(kDim, options_.lambda, 1);
    for (const UserId user : cluster.members) model.Add(users_.at(user).stats());
    return model;
  }

  ModelId ClusterOf(UserId user) const {
    for (const auto& [id, cluster] : clusters_) {
      if (cluster.members.contains(user)) return id;
    }
    return 0;
  }

  const std::map<ModelId, Cluster>& clusters() const { return clusters_; }

  std::size_t splits_by_estimate = 0;
  std::size_t splits_by_frequency = 0;
  std::size_t mergers = 0;

 private:
  double Served(UserId user) const { return static_cast<double>(users_.at(user).stats().m()); }

  int ReasonToSplit(UserId i, const Cluster& cluster) const {
    if (cluster.members.size() == 1) return 0;
    if (Distance(users_.at(i).mean(), cluster.phase_mean) >
        options_.alpha_theta * (F(Served(i)) + F(cluster.phase_served))) {
      return 1;
    }
    const auto t = static_cast<double>(t_);
    for (const UserId k : cluster.members) {
      if (std::abs(Served(i) / t - Served(k) / t) > 2 * options_.alpha_p * F(t)) return 2;
    }
    return 0;
  }

  bool ShouldMerge(const Cluster& a, const Cluster& b) const {
    for (const Cluster* cluster : {&a, &b}) {
      if (cluster->members.empty()) return false;
      for (const UserId user : cluster->members) {
        if (!checked_.contains(user)) return false;
      }
    }
    const linalg::GaussianPosterior first = ModelOf(a);
    const linalg::GaussianPosterior second = ModelOf(b);
    const auto T1 = static_cast<double>(first.stats().m());
    const auto T2 = static_cast<double>(second.stats().m());
    const auto t = static_cast<double>(t_);
    const double p1 = T1 / static_cast<double>(a.members.size()) / t;
    const double p2 = T2 / static_cast<double>(b.members.size()) / t;
    return Distance(first.mean(), second.mean()) < options_.alpha_theta / 2 * (F(T1) + F(T2)) &&
           std::abs(p1 - p2) < options_.alpha_p * F(t);
  }

  void Snapshot(Cluster& cluster) const {
    const linalg::GaussianPosterior model = ModelOf(cluster);
    cluster.phase_mean.assign(model.mean().begin(), model.mean().end());
    cluster.phase_served = static_cast<double>(model.stats().m());
  }

  SClubOptions options_;
  std::map<UserId, linalg::GaussianPosterior> users_;
  std::map<ModelId, Cluster> clusters_;
  ModelId next_ = 1;
  std::size_t phase_ = 0;
  std::size_t left_ = 0;
  std::size_t t_ = 0;
  std::set<UserId> checked_;
};

ModelId ModelOf(const Policy& policy, UserId user) {
  return policy.Choose(user, {std::vector<double>(kDim, 1), kDim}, {}).model;
}

TEST(SClubTest, ClustersEqualThoseOfAPlainImplementation) {
  const SClubOptions options{.alpha_theta = 0.9, .alpha_p = 0.3};
  const auto policy = MakeSClub(kDim, options);
  PlainSClub plain(options);
  for (std::size_t t = 0; t < 5000; ++t) {
    const Visit visit = VisitAt(t, 30);
    const Decision decision = policy->Choose(visit.user, {visit.arms, kDim}, {1, t});
    const ModelId cluster = plain.ClusterOf(visit.user);
    ASSERT_EQ(decision.model, cluster) << "at " << t;
    const linalg::GaussianPosterior model = plain.ModelOf(plain.clusters().at(cluster));
    double mean = 0;
    for (std::size_t k = 0; k < kDim; ++k) mean += decision.features[k] * model.mean()[k];
    ASSERT_NEAR(decision.mean, mean, 1e-9) << "at " << t;
    ASSERT_NEAR(decision.width, std::sqrt(model.Variance(decision.features)), 1e-9);

    policy->Learn(decision, Reward(decision, visit.noise), {1, t});
    plain.Learn(decision, Reward(decision, visit.noise));
    ASSERT_EQ(policy->model_count(), plain.clusters().size()) << "at " << t;
    for (const auto& [id, members] : plain.clusters()) {
      for (const UserId user : members.members) ASSERT_EQ(ModelOf(*policy, user), id) << "at " << t;
    }
  }
  // Otherwise it would not be much of a test.
  EXPECT_GT(plain.splits_by_estimate, 20);
  EXPECT_GT(plain.splits_by_frequency, 5);
  EXPECT_GT(plain.mergers, 20);
}

TEST(SClubTest, EqualsUniformLinUcbIfNothingSplits) {
  const auto policy = MakeSClub(kDim, {.alpha = 0.6, .alpha_theta = 1e6, .alpha_p = 1e6});
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

TEST(SClubTest, EqualsLinUcbForEachUserIfAllSplit) {
  const auto policy = MakeSClub(kDim, {.alpha = 0.6, .alpha_theta = 0});
  const auto linucb = MakeLinUcb(kDim, LinUcbOptions{.alpha = 0.6});
  std::set<UserId> known;
  for (std::size_t t = 0; t < 1000; ++t) {
    const Visit visit = VisitAt(t, 20);
    const Decision mine = policy->Choose(visit.user, {visit.arms, kDim}, {1, t});
    const Decision theirs = linucb->Choose(visit.user, {visit.arms, kDim}, {1, t});
    if (!known.insert(visit.user).second) {
      ASSERT_EQ(mine.arm, theirs.arm) << "at " << t;
      ASSERT_EQ(mine.score, theirs.score) << "at " << t;
    }
    policy->Learn(mine, Reward(mine, visit.noise), {1, t});
    linucb->Learn(mine, Reward(mine, visit.noise), {1, t});
    ASSERT_EQ(policy->model_count(), known.size());
  }
}

TEST(SClubTest, FrequencyAloneSplitsUsersOfOneKind) {
  const auto policy = MakeSClub(kDim, {.alpha_theta = 1e6, .alpha_p = 1});
  for (std::size_t t = 0; t < 1000; ++t) {
    const Visit visit = VisitAt(t, 20);
    const UserId user = t % 10 == 0 ? 3 : 6;
    const Decision decision = policy->Choose(user, {visit.arms, kDim}, {1, t});
    policy->Learn(decision, Reward(decision, visit.noise), {1, t});
  }
  EXPECT_NE(ModelOf(*policy, 3), ModelOf(*policy, 6));
}

TEST(SClubTest, WithFewChecksEveryPairStillGetsItsTurn) {
  // At first everybody is alone; under a loose bound, each kind comes together again.
  const auto apart = MakeSClub(kDim, {.alpha_theta = 0, .checks = 1});
  const auto joined = MakeSClub(kDim, {.alpha_theta = 2.5, .checks = 1});
  Play(*apart, 15, 0, 600);
  EXPECT_EQ(apart->model_count(), 15);
  const std::string saved = Saved(*apart);
  ByteReader in(saved);
  joined->LoadState(in);
  ASSERT_TRUE(in.ok()) << in.status().ToString();
  Play(*joined, 15, 600, 3000);
  EXPECT_EQ(joined->model_count(), 3);
  for (UserId user = 0; user < 15; ++user) {
    EXPECT_EQ(ModelOf(*joined, user), ModelOf(*joined, user % 3)) << user;
  }
  // Newcomers are in cluster 0, whatever has become of it.
  const std::vector<double> arm(kDim, 1);
  const Decision newcomer = joined->Choose(1000, {arm, kDim}, {});
  EXPECT_EQ(newcomer.model, 0);
  bool same_model_as_a_member = false;
  for (UserId user = 0; user < 3; ++user) {
    const Decision member = joined->Choose(user, {arm, kDim}, {});
    same_model_as_a_member |= member.model == 0 && member.score == newcomer.score;
  }
  EXPECT_TRUE(same_model_as_a_member);
}

TEST(SClubTest, ForgetTakesTheDataOut) {
  for (const double alpha_theta : {0.0, 0.7, 1e6}) {
    const auto policy = MakeSClub(kDim, {.alpha_theta = alpha_theta, .alpha_p = 10});
    std::map<UserId, linalg::GaussianPosterior> data;
    for (std::size_t t = 0; t < 1500; ++t) {
      const Visit visit = VisitAt(t, 12);
      const Decision decision = policy->Choose(visit.user, {visit.arms, kDim}, {1, t});
      policy->Learn(decision, Reward(decision, visit.noise), {1, t});
      data.try_emplace(visit.user, kDim, 0.1, 1.0)
          .first->second.Add(decision.features, Reward(decision, visit.noise));
    }
    for (const UserId forgotten : {3, 0, 7, 11}) {
      EXPECT_TRUE(policy->Forget(forgotten));
      EXPECT_FALSE(policy->Forget(forgotten));
      data.erase(forgotten);
      std::map<ModelId, linalg::GaussianPosterior> models;
      for (const auto& [user, posterior] : data) {
        models.try_emplace(ModelOf(*policy, user), kDim, 0.1, 1.0)
            .first->second.Add(posterior.stats());
      }
      for (const auto& [user, posterior] : data) {
        const Decision decision = policy->Choose(user, {std::vector<double>(kDim, 1), kDim}, {});
        const linalg::GaussianPosterior& model = models.at(decision.model);
        EXPECT_NEAR(decision.width, std::sqrt(model.Variance(decision.features)), 1e-9);
      }
    }
    // To the last.
    while (!data.empty()) {
      EXPECT_TRUE(policy->Forget(data.begin()->first));
      data.erase(data.begin());
    }
    EXPECT_EQ(policy->model_count(), 1);
    EXPECT_EQ(policy->Choose(1, {std::vector<double>(kDim, 1), kDim}, {}).mean, 0);
    Play(*policy, 12, 0, 100);
  }
}

TEST(SClubTest, AUserOfAnotherScaleLeavesNoRounding) {
  const auto policy = MakeSClub(kDim, {.alpha_theta = 1e30, .alpha_p = 1e30});
  linalg::GaussianPosterior others(kDim, 0.1, 1);
  for (std::size_t t = 0; t < 200; ++t) {
    const Visit visit = VisitAt(t, 10);
    Decision decision{.user = visit.user,
                      .features = {visit.arms.begin(), visit.arms.begin() + kDim}};
    policy->Learn(decision, visit.noise, {});
    others.Add(decision.features, visit.noise);
    decision.user = 77;
    for (double& feature : decision.features) feature *= 1e10;
    policy->Learn(decision, visit.noise, {});
  }
  ASSERT_EQ(policy->model_count(), 1);
  EXPECT_TRUE(policy->Forget(77));
  const Decision decision = policy->Choose(0, {VisitAt(0, 10).arms, kDim}, {});
  EXPECT_NEAR(decision.width, std::sqrt(others.Variance(decision.features)), 1e-9);
}

TEST(SClubTest, SaveLoadContinueEqualsAnUninterruptedRun) {
  for (const std::size_t checks : {2, 1000}) {
    const SClubOptions options{.alpha_theta = 0.9, .alpha_p = 0.3, .checks = checks};
    for (const std::size_t stop : {0, 1, 50, 500, 2000}) {
      const auto policy = MakeSClub(kDim, options);
      Play(*policy, 30, 0, stop);
      policy->Forget(2);
      const std::string saved = Saved(*policy);
      const auto restored = MakeSClub(kDim, options);
      ByteReader in(saved);
      restored->LoadState(in);
      in.ExpectEnd();
      ASSERT_TRUE(in.ok()) << in.status().ToString();
      EXPECT_EQ(Saved(*restored), saved);
      const auto mine = Play(*policy, 30, stop, stop + 1500);
      const auto theirs = Play(*restored, 30, stop, stop + 1500);
      for (std::size_t t = 0; t < mine.size(); ++t) {
        ASSERT_EQ(mine[t].score, theirs[t].score);
        ASSERT_EQ(mine[t].model, theirs[t].model);
      }
      EXPECT_EQ(Saved(*restored), Saved(*policy));
    }
  }
}

TEST(SClubTest, DamagedStateIsReported) {
  const auto policy = MakeSClub(kDim, {.alpha_theta = 0.9});
  Play(*policy, 8, 0, 200);
  ASSERT_GT(policy->model_count(), 1);
  const std::string saved = Saved(*policy);
  const auto load = [](std::string_view bytes) {
    const auto loaded = MakeSClub(kDim, {.alpha_theta = 0.9});
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
  // The number of features (16 bytes), phase (4), what is left of it (8), observations (8), next
  // cluster (8), number of clusters (8), and the first of them.
  const auto with_byte = [&](std::size_t at, char value) {
    std::string damaged = saved;
    damaged[at] = value;
    return damaged;
  };
  EXPECT_FALSE(load(with_byte(16, 63)));
  EXPECT_FALSE(load(with_byte(28, 77))) << "observations";
  EXPECT_FALSE(load(with_byte(36, 1))) << "next cluster";
  EXPECT_FALSE(load(with_byte(52, 100))) << "cluster 0 is missing";
}

}  // namespace
}  // namespace codband
