#include "codband/policy/baselines/sclub.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "codband/base/check.h"
#include "codband/linalg/gaussian_posterior.h"
#include "codband/policy/baselines/club.h"
#include "codband/policy/baselines/group_model.h"
#include "codband/policy/common_params.h"
#include "codband/policy/scoring.h"
#include "codband/policy/user_table.h"

namespace codband {
namespace {

constexpr ModelId kFirstCluster = 0;
constexpr std::uint32_t kLastPhase = 62;  // 2^62 observations: never

struct Member {
  std::uint64_t served;  // T
  UserId user;

  friend auto operator<=>(const Member&, const Member&) = default;
};

struct Cluster {
  ModelId id;
  GroupModel model;                // of all observations of the members
  std::vector<double> phase_mean;  // θ̃: the estimate at the start of the phase
  std::uint64_t phase_served = 0;  // T̃: the observations behind it
  std::set<Member> members = {};   // so that the extreme frequencies are at the ends
  std::size_t checked = 0;         // how many of them were served in this phase
  std::size_t place = 0;           // among all clusters
  std::size_t cursor = 0;          // the place of the next one to be compared with; may be vacant

  std::uint64_t served() const { return model.observations(); }
  bool is_checked() const { return !members.empty() && checked == members.size(); }

  void StartPhase() {
    std::ranges::copy(model.posterior().mean(), phase_mean.begin());
    phase_served = served();
  }
};

struct SClubUser {
  linalg::GaussianPosterior ridge;  // of the user's own observations
  Cluster* cluster;
  std::uint32_t checked_phase = 0;  // the last phase in which the user was served
};

// Whether ‖a - b‖ < radius. Stops as soon as a prefix of the features decides.
bool AreNear(const double* a, const double* b, std::size_t dim, double radius) {
  if (!(radius > 0)) return false;
  const double limit = radius * radius;
  double sum = 0;
  for (std::size_t i = 0; i < dim;) {
    const std::size_t end = std::min(i + 4, dim);
    for (; i < end; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
    if (!(sum < limit)) return false;
  }
  return true;
}

class SClub final : public Policy {
 public:
  SClub(std::size_t dim, const SClubOptions& options)
      : Policy(dim), options_(options), prior_(dim, options.lambda, 1), first_(&MakeCluster()) {}

  bool Forget(UserId user) override {
    const SClubUser* found = users_.Find(user);
    if (found == nullptr) return false;
    Cluster& cluster = *found->cluster;
    const linalg::SufficientStats& data = found->ridge.stats();
    served_ -= data.m();
    cluster.checked -= found->checked_phase == phase_;
    cluster.members.erase({data.m(), user});
    TakeOut(cluster, data);
    users_.Erase(user);
    if (cluster.members.empty() && &cluster != first_) {
      Remove(cluster);
    } else {
      cluster.StartPhase();  // the estimate at the phase's start has the user's data in it, too
      Refresh(cluster);
    }
    return true;
  }

  std::size_t model_count() const override { return clusters_.size(); }

  void DoSaveState(ByteWriter& out) const override {
    out.U32(phase_);
    out.U64(phase_left_);
    out.U64(served_);
    out.U64(next_cluster_);
    out.U64(clusters_.size());
    for (const auto& cluster : clusters_) {
      out.U64(cluster->id);
      cluster->model.Save(out);
      out.Doubles(cluster->phase_mean);
      out.U64(cluster->phase_served);
      out.U64(cluster->cursor);
      out.U64(cluster->members.size());
      for (const Member& member : cluster->members) {
        const SClubUser& user = *users_.Find(member.user);
        out.U64(member.user);
        out.U32(user.checked_phase);
        user.ridge.Save(out);
      }
    }
  }

  void DoLoadState(ByteReader& in) override {
    Load(in);
    if (in.ok()) return;
    // No half-loaded state.
    Clear();
    phase_ = 0;
    phase_left_ = served_ = next_cluster_ = 0;
    first_ = &MakeCluster();
  }

 private:
  void Clear() {
    users_ = {};
    clusters_.clear();
    first_ = nullptr;
  }

  void Load(ByteReader& in) {
    Clear();
    phase_ = in.U32("phase");
    phase_left_ = in.U64("observations left in the phase");
    served_ = in.U64("number of observations");
    const ModelId next_cluster = in.U64("next cluster");
    if (phase_ > kLastPhase || phase_left_ > std::uint64_t{1} << phase_) {
      in.Fail("phase", fmt::format("{} has {} observations left", phase_, phase_left_));
    }
    const std::size_t count = in.Count("number of clusters", GroupModel::SavedBytes(dim()));
    std::set<ModelId> ids;
    std::uint64_t served = 0;
    for (std::size_t c = 0; c < count && in.ok(); ++c) {
      Cluster& cluster = MakeCluster();
      LoadCluster(in, cluster);
      served += cluster.served();
      if (!ids.insert(cluster.id).second || cluster.id >= next_cluster) {
        in.Fail("cluster",
                fmt::format("{} appears twice, or is not below {}", cluster.id, next_cluster));
      }
      if (cluster.id == kFirstCluster) first_ = &cluster;
      if (cluster.id != kFirstCluster && cluster.members.empty()) {
        in.Fail("cluster", "has no members");
      }
    }
    if (first_ == nullptr) in.Fail("cluster", "0 is missing");
    if (served != served_) in.Fail("number of observations", "is not that of all clusters");
    next_cluster_ = next_cluster;
  }

  Propensity DoChoose(UserId user, ArmsView arms, EventKey, Decision& decision) const override {
    const SClubUser* found = users_.Find(user);
    const Cluster& cluster = found == nullptr ? *first_ : *found->cluster;
    decision.model = cluster.id;
    return ChooseByUpperBound(cluster.model.posterior(), options_.alpha, arms, decision);
  }

  LearnOutcome DoLearn(const Decision& decision, double reward, EventKey, LearnMemo*) override {
    if (phase_left_ == 0) StartPhase();
    --phase_left_;
    ++served_;
    SClubUser& user = users_.FindOrMake(decision.user, [&] {
      first_->members.insert({0, decision.user});
      return SClubUser{.ridge = prior_, .cluster = first_};
    });
    auto node = user.cluster->members.extract({user.ridge.stats().m(), decision.user});
    ++node.value().served;
    user.cluster->members.insert(std::move(node));
    user.ridge.Add(decision.features, reward);
    user.cluster->model.Add(decision.features, reward);
    if (ShouldSplit(user)) Split(decision.user, user);
    if (user.checked_phase != phase_) {
      user.checked_phase = phase_;
      ++user.cluster->checked;
    }
    Refresh(*user.cluster);
    for (Cluster* merged = user.cluster; merged != nullptr;) {
      Cluster* partner = FindPartner(*merged);
      merged = partner == nullptr ? nullptr : &Merge(*merged, *partner);
    }
    return {};
  }

  void StartPhase() {
    CODBAND_CHECK(phase_ < kLastPhase);
    ++phase_;
    phase_left_ = std::uint64_t{1} << phase_;
    for (const auto& cluster : clusters_) {
      cluster->checked = 0;
      cluster->StartPhase();
      Refresh(*cluster);
    }
  }

  bool ShouldSplit(const SClubUser& user) const {
    const Cluster& cluster = *user.cluster;
    if (cluster.members.size() < 2) return false;
    const std::uint64_t served = user.ridge.stats().m();
    const double radius =
        options_.alpha_theta * (EstimateSpread(served) + EstimateSpread(cluster.phase_served));
    if (SquaredDistance(user.ridge.mean(), cluster.phase_mean) > radius * radius) return true;
    const std::uint64_t gap = std::max(served - cluster.members.begin()->served,
                                       cluster.members.rbegin()->served - served);
    return static_cast<double>(gap) >
           2 * options_.alpha_p * EstimateSpread(served_) * static_cast<double>(served_);
  }

  static double SquaredDistance(std::span<const double> a, std::span<const double> b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
  }

  void Split(UserId id, SClubUser& user) {
    Cluster& old = *user.cluster;
    Cluster& own = MakeCluster();
    own.members.insert(old.members.extract({user.ridge.stats().m(), id}));
    own.model.Reset(user.ridge);
    user.cluster = &own;
    if (user.checked_phase == phase_) {
      --old.checked;
      ++own.checked;
    }
    TakeOut(old, user.ridge.stats());
    Refresh(old);
  }

  // Subtracts the data of a former member from the cluster's. A single member's cluster has exactly
  // the member's own model.
  void TakeOut(Cluster& cluster, const linalg::SufficientStats& data) {
    if (cluster.members.size() == 1) {
      cluster.model.Reset(users_.Find(cluster.members.begin()->user)->ridge);
    } else if (!cluster.model.Remove(data)) {
      linalg::SufficientStats sum(dim());
      for (const Member& member : cluster.members) sum.Add(users_.Find(member.user)->ridge.stats());
      cluster.model.Reset(sum);
    }
  }

  // A checked cluster that the checked `cluster` should merge with.
  Cluster* FindPartner(Cluster& cluster) {
    if (!cluster.is_checked()) return nullptr;
    const std::size_t others = clusters_.size() - 1;
    const bool all = others <= options_.checks;
    std::size_t next = all ? 0 : cluster.cursor;
    Cluster* best = nullptr;
    for (std::size_t left = all ? others : options_.checks; left > 0; ++next) {
      if (next >= clusters_.size()) next = 0;
      if (next == cluster.place) continue;
      --left;
      if (!AreNear(&means_[cluster.place * dim()], &means_[next * dim()], dim(),
                   radii_[cluster.place] + radii_[next])) {
        continue;
      }
      Cluster& other = *clusters_[next];
      const bool same_frequency =
          std::abs(MeanServed(cluster) - MeanServed(other)) <
          options_.alpha_p * EstimateSpread(served_) * static_cast<double>(served_);
      if (same_frequency && (best == nullptr || other.id < best->id)) best = &other;
    }
    cluster.cursor = all ? 0 : next;
    return best;
  }

  static double MeanServed(const Cluster& cluster) {
    return static_cast<double>(cluster.served()) / static_cast<double>(cluster.members.size());
  }

  // The cluster with more members absorbs the other, and gets the smaller of the two numbers.
  Cluster& Merge(Cluster& a, Cluster& b) {
    Cluster& into = a.members.size() >= b.members.size() ? a : b;
    Cluster& from = &into == &a ? b : a;
    into.id = std::min(a.id, b.id);
    if (into.id == kFirstCluster) first_ = &into;
    for (const Member& member : from.members) users_.Find(member.user)->cluster = &into;
    into.members.merge(from.members);
    into.checked += from.checked;
    into.model.Add(from.model);
    into.StartPhase();
    Remove(from);
    Refresh(into);
    return into;
  }

  Cluster& MakeCluster() {
    if (spare_.empty()) {
      spare_.push_back(std::make_unique<Cluster>(
          Cluster{.id = 0, .model = GroupModel(prior_), .phase_mean = std::vector<double>(dim())}));
    }
    clusters_.push_back(std::move(spare_.back()));
    spare_.pop_back();
    Cluster& cluster = *clusters_.back();
    cluster.id = next_cluster_++;
    cluster.place = clusters_.size() - 1;
    Refresh(cluster);
    return cluster;
  }

  // Precondition: no members. The last cluster moves into its place.
  void Remove(Cluster& cluster) {
    const std::size_t place = cluster.place;
    cluster.model.Reset(prior_);  // what was forgotten must not linger in a spare cluster
    cluster.StartPhase();
    cluster.checked = cluster.cursor = 0;
    spare_.push_back(std::move(clusters_[place]));
    if (place + 1 < clusters_.size()) clusters_[place] = std::move(clusters_.back());
    clusters_.pop_back();
    if (place == clusters_.size()) return;
    clusters_[place]->place = place;
    Refresh(*clusters_[place]);
  }

  void DoGrow(std::size_t dim) override {
    prior_.Grow(dim);
    for (auto* const all : {&clusters_, &spare_}) {
      for (const auto& cluster : *all) {
        cluster->model.Grow(dim);
        cluster->phase_mean.resize(dim);
      }
    }
    users_.ForEach([&](UserId, SClubUser& user) { user.ridge.Grow(dim); });
    for (const auto& cluster : clusters_) Refresh(*cluster);
  }

  // Copies what FindPartner compares clusters by.
  void Refresh(const Cluster& cluster) {
    const std::span<const double> mean = cluster.model.posterior().mean();
    means_.resize(clusters_.size() * mean.size());
    radii_.resize(clusters_.size());
    std::ranges::copy(mean,
                      means_.begin() + static_cast<std::ptrdiff_t>(cluster.place * mean.size()));
    radii_[cluster.place] = cluster.is_checked()
                                ? options_.alpha_theta / 2 * EstimateSpread(cluster.served())
                                : -std::numeric_limits<double>::infinity();
  }

  void LoadCluster(ByteReader& in, Cluster& cluster) {
    cluster.id = in.U64("cluster");
    cluster.model.Load(in);
    in.Doubles("estimate at the start of the phase", cluster.phase_mean);
    cluster.phase_served = in.U64("observations at the start of the phase");
    cluster.cursor = in.U64("next cluster to compare with");
    const std::size_t count =
        in.Count("number of members", linalg::GaussianPosterior::SavedBytes(dim()));
    std::uint64_t served = 0;
    for (std::size_t i = 0; i < count && in.ok(); ++i) {
      const UserId id = in.U64("user");
      if (users_.Find(id) != nullptr) in.Fail("user", "appears twice");
      SClubUser& user =
          users_.FindOrMake(id, [&] { return SClubUser{.ridge = prior_, .cluster = &cluster}; });
      user.checked_phase = in.U32("phase of a user");
      if (user.checked_phase > phase_) in.Fail("phase of a user", "is yet to come");
      user.ridge.Load(in);
      served += user.ridge.stats().m();
      cluster.members.insert({user.ridge.stats().m(), id});
      cluster.checked += user.checked_phase == phase_;
    }
    if (cluster.served() != served) in.Fail("cluster", "has other observations than its members");
    Refresh(cluster);
  }

  SClubOptions options_;
  linalg::GaussianPosterior prior_;
  UserTable<SClubUser> users_;
  std::uint32_t phase_ = 0;
  std::uint64_t phase_left_ = 0;
  std::uint64_t served_ = 0;  // observations of all users
  ModelId next_cluster_ = kFirstCluster;
  std::vector<std::unique_ptr<Cluster>> clusters_;
  std::vector<std::unique_ptr<Cluster>> spare_;  // removed ones, to be used again
  // The estimate and the radius ½ α_θ F(T) of each cluster, by place; -∞ if not checked.
  std::vector<double> means_;
  std::vector<double> radii_;
  Cluster* first_;  // where new users go
};

}  // namespace

PolicyInfo SClubInfo() {
  const SClubOptions defaults;
  return {.name = "sclub",
          .summary = "sets of users that split and merge share linear models; never forgets",
          .paper = "Li, Chen, Li & Leung, IJCAI 2019",
          .shares_between_users = true,
          .params = {
              AlphaParam(defaults.alpha), LambdaParam(defaults.lambda),
              NumberParam("alpha_theta", "how far apart estimates may be within a cluster", 0, 1e6,
                          defaults.alpha_theta),
              NumberParam("alpha_p", "how far apart frequencies of visits may be within a cluster",
                          0, 1e6, defaults.alpha_p),
              WholeParam("checks", "clusters that are compared at an observation, at most", 1e9,
                         defaults.checks)}};
}

std::unique_ptr<Policy> MakeSClub(std::size_t dim, const SClubOptions& options) {
  return std::make_unique<SClub>(dim, options);
}

std::unique_ptr<Policy> MakeSClub(const ParamValues& params, const PolicyContext& context) {
  return MakeSClub(context.dim, {.alpha = params.Number("alpha"),
                                 .lambda = params.Number("lambda"),
                                 .alpha_theta = params.Number("alpha_theta"),
                                 .alpha_p = params.Number("alpha_p"),
                                 .checks = params.Integer("checks")});
}

}  // namespace codband
