#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "codband/linalg/joint_likelihood.h"
#include "codband/policy/codband/change_filter.h"
#include "codband/policy/codband/codband.h"
#include "codband/policy/codband/likelihood.h"
#include "codband/policy/codband/model_prior.h"
#include "codband/policy/codband/prior_learner.h"
#include "codband/policy/codband/user_record.h"
#include "codband/policy/learn_memo.h"
#include "codband/policy/paged_user_table.h"

namespace codband {

// The policy of codband.h. Learning is in codband.cc, choosing in codband_choose.cc and
// codband_rank.cc, what is saved, loaded and forgotten in codband_state.cc.
class CoDBand final : public Policy, public PagedUsers {
 public:
  CoDBand(std::size_t dim, const CoDBandOptions& options);

  bool Forget(UserId user) override;
  std::size_t model_count() const override { return pool_.size(); }
  void SaveState(ByteWriter& out) const override;
  void LoadState(ByteReader& in) override;

  std::vector<ModelDescription> DescribeModels() const override;
  std::optional<UserDescription> DescribeUser(UserId user) const override;

  PagedUsers* paged_users() override { return this; }
  void SetArchive(const UserArchive* archive) override { users_.SetArchive(archive); }
  void SaveShared(ByteWriter& out) const override;
  void LoadShared(ByteReader& in) override;
  void SaveChangedUsers(const SaveUser& save) const override { users_.SaveChanged(save); }
  void MarkUsersSaved() override { users_.MarkSaved(); }
  void EvictUsers(std::size_t most) override { users_.Evict(most); }
  std::size_t users_in_memory() const override { return users_.size(); }
  Status CheckUsers(const std::function<Status(const VisitRecord&)>& all) const override;

 private:
  // Friends beyond this many do not count: enough to know which models they like.
  static constexpr std::size_t kMostFriends = 64;
  // Where the young users are, for resampling: the last that came.
  using LatelyYoung = std::array<UserId, 64>;

  // A feature vector as the models see it, on the stack.
  struct Features {
    std::array<double, linalg::kMaxDimension> values;
    std::size_t size;
    operator std::span<const double>() const { return {values.data(), size}; }
  };

  // What a user is thought to be before a choice among arms.
  struct Outlook {
    std::uint32_t period = 0;
    bool settled = false;             // on one model, by the rules of the presets
    std::span<const double> chances;  // of each model and last of a new one; the caller's thread's
    std::size_t likeliest = 0;        // index of the largest
    std::size_t own = 0;              // index of the user's model, from whose taste
    std::span<const double> departure = {};  // the user's departs by this; the caller's thread's
    double draw_chance = 1;                  // with which θ is drawn instead of averaged
  };

  // The points of the integral over Thompson's draw of θ, in pairs: a model's mean plus and minus
  // δ.
  struct ThompsonPoints {
    // Pairs that belong to one model.
    struct Share {
      std::size_t model;  // its index
      std::size_t begin;
      std::size_t end;
    };
    std::size_t pairs;
    std::vector<Share> shares;
    std::vector<double> deltas;  // feature by feature
  };

  Propensity DoChoose(UserId user, ArmsView arms, EventKey key, Decision& decision) const override;
  void DoRank(UserId user, ArmsView arms, EventKey key, Ranking& ranking) const override;
  LearnOutcome DoLearn(const Decision& decision, double reward, EventKey key,
                       LearnMemo* memo) override;

  bool bayes() const { return options_.detector == DetectorKind::kBayes; }
  std::size_t inner_dim() const { return pool_.prior().dim(); }
  Features Extend(std::span<const double> features) const;
  void Extend(std::span<const double> features, std::span<double> x) const;
  // The model at an index of the chances.
  const linalg::GaussianPosterior& Posterior(std::size_t k) const {
    return k < pool_.size() ? pool_.model(k).posterior : pool_.prior();
  }
  ModelId IdOf(std::size_t k) const { return k < pool_.size() ? pool_.model(k).id : kNoModel; }
  Outlook LookAt(UserId user, ArmsView arms) const;
  // How the user departs from the taste of model k; the caller's thread's. Empty: not at all.
  std::span<const double> DepartureFrom(std::size_t k, const UserRecord& user) const;
  void FindPoints(const Outlook& outlook, std::size_t pairs, ThompsonPoints& out) const;
  // What the user's taste is if it is that of model k, and on average.
  void ParameterOn(const Outlook& outlook, std::size_t k, std::span<double> mean) const;
  void MeanParameter(const Outlook& outlook, std::span<double> mean) const;
  UserRecord NewUser() const;

  // The models of the user's friends, on the stack.
  using FriendModels = std::array<ModelId, kMostFriends>;
  Visitor MakeVisitor(UserId id, const UserRecord* user, FriendModels& buffer) const;
  // The prior chances of the pool's models and of a new one for a user.
  void PriorChances(UserId id, const UserRecord* user, std::vector<double>& out) const;
  ModelId DrawFirstModel(UserId id, EventKey key) const;

  void LearnLate(UserRecord& user, const Decision& decision, std::span<const double> x,
                 double reward);
  void StartPeriod(UserRecord& user, const Decision& decision, EventKey key);
  bool ReviewDue(const UserRecord& user) const;
  void ContinueTrial(UserRecord& user, std::span<const double> x, double reward);
  bool departs() const { return bayes() && options_.departure == DepartureKind::kLearned; }
  void WeighDeparture(UserRecord& user, std::span<const double> x, double reward);
  void Review(UserId id, UserRecord& user, EventKey key, LearnMemo* memo);
  double LikelihoodTrust() const;
  void ResampleModel(UserId id, UserRecord& user, RandomStream& random, LearnMemo* memo);
  bool FollowBelief(UserRecord& user);
  std::size_t FindChange(const UserRecord& user, const PoolModel* target);
  bool WholePeriodMoved(const UserRecord& user, const PoolModel& target, std::size_t after);
  void ClosePeriod(UserRecord& user);
  void ForgetOldest(UserRecord& user);
  void Settle(UserRecord& user, ModelId model);
  using VisitUser = std::function<void(UserId, const UserRecord&)>;
  Status CheckRecords(const std::function<Status(const VisitUser&)>& all) const;
  // The user's current period is on `model` from now on; kNoModel for none.
  void Move(UserRecord& user, ModelId model);

  CoDBandOptions options_;
  std::size_t young_;
  linalg::LinearPrior prior_;
  ModelPool pool_;
  std::unique_ptr<Likelihood> likelihood_;
  WindowDetector detector_;
  ModelPrior model_prior_;
  PriorLearner learner_;
  ChangeRate change_rate_;
  RewardNoise noise_;
  DepartureEvidence departure_evidence_;
  double concentration_;
  LatelyYoung lately_young_{};
  PagedUserTable<UserRecord> users_;
  // Normal vectors, one after another, with which Rank integrates over θ.
  std::vector<double> points_;

  // Scratch of learning.
  std::vector<double> weights_;
  std::vector<double> chances_;
  linalg::JointLikelihood joint_;
  ChangeFilter filter_;
  linalg::GaussianPosterior
      reduced_;  // the user's model without observations that may have left it
  linalg::SufficientStats before_;
  linalg::SufficientStats rounded_;
};

// Normal vectors of `dim` numbers, the same always.
std::vector<double> IntegrationPoints(std::size_t dim);

// The prior that everything starts with.
linalg::LinearPrior StartPrior(std::size_t dim, const CoDBandOptions& options);

}  // namespace codband
