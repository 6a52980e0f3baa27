#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "codband/policy/codband/belief.h"
#include "codband/policy/codband/change_window.h"
#include "codband/policy/codband/model_pool.h"
#include "codband/policy/codband/reward_noise.h"
#include "codband/policy/item_effects.h"
#include "codband/policy/learn_memo.h"

namespace codband {

// What was taken from a reward as the item's own, and what it would have been for a user on another
// model: a group's favourites are no favourites of others.
struct ItemOffset {
  double taken = 0;
  const ItemEffects::Asked* item = nullptr;  // nullptr: the same on all models

  double On(ModelId model) const { return item == nullptr ? taken : item->MeanOn(model); }
};

// Bayesian change points over the shared pool: the forward filter of a hidden Markov model whose
// states are the models of the pool. Between two observations a user stays, or changes with the
// hazard h to another model by its prior weight π_k, or to a fresh parameter that no model knows,
// π_0:
//
//   a_k ← p(r | k) [(1 - h) a_k + h π_k (Z - a_k)],     Z = Σ_k a_k + F the evidence so far,
//   F   = Σ_j h π_0 Z_{t-j} p(last j observations | prior of a model).
//
// p(r | k) is the posterior predictive density of model k (reward_noise.h). A fresh parameter is
// scored exactly: the joint densities of the last 1, 2, … observations under the prior all come
// from one Cholesky factor of their Gram matrix, newest first. A fresh parameter that began before
// the window is not seen; by then it has long become a model.
// Adams & MacKay (2007) keep a posterior over run lengths; here the models hold the parameters, and
// only a fresh one needs its run length.
//
// A model that the belief does not list and that has less than kNegligible of the weight of the
// likeliest listed one has none: the belief would drop it anyway, and evidence is off by at most
// K kNegligible of itself. Most such models are known by a bound on their density, and are not
// scored: what is scored changes nothing but the time.
//
// O(K d) an observation, O(d²) for each model that may matter and O(w² d) for a window of w. Owns
// scratch memory: no allocation once the pool has stopped growing. Not thread-safe.
class ChangeFilter {
 public:
  static constexpr double kNegligible = 1e-7;

  ChangeFilter(std::size_t dim, std::size_t window);

  // One more observation of a user, not yet in the window. `prior_weights` has a place for every
  // model and a last one for a fresh parameter; they add up to 1. Returns the log density of r
  // given all that came before. With a memo, scores are recorded or replayed. `item`: what was
  // taken from r.
  double Update(const ModelPool& pool, const RewardNoise& noise, double hazard,
                std::span<const double> prior_weights, const ChangeWindow& window,
                std::span<const double> x, double r, Belief& belief, LearnMemo* memo = nullptr,
                const ItemOffset& item = {});

  // After Update: how much likelier the reward is if the user changed just before it than if not.
  double change_ratio() const { return change_ratio_; }
  // After Update: ln p(the last j + 1 observations | a fresh parameter), the newest included.
  std::span<const double> fresh_log_densities() const { return fresh_; }

 private:
  // ln of each model's weight, in log_weights_, from what was believed before, in chances_.
  void ScoreModels(const ModelPool& pool, const RewardNoise& noise, const Belief& belief,
                   std::span<const double> x, double r, const ItemOffset& item);
  void ScoreFresh(const linalg::GaussianPosterior& prior, const RewardNoise& noise,
                  const ChangeWindow& window, std::span<const double> x, double r, double offset);

  std::size_t dim_;
  std::size_t capacity_;
  std::vector<double> chances_;
  std::vector<double> log_weights_;
  std::vector<double> stayed_;  // the share of each model's chance that is of no change just now
  double change_ratio_ = 1;
  std::vector<std::size_t> listed_;
  // Of a fresh parameter: features, newest first, and the rows of the Cholesky factor of their Gram
  // matrix.
  std::vector<double> features_;
  std::vector<double> roots_;  // of the prior precision
  std::vector<double> factor_;
  std::vector<double> solved_;
  std::vector<double> fresh_;
};

// ln p(r | x, model): the posterior predictive density.
double LogPredictive(const linalg::GaussianPosterior& model, const RewardNoise& noise,
                     std::span<const double> x, double r, double offset = 0);
// The same where the item is what it is to users on the model.
double LogPredictive(const PoolModel& model, const RewardNoise& noise, std::span<const double> x,
                     double r, const ItemOffset& item);

}  // namespace codband
