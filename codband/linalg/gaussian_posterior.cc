#include "codband/linalg/gaussian_posterior.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "codband/base/check.h"
#include "codband/linalg/covariance.h"
#include "codband/linalg/kernels.h"
#include "codband/linalg/low_rank.h"
#include "codband/linalg/packed.h"

namespace codband::linalg {
namespace {

// A factorisation costs as much as this share of its columns times an update, or a downdate.
constexpr std::size_t kColumnsAnUpdate = 12;
constexpr std::size_t kColumnsADowndate = 20;

}  // namespace

GaussianPosterior::GaussianPosterior(const LinearPrior& prior)
    : prior_precision_(prior.dim()),
      prior_information_(prior.dim()),
      stats_(prior.dim()),
      factor_(prior.dim(), 1),
      mean_(prior.dim()) {
  TakePrior(prior);
  Rebuild();
}

void GaussianPosterior::TakePrior(const LinearPrior& prior) {
  CODBAND_CHECK(prior.dim() == dim() && prior.mean.size() == dim());
  CODBAND_CHECK(std::isfinite(prior.noise_variance) && prior.noise_variance > 0);
  for (std::size_t i = 0; i < dim(); ++i) {
    CODBAND_CHECK(std::isfinite(prior.precision[i]) && prior.precision[i] > 0);
    CODBAND_CHECK(std::isfinite(prior.mean[i]));
    prior_precision_[i] = prior.precision[i];
    prior_information_[i] = prior.precision[i] * prior.mean[i];
  }
  noise_variance_ = prior.noise_variance;
}

void GaussianPosterior::Assign(const LinearPrior& prior, const SufficientStats& data) {
  CODBAND_CHECK(data.dim() == dim() && !data.of_columns());
  TakePrior(prior);
  stats_ = data;
  Rebuild();
}

void GaussianPosterior::SetPrior(const LinearPrior& prior) {
  TakePrior(prior);
  Rebuild();
}

void GaussianPosterior::Grow(const LinearPrior& prior, bool intercept) {
  prior_precision_.resize(prior.dim());
  prior_information_.resize(prior.dim());
  mean_.resize(prior.dim());
  TakePrior(prior);
  stats_.Grow(prior.dim(), intercept);
  factor_.Grow(prior.precision, intercept);
  ForgetVarianceShare();
  RefreshMean();
}

void GaussianPosterior::Add(std::span<const double> x, double r) {
  stats_.Add(x, r);
  Change(x, true);
}

void GaussianPosterior::Remove(std::span<const double> x, double r) {
  stats_.Remove(x, r);
  Change(x, false);
}

void GaussianPosterior::Change(std::span<const double> x, bool add) {
  if (++changes_since_rebuild_ >= kRebuildInterval) {
    Rebuild();
    return;
  }
  std::array<double, kMaxDimension> buffer;
  const std::span<double> scaled(buffer.data(), dim());
  const double scale = 1 / std::sqrt(noise_variance_);
  for (std::size_t i = 0; i < dim(); ++i) scaled[i] = scale * x[i];
  if (!add) ForgetVarianceShare();
  if (add) {
    factor_.Update(scaled);
  } else if (!factor_.Downdate(scaled)) {
    ++guarded_downdates_;
    Rebuild();
    return;
  }
  RefreshMean();
}

void GaussianPosterior::Add(const SufficientStats& data, const LowRank* directions) {
  stats_.Add(data);
  if (directions == nullptr || !ChangeBy(*directions, true)) Rebuild();
}

void GaussianPosterior::Remove(const SufficientStats& data, const LowRank* directions) {
  stats_.Remove(data);
  if (directions == nullptr || !ChangeBy(*directions, false)) Rebuild();
}

// False, with a factor that is to be rebuilt, where that costs less or a downdate would lose too
// many digits.
bool GaussianPosterior::ChangeBy(const LowRank& directions, bool add) {
  changes_since_rebuild_ += directions.rank();
  if ((add ? kColumnsAnUpdate : kColumnsADowndate) * directions.rank() > dim()) return false;
  if (changes_since_rebuild_ >= kRebuildInterval) return false;
  std::array<double, kMaxDimension> buffer;
  const std::span<double> x(buffer.data(), dim());
  const double scale = 1 / std::sqrt(noise_variance_);
  for (std::size_t i = 0; i < directions.rank(); ++i) {
    directions.ReadDirection(i, scale, x);
    if (add) {
      factor_.Update(x);
    } else if (!factor_.Downdate(x)) {
      ++guarded_downdates_;
      return false;
    }
  }
  ForgetVarianceShare();
  RefreshMean();
  return true;
}

void GaussianPosterior::Clear() {
  stats_.Clear();
  Rebuild();
}

void GaussianPosterior::Rebuild() {
  CODBAND_CHECK(factor_.Factorize(prior_precision_, 1 / noise_variance_, stats_.S()));
  changes_since_rebuild_ = 0;
  ForgetVarianceShare();
  RefreshMean();
}

void GaussianPosterior::ForgetVarianceShare() {
  variance_share_ = 1;
  share_known_at_ = 0;
}

// The largest eigenvalue of P^½ Λ⁻¹ P^½ is at most its trace.
void GaussianPosterior::RefreshVarianceShare(const Covariance* covariance) {
  const double trace = covariance != nullptr && covariance->known()
                           ? covariance->Trace(prior_precision_)
                           : factor_.InverseTrace(prior_precision_);
  // A margin for rounding; what is no number is no bound.
  variance_share_ = trace >= 0 ? std::min(1.0, 1.001 * trace) : 1;
  share_known_at_ = std::max<std::uint64_t>(stats_.m(), 1);
}

void GaussianPosterior::RefreshMean() {
  for (std::size_t i = 0; i < dim(); ++i) {
    mean_[i] = prior_information_[i] + stats_.c()[i] / noise_variance_;
  }
  factor_.SolveLower(mean_);
  explained_ = Dot(mean_, mean_);
  factor_.SolveTransposed(mean_);
  // Sums that differ by more than doubles can carry say nothing.
  if (!std::isfinite(explained_) || !AllWithin(mean_, kLargestParameter)) {
    std::ranges::fill(mean_, 0.0);
    explained_ = 0;
  }
}

void GaussianPosterior::Sample(RandomStream& random, double scale, std::span<double> theta) const {
  CODBAND_DCHECK(theta.size() == dim());
  random.FillNormal(theta);
  factor_.SolveTransposed(theta);
  for (std::size_t i = 0; i < dim(); ++i) theta[i] = mean_[i] + scale * theta[i];
}

std::size_t GaussianPosterior::SavedBytes(std::size_t dim) {
  return SufficientStats::SavedBytes(dim) + sizeof(double) * PackedSize(dim) +
         2 * sizeof(std::uint64_t);
}

void GaussianPosterior::Save(ByteWriter& out) const {
  // The factor is saved although the sums determine it: rank-one updates and a rebuild differ in
  // the last bits, and a restart must be bit-identical.
  stats_.Save(out);
  factor_.Save(out);
  out.U64(changes_since_rebuild_);
  out.U64(guarded_downdates_);
}

void GaussianPosterior::Load(ByteReader& in) {
  stats_.Load(in);
  factor_.Load(in);
  changes_since_rebuild_ = in.U64("changes since the last rebuild");
  guarded_downdates_ = in.U64("guarded downdates");
  ForgetVarianceShare();
  RefreshMean();
}

}  // namespace codband::linalg
