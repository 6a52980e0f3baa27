#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "codband/base/bytes.h"
#include "codband/base/random.h"
#include "codband/linalg/cholesky.h"
#include "codband/linalg/linear_prior.h"
#include "codband/linalg/sufficient_stats.h"

namespace codband::linalg {

class Covariance;
class LowRank;

// The posterior of the parameter θ of a linear model r = xᵀθ + noise, noise ~ N(0, σ²), given a set
// of observations and the prior θ ~ N(m, P⁻¹), P diagonal (linear_prior.h): the Gaussian with
//   precision  Λ = P + S/σ²,   information  b = Pm + c/σ²,   mean  μ = Λ⁻¹b.
// With P = λI, m = 0 and σ = 1 this is ridge regression: Λ = λI + S, μ the ridge estimate.
//
// Stores the sufficient statistics (sufficient_stats.h), the Cholesky factor of Λ, and μ. The
// statistics are authoritative; the factor follows by rank-one updates and is rebuilt from them
// when a downdate would lose too many digits, and every kRebuildInterval changes, so that rounding
// errors cannot accumulate however long a model lives.
//
// Only construction and copying allocate. Const functions of one object may run
// concurrently.
class GaussianPosterior {
 public:
  static constexpr std::uint64_t kRebuildInterval = 1 << 16;

  // The prior. Preconditions: 0 < dim ≤ kMaxDimension, the invariants of LinearPrior.
  explicit GaussianPosterior(const LinearPrior& prior);
  GaussianPosterior(std::size_t dim, double prior_precision, double noise_variance)
      : GaussianPosterior(LinearPrior::Isotropic(dim, prior_precision, noise_variance)) {}

  std::size_t dim() const { return mean_.size(); }
  std::span<const double> prior_precision() const { return prior_precision_; }      // P
  std::span<const double> prior_information() const { return prior_information_; }  // Pm
  double noise_variance() const { return noise_variance_; }
  const SufficientStats& stats() const { return stats_; }
  const CholeskyFactor& factor() const { return factor_; }              // of Λ
  std::span<const double> mean() const { return mean_; }                // μ
  double log_determinant() const { return factor_.log_determinant(); }  // ln|Λ|
  double explained() const { return explained_; }                       // bᵀΛ⁻¹b

  // Adds or removes one observation, O(d²). Preconditions: x.size() == dim(), all finite; for
  // Remove, the observation was added before.
  void Add(std::span<const double> x, double r);
  void Remove(std::span<const double> x, double r);

  // A batch of observations, O(d³); O(r d²) where the r directions that they span (low_rank.h) are
  // given and few. Precondition for Remove: they were added before.
  void Add(const SufficientStats& data, const LowRank* directions = nullptr);
  void Remove(const SufficientStats& data, const LowRank* directions = nullptr);

  // Resets to the prior.
  void Clear();

  // Replaces the prior by one of the same dimension and the observations by `data`, over all
  // columns, O(d³).
  void Assign(const LinearPrior& prior, const SufficientStats& data);

  // Keeps the observations and replaces the prior by one of the same dimension, O(d³).
  void SetPrior(const LinearPrior& prior);

  // Keeps the observations, in which the features that `prior` has more were 0; they come before
  // the last feature if that is an intercept. Exact: as if they had always been there. On the
  // features there are, `prior` is the prior that this has. O(d²).
  void Grow(const LinearPrior& prior, bool intercept);
  // The same for an isotropic prior without an intercept.
  void Grow(std::size_t dim) {
    Grow(LinearPrior::Isotropic(dim, prior_precision_[0], noise_variance_), false);
  }

  // Corrects the sums by a difference of the order of rounding, which the factor may ignore; the
  // mean follows the sums, as it does after Load.
  void Correct(const SufficientStats& from, const SufficientStats& to) {
    stats_.Correct(from, to);
    RefreshMean();
  }

  // The variance of xᵀθ, xᵀΛ⁻¹x; the second overload takes every row of a row-major matrix.
  double Variance(std::span<const double> x) const { return factor_.InverseQuadratic(x); }
  void Variances(std::span<const double> rows, std::span<double> out) const {
    factor_.InverseQuadratics(rows, out);
  }
  // The same of rows that may lack the last feature, an intercept, and what these variances are
  // under the prior, without the intercept's.
  void Variances(std::span<const double> rows, std::span<double> out,
                 std::span<double> prior) const {
    factor_.InverseQuadratics(rows, out, {.entries = prior_precision_, .out = prior});
  }

  // A bound on variances that needs no O(d²): xᵀΛ⁻¹x ≤ variance_share() · xᵀP⁻¹x for every x. The
  // share is at most 1, that of the prior. RefreshVarianceShare() brings it close to what is known,
  // O(d) by the covariance where it is known, O(d³) without; observations that are added keep it
  // valid, all other changes set it back to 1.
  double variance_share() const { return variance_share_; }
  void RefreshVarianceShare(const Covariance* covariance = nullptr);
  // Whether refreshing is worth it: never since the last such change, or half as much was known.
  bool VarianceShareIsOld() const { return stats_.m() >= 2 * share_known_at_; }

  // Draws θ ~ N(μ, scale² Λ⁻¹), O(d²). Consumes d normals of the stream.
  void Sample(RandomStream& random, double scale, std::span<double> theta) const;

  // The number of downdates that were replaced by a rebuild.
  std::uint64_t guarded_downdates() const { return guarded_downdates_; }

  std::size_t HeapBytes() const {
    return codband::HeapBytes(prior_precision_) + codband::HeapBytes(prior_information_) +
           stats_.HeapBytes() + factor_.HeapBytes() + codband::HeapBytes(mean_);
  }

  static std::size_t SavedBytes(std::size_t dim);
  void Save(ByteWriter& out) const;
  // Precondition: constructed with the same settings as the one that was saved.
  void Load(ByteReader& in);

 private:
  void TakePrior(const LinearPrior& prior);
  void Change(std::span<const double> x, bool add);
  bool ChangeBy(const LowRank& directions, bool add);
  void Rebuild();
  void RefreshMean();
  void ForgetVarianceShare();

  std::vector<double> prior_precision_;
  std::vector<double> prior_information_;
  double noise_variance_ = 1;
  SufficientStats stats_;
  CholeskyFactor factor_;
  std::vector<double> mean_;
  double explained_ = 0;
  double variance_share_ = 1;
  std::uint64_t share_known_at_ = 0;  // observations; both follow from the rest, and are not saved
  std::uint64_t changes_since_rebuild_ = 0;
  std::uint64_t guarded_downdates_ = 0;
};

}  // namespace codband::linalg
