#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "codband/base/bytes.h"
#include "codband/base/random.h"
#include "codband/policy/codband/likelihood.h"
#include "codband/policy/codband/model_pool.h"
#include "codband/policy/codband/model_prior.h"
#include "codband/policy/codband/period_ledger.h"
#include "codband/policy/codband/reward_noise.h"
#include "codband/policy/codband/user_record.h"
#include "codband/policy/codband/young_users.h"
#include "codband/policy/learn_memo.h"
#include "codband/policy/paged_user_table.h"
#include "codband/policy/user_graph.h"

namespace codband {

struct CoDBandOptions;

// Which model each period is assigned to: the conditional posterior of the paper's Eq. 5,
//   p(z = k | D) ∝ p(D | k)^t p(z = k),
// with a likelihood (likelihood.h), a model prior (model_prior.h) and the concentration α0, and the
// collapsed Gibbs sampler over it. The exponent t is 1, or less for clicks (reward_noise.h).
// Owns scratch memory of learning. Const functions may run concurrently, the others not.
class Assignment {
 public:
  // All but the options outlive this.
  Assignment(const CoDBandOptions& options, ModelPool& pool, PeriodLedger& ledger,
             PagedUserTable<UserRecord>& users);

  const Likelihood& likelihood() const { return *likelihood_; }
  const ModelPrior& model_prior() const { return model_prior_; }
  double concentration() const { return concentration_; }  // α0
  YoungUsers& young_users() { return young_users_; }
  const YoungUsers& young_users() const { return young_users_; }
  // The record of a user other than the one who is learned from, to resample; nullptr if there is
  // none, or if it cannot be read: one unreadable record must not affect other users. The second
  // copy repeats the decision of the first.
  UserRecord* FindNeighbour(UserId id, LearnMemo* memo);

  // Likelihoods of clicks are tempered from now on.
  void TemperClicks(const RewardNoise* noise) { tempered_ = noise; }

  // p(z = k), the prior chance of each model and, last, of a new one (Eq. 3). The user's own period
  // does not count; `user` is nullptr for one without a record.
  void PriorChances(UserId id, const UserRecord* user, std::vector<double>& out) const;

  // p(z = k | D) for each model and, last, for a new one: what Resample draws from. The likelihood
  // and `prior` are the caller's memory, so that calls may run concurrently. Preconditions: the
  // user's model is in the pool, D is not empty, out.size() == pool size + 1.
  void Posterior(UserId id, const UserRecord& user, Likelihood& likelihood,
                 std::vector<double>& prior, std::span<double> out) const;

  // Whether a user who was on `model` before D is likelier to be on any other with D, by the hazard
  // and the prior, than still there. Preconditions: as of Posterior; D is not on `model`.
  bool HasLeft(UserId id, const UserRecord& user, std::size_t model, double hazard);

  // Line 9 of Algorithm 1: draws the model of a user without observations. kNoModel: a new one.
  ModelId DrawFirst(UserId id, EventKey key);

  // Algorithm 2, a collapsed Gibbs step: takes the user's period out of its model, draws the model
  // anew and adds the period to it. Staying costs nothing: only a move touches the pool. Returns
  // p(z = k | D) for the models after the move and, last, for a new one; valid until the next call.
  std::span<double> Resample(UserId id, UserRecord& user, RandomStream& random, LearnMemo* memo);

  // Counts an observation added to the period and its model.
  void CountObservation(Period& period);
  // It is known by now which model the user is on: the model prior learns from it.
  void LearnPrior(UserId id, const UserRecord& user);
  // Line 23 of Algorithm 1.
  void ResampleConcentration(EventKey key);

  // Models have `dim` features from now on.
  void Grow(std::size_t dim) { likelihood_->Grow(dim); }

  // The user has left the pool. If it is empty, everything starts over.
  void Forget(UserId id);

  // Credits of the model prior in other partitions (shared_pool.h).
  void ImportCredits(const ModelPrior::Credits& others) { model_prior_.SetOthers(others); }

  // Where a policy becomes partitions, or partitions one policy (SharedPool::Split and Join).
  void SetOwnCredits(const ModelPrior::Credits& own) { model_prior_.SetOwn(own); }
  void SetConcentration(double concentration) { concentration_ = concentration; }

  // α0 stands by itself in the saved state.
  void SaveConcentration(ByteWriter& out) const { out.Double(concentration_); }
  void LoadConcentration(ByteReader& in);
  void Save(ByteWriter& out) const;
  void Load(ByteReader& in);

 private:
  // Friends beyond this many do not count: enough to know which models they like.
  static constexpr std::size_t kMostFriends = 64;
  using FriendModels = std::array<ModelId, kMostFriends>;

  Visitor MakeVisitor(UserId id, const UserRecord* user, FriendModels& buffer) const;
  double LikelihoodExponent() const;
  // The same as Posterior up to a constant, as logarithms.
  void LogPosterior(UserId id, const UserRecord& user, Likelihood& likelihood,
                    std::vector<double>& prior, std::span<double> out) const;

  ModelPool& pool_;
  PeriodLedger& ledger_;
  PagedUserTable<UserRecord>& users_;
  const UserGraph* friends_;
  const RewardNoise* tempered_ = nullptr;  // nullptr: likelihoods count in full
  double a_;
  double b_;
  std::unique_ptr<Likelihood> likelihood_;
  ModelPrior start_prior_;
  ModelPrior model_prior_;
  double concentration_;
  YoungUsers young_users_;

  // Scratch.
  std::vector<double> prior_chances_;
  std::vector<double> chances_;
};

}  // namespace codband
