#include "codband/policy/codband/prior_learner.h"

#include <algorithm>
#include <cmath>

#include "codband/base/check.h"
#include "codband/linalg/kernels.h"
#include "codband/linalg/packed.h"

namespace codband {
namespace {

constexpr double kPriorWeight = 4;         // observations
constexpr double kSignalShare = 0.75;      // of the rewards' variance, before anything is known
constexpr double kLeastNoise = 1e-6;       // of the rewards' variance
constexpr double kLeastClickNoise = 0.5;   // the same of clicks before there are any,
constexpr double kSurestClicks = 0.1;      // and however many there are
constexpr double kFewClicks = 64;          // so many halve it
constexpr double kInterceptShare = 0.1;    // how far apart intercepts are, in the same unit
constexpr double kSmallestSquare = 1e-30;  // of rewards that are not all but zero
constexpr double kIntercept = 1e-3;        // how little the common intercept is held to 0

constexpr std::uint64_t kFirst = 8;         // observations before the prior is learned
constexpr std::uint64_t kPerModel = 4;      // at least so many for each model in between,
constexpr std::uint64_t kGrowth = 8;        // and an eighth of all so far,
constexpr std::uint64_t kLongest = 20'000;  // but no more than this

// The mean of |x|² to go by: arms that are all but zero say nothing of it.
double FeatureSize(double mean_square) { return mean_square > 1e-12 ? mean_square : 1; }

// A few clicks are soon explained by as many features. Where there are many, what features foresee
// is no noise.
double LeastClickNoise(double clicks) {
  return std::max(kSurestClicks, kLeastClickNoise * kFewClicks / (kFewClicks + clicks));
}

// xᵀAx, A packed.
double Quadratic(std::span<const double> packed, std::span<const double> x) {
  double sum = 0;
  std::size_t at = 0;
  for (std::size_t j = 0; j < x.size(); ++j) {
    double column = 0.5 * packed[at] * x[j];
    for (std::size_t i = 1; i < x.size() - j; ++i) column += packed[at + i] * x[j + i];
    sum += 2 * column * x[j];
    at += x.size() - j;
  }
  return sum;
}

}  // namespace

PriorLearner::PriorLearner(std::size_t dim, bool intercept, bool bounded, double start_precision,
                           double start_deviation)
    : dim_(dim),
      intercept_(intercept),
      bounded_(bounded),
      start_precision_(start_precision),
      start_deviation_(start_deviation),
      covariance_(linalg::PackedSize(dim)),
      information_(linalg::PackedSize(dim)),
      factor_(dim, 1),
      weighted_(dim) {}

bool PriorLearner::Observe(const ModelPool& pool, std::span<const double> x, double r, double click,
                           linalg::LinearPrior& prior) {
  ++count_;
  if (count_ < next_) return false;
  if (count_ == 1) {
    next_ = kFirst;
    Start(x, r, prior);
  } else {
    GoOn(pool, count_);
    Learn(pool, click, prior);
  }
  return true;
}

void PriorLearner::GoOn(const ModelPool& pool, std::uint64_t observations) {
  count_ = observations;
  next_ = count_ + std::min(kLongest, std::max(kPerModel * pool.size(), count_ / kGrowth));
}

void PriorLearner::Forget(const ModelPool& pool, std::uint64_t observations) {
  if (pool.size() == 0) {
    count_ = 0;
    next_ = 1;
    groups_.Forget();
    return;
  }
  const std::uint64_t left = std::min(count_ - 1, observations);
  count_ -= left;
  next_ -= left;
}

void PriorLearner::Relearn(const ModelPool& pool, double click, linalg::LinearPrior& prior) {
  if (pool.size() > 0) Learn(pool, click, prior);
}

// All that is known of the scale is one reward.
void PriorLearner::Start(std::span<const double> x, double r, linalg::LinearPrior& prior) const {
  const double scale = r * r >= kSmallestSquare ? r * r : 1;
  const double squares = weights_.empty()
                             ? linalg::Dot(x, x) - (intercept_ ? 1 : 0)
                             : linalg::WeightedSquare(x.first(weights_.size()), weights_);
  const double feature_size = FeatureSize(squares);
  prior.noise_variance =
      start_deviation_ > 0 ? start_deviation_ * start_deviation_ : (1 - kSignalShare) * scale;
  SetPrecision(start_precision_ > 0 ? start_precision_ : feature_size / (kSignalShare * scale),
               prior);
  if (intercept_) prior.precision.back() = 1 / (kInterceptShare * scale);
}

// Of all features but the intercept.
void PriorLearner::SetPrecision(double lambda, linalg::LinearPrior& prior) const {
  for (std::size_t j = 0; j < dim_ - (intercept_ ? 1 : 0); ++j) {
    prior.precision[j] = groups_.Factor(j) * lambda / WeightOf(j);
  }
}

// Where features or rewards differ by more than doubles can carry, the prior stays as it is.
void PriorLearner::Learn(const ModelPool& pool, double click, linalg::LinearPrior& prior) {
  CODBAND_DCHECK(prior.dim() == dim_);
  before_ = prior;
  Iterate(pool, click, prior);
  if (prior.IsValid()) return;
  prior = before_;
  groups_.Undo();
}

void PriorLearner::Iterate(const ModelPool& pool, double click, linalg::LinearPrior& prior) {
  ModelEvidence evidence = Accumulate(pool, prior);
  // Nothing, or nothing but zeros, so far.
  if (!(evidence.reward_squares >= kSmallestSquare * evidence.observations)) return;
  // Clicks are bounded by themselves, and their noise differs as their rates do.
  const bool clicks = click > 0;
  if (bounded_ && !clicks && bounds_.Apply(models_)) evidence = Reweigh(pool, prior);
  const double reward_mean = evidence.reward_sum / evidence.observations;
  const double scale =
      std::max(evidence.reward_squares / evidence.observations - reward_mean * reward_mean,
               1e-6 * evidence.reward_squares / evidence.observations);
  const double feature_size = FeatureSize(evidence.feature_squares / evidence.observations);

  LearnMean(prior);
  const double least_noise =
      clicks ? LeastClickNoise(evidence.reward_squares / (click * click)) : kLeastNoise;
  prior.noise_variance = std::max((evidence.residuals + kPriorWeight * (1 - kSignalShare) * scale) /
                                      (evidence.degrees_of_freedom() + kPriorWeight),
                                  least_noise * scale);
  // Who is shown the same arm again and again has rewards that are all alike, and that says nothing
  // of how far arms are apart: their square does. (Of clicks the two are much the same.)
  const double square = clicks ? scale : evidence.reward_squares / evidence.observations;
  const double lambda =
      (evidence.determined[0] + kPriorWeight) /
      (evidence.distance[0] + kPriorWeight * kSignalShare * square / feature_size);
  groups_.Learn(lambda, [&](std::size_t k) { return models_[k].weight; });
  SetPrecision(lambda, prior);
  if (intercept_) {
    prior.precision.back() = (evidence.determined[1] + kPriorWeight) /
                             (evidence.distance[1] + kPriorWeight * kInterceptShare * scale);
  }
}

// Under the prior that the models have; Σ I_k and Σ PΣ_k c_k/σ² go to the scratch. All that is
// known of the models is in the sums of the pool: what is forgotten there is forgotten here.
ModelEvidence PriorLearner::Accumulate(const ModelPool& pool, const linalg::LinearPrior& prior) {
  ModelEvidence all;
  std::ranges::fill(information_, 0.0);
  std::ranges::fill(weighted_, 0.0);
  models_.assign(pool.size(), {});
  groups_.Start(pool.size());
  for (std::size_t k = 0; k < pool.size(); ++k) {
    ReadCovariance(pool.model(k));
    AddEvidence(pool, k, prior, all);
    AddToMean(pool.model(k).posterior.stats(), prior, 1);
  }
  return all;
}

void PriorLearner::ReadCovariance(const PoolModel& model) {
  if (model.covariance.known()) {
    std::ranges::copy(model.covariance.packed(), covariance_.begin());
  } else {
    model.posterior.factor().Invert(covariance_);
  }
}

void PriorLearner::AddEvidence(const ModelPool& pool, std::size_t k,
                               const linalg::LinearPrior& prior, ModelEvidence& all) {
  const std::size_t features = dim_ - (intercept_ ? 1 : 0);
  const linalg::GaussianPosterior& model = pool.model(k).posterior;
  const linalg::SufficientStats& stats = model.stats();
  const double residuals = std::max(0.0, stats.q() - 2 * linalg::Dot(stats.c(), model.mean()) +
                                             Quadratic(stats.S(), model.mean()));
  for (ModelEvidence* out : {&all, &models_[k]}) {
    out->observations += static_cast<double>(stats.m());
    if (intercept_) out->reward_sum += stats.c().back();
    out->reward_squares += stats.q();
    out->residuals += residuals;
    out->periods += static_cast<double>(pool.model(k).periods);
    for (std::size_t j = 0; j < dim_; ++j) {
      const std::size_t part = j < features ? 0 : 1;
      const std::size_t column = linalg::PackedColumn(dim_, j);
      const double deviation = model.mean()[j] - prior.mean[j];
      const double weight = part == 0 ? WeightOf(j) : 1;
      if (part == 0) out->feature_squares += weight * stats.S()[column];
      const double determined = std::max(0.0, 1 - prior.precision[j] * covariance_[column]);
      const double distance = deviation * deviation / weight;
      out->determined[part] += determined;
      out->distance[part] += distance;
      if (out != &all) groups_.Add(k, j, determined, distance);
    }
  }
}

// Adds a model whose covariance is in the scratch.
void PriorLearner::AddToMean(const linalg::SufficientStats& stats, const linalg::LinearPrior& prior,
                             double weight) {
  for (std::size_t j = 0; j < dim_; ++j) {
    const std::size_t column = linalg::PackedColumn(dim_, j);
    information_[column] += weight * prior.precision[j];
    for (std::size_t i = j; i < dim_; ++i) {
      const double covariance = weight * covariance_[column + i - j];
      information_[column + i - j] -= prior.precision[j] * covariance * prior.precision[i];
      weighted_[i] += prior.precision[i] * covariance * stats.c()[j] / prior.noise_variance;
      if (i != j) {
        weighted_[j] += prior.precision[j] * covariance * stats.c()[i] / prior.noise_variance;
      }
    }
  }
}

ModelEvidence PriorLearner::Reweigh(const ModelPool& pool, const linalg::LinearPrior& prior) {
  ModelEvidence all;
  std::ranges::fill(information_, 0.0);
  std::ranges::fill(weighted_, 0.0);
  for (std::size_t k = 0; k < pool.size(); ++k) {
    all.Add(models_[k]);
    ReadCovariance(pool.model(k));
    AddToMean(pool.model(k).posterior.stats(), prior, models_[k].weight);
  }
  return all;
}

// The common mean, itself shrunk to 0 as if by one more model there; its intercept hardly at all.
void PriorLearner::LearnMean(linalg::LinearPrior& prior) {
  shrinkage_ = prior.precision;
  if (groups_.common() > 0) {
    for (std::size_t j = 0; j < dim_ - (intercept_ ? 1 : 0); ++j) {
      shrinkage_[j] = groups_.common() / WeightOf(j);
    }
  }
  if (intercept_) shrinkage_.back() *= kIntercept;
  if (factor_.Factorize(shrinkage_, 1, information_)) {
    std::ranges::copy(weighted_, prior.mean.begin());
    factor_.SolveLower(prior.mean);
    factor_.SolveTransposed(prior.mean);
  }
}

void PriorLearner::Grow(std::size_t dim) {
  dim_ = dim;
  covariance_.resize(linalg::PackedSize(dim));
  information_.resize(linalg::PackedSize(dim));
  factor_.Resize(dim);
  weighted_.resize(dim);
}

void PriorLearner::Save(ByteWriter& out) const {
  out.U64(count_);
  out.U64(next_);
}

void PriorLearner::Load(ByteReader& in) {
  count_ = in.U64("observations of the prior");
  next_ = in.U64("next learning of the prior");
}

}  // namespace codband
