#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "codband/base/bytes.h"
#include "codband/linalg/cholesky.h"
#include "codband/linalg/linear_prior.h"
#include "codband/policy/codband/column_groups.h"
#include "codband/policy/codband/model_evidence.h"
#include "codband/policy/codband/model_pool.h"

namespace codband {

// Learns the prior of a model from the models there are: the noise variance σ², the variance
// between models (as a precision λ, and another one for the intercept), and their common mean m. A
// new model then starts from what users have in common, and departs from it as far as models are
// seen to differ.
//
// Empirical Bayes, by fixed-point iterations of the evidence (MacKay 1992). With γ_k = d -
// tr(PΣ_k), how many directions of model k its data determine,
//   σ² = Σ_k |residuals|² / (n - Σ_k γ_k),      λ = Σ_k γ_k / Σ_k |μ_k - m|²,
//   m  = (P + Σ_k I_k)⁻¹ Σ_k PΣ_k c_k/σ²,       I_k = P - PΣ_kP  (the exact maximum given P and σ).
// Groups of features have a λ of their own (column_groups.h). The mean is shrunk by the λ of all: a
// name that everybody agrees on need not be one that is worth nothing.
// Each has a weak prior worth four observations, taken from the rewards' own variance and the
// features' own size, so that no unit has to be given: a quarter of the variance is noise.
//
// With `bounded`, models far beyond all others count as if they were less far (model_evidence.h).
//
// The prior is learned anew at growing intervals, so that the cost, O(K d³) each time, stays small
// beside that of the observations in between. Not thread-safe.
class PriorLearner {
 public:
  // `start_precision` and `start_deviation` are initial values; 0 takes them from the first reward.
  // The last of the `dim` features is an intercept if `intercept`.
  PriorLearner(std::size_t dim, bool intercept, bool bounded, double start_precision,
               double start_deviation);

  // An observation is about to come to the pool. Returns whether it was time to learn the prior
  // anew: then `prior`, which the models of the pool have, has changed, and the pool is to follow.
  // `click`: what one is worth where rewards are clicks or purchases (reward_noise.h), else 0.
  bool Observe(const ModelPool& pool, std::span<const double> x, double r, double click,
               linalg::LinearPrior& prior);

  // A user with so many observations has left the pool. If nobody is left it starts over.
  void Forget(const ModelPool& pool, std::uint64_t observations);
  // So many observations have come to the pool, and the prior was learned from them.
  void GoOn(const ModelPool& pool, std::uint64_t observations);
  // Learns out of turn. Precondition: `prior` is that of the models.
  void Relearn(const ModelPool& pool, double click, linalg::LinearPrior& prior);

  // The prior variance of feature j is weights[j] / λ from now on, all units being those of columns
  // divided by the root of their weights (column_scales.h). Empty: all are 1.
  void Weigh(std::span<const double> weights) { weights_.assign(weights.begin(), weights.end()); }

  // λ_g of a feature is groups().Factor(j) times the common λ.
  const ColumnGroups& groups() const { return groups_; }
  ColumnGroups& groups() { return groups_; }

  // Models have `dim` features from now on.
  void Grow(std::size_t dim);

  void Save(ByteWriter& out) const;
  void Load(ByteReader& in);

 private:
  void Start(std::span<const double> x, double r, linalg::LinearPrior& prior) const;
  void Learn(const ModelPool& pool, double click, linalg::LinearPrior& prior);
  void Iterate(const ModelPool& pool, double click, linalg::LinearPrior& prior);

  // The sums over all models; `models_` has each alone.
  ModelEvidence Accumulate(const ModelPool& pool, const linalg::LinearPrior& prior);
  void ReadCovariance(const PoolModel& model);
  void AddEvidence(const ModelPool& pool, std::size_t k, const linalg::LinearPrior& prior,
                   ModelEvidence& all);
  void AddToMean(const linalg::SufficientStats& stats, const linalg::LinearPrior& prior,
                 double weight);
  // The same sums once more, of `models_` as they are now.
  ModelEvidence Reweigh(const ModelPool& pool, const linalg::LinearPrior& prior);
  void LearnMean(linalg::LinearPrior& prior);

  double WeightOf(std::size_t j) const { return weights_.empty() ? 1 : weights_[j]; }
  void SetPrecision(double lambda, linalg::LinearPrior& prior) const;

  std::size_t dim_;
  linalg::LinearPrior before_;  // scratch
  std::vector<double> weights_;
  ColumnGroups groups_;
  bool intercept_;
  bool bounded_;
  double start_precision_;
  double start_deviation_;
  std::uint64_t count_ = 0;
  std::uint64_t next_ = 1;
  std::vector<ModelEvidence> models_;  // scratch
  EvidenceBounds bounds_;
  // Scratch: a covariance, Σ I_k, both packed, the factor of the latter, and a vector.
  std::vector<double> covariance_;
  std::vector<double> information_;
  linalg::CholeskyFactor factor_;
  std::vector<double> weighted_;
  std::vector<double> shrinkage_;
};

}  // namespace codband
