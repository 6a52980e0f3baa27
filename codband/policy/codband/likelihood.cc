#include "codband/policy/codband/likelihood.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <vector>

#include "codband/base/check.h"
#include "codband/linalg/joint_likelihood.h"
#include "codband/linalg/kernels.h"
#include "codband/linalg/packed.h"
#include "codband/policy/codband/codband.h"

namespace codband {
namespace {

class Joint final : public Likelihood {
 public:
  explicit Joint(std::size_t dim) : joint_(dim) {}

  void Grow(std::size_t dim) override { joint_ = linalg::JointLikelihood(dim); }

  void AddLogDensities(const ModelPool& pool, const Period& period, std::size_t own,
                       std::span<double> weights) override {
    const bool few = pool.size() <= ModelPool::kFewModels;
    chosen_ = {own, pool.size()};
    for (std::size_t k = 0; few && k < pool.size(); ++k) {
      if (k != own) chosen_.push_back(k);
    }
    Score(pool, period, own, weights);
    double least = -std::numeric_limits<double>::infinity();
    for (const double weight : {weights[own], weights.back()}) {
      if (std::isfinite(weight)) least = std::max(least, weight - kNegligible);
    }
    if (!few) {
      FindReaching(pool, period, own, least, weights);
      Score(pool, period, own, weights);
    }
    // Whether a bound rules it out or the density itself: the bound saves time and changes nothing.
    for (std::size_t k = 0; k < pool.size(); ++k) {
      if (k != own && weights[k] < least) weights[k] = -std::numeric_limits<double>::infinity();
    }
  }

 private:
  // e⁻⁵⁰ is less than the rounding of a sum of weights.
  static constexpr double kNegligible = 50;

  // Adds the log densities of the chosen models.
  void Score(const ModelPool& pool, const Period& period, std::size_t own,
             std::span<double> weights) {
    models_.clear();
    for (const std::size_t k : chosen_) {
      if (k == pool.size()) {
        models_.push_back({.posterior = &pool.prior(), .contains_data = false});
      } else {
        models_.push_back({.posterior = &pool.model(k).posterior,
                           .contains_data = k == own,
                           .covariance = &pool.model(k).covariance});
      }
    }
    densities_.resize(chosen_.size());
    joint_.LogDensities(period.data, models_, densities_);
    for (std::size_t i = 0; i < chosen_.size(); ++i) weights[chosen_[i]] += densities_[i];
  }

  // Chooses the other models whose weight may be `least`; those of the rest become -infinity. With
  // the sum of squares E of the residuals of model k, whose covariances X Σ_k Xᵀ have no larger
  // eigenvalue than their trace, which is at most t (GaussianPosterior::variance_share),
  //   ln p(D | k) ≤ -(m/2) ln(2πσ²) - ½ E / (σ² + t).
  void FindReaching(const ModelPool& pool, const Period& period, std::size_t own, double least,
                    std::span<double> weights) {
    const linalg::SufficientStats& data = period.data;
    const linalg::GaussianPosterior& prior = pool.prior();
    const double noise = prior.noise_variance();
    const double constant =
        -0.5 * static_cast<double>(data.m()) * std::log(2 * std::numbers::pi * noise);
    double trace = 0;  // of X P⁻¹ Xᵀ
    for (std::size_t i = 0; i < data.dim(); ++i) {
      trace += data.S()[linalg::PackedColumn(data.dim(), i)] /
               prior.prior_precision()[data.Place(i, prior.dim())];
    }
    mean_.resize(data.dim());
    product_.resize(data.dim());
    chosen_.clear();
    for (std::size_t k = 0; k < pool.size(); ++k) {
      if (k == own) continue;
      const linalg::GaussianPosterior& model = pool.model(k).posterior;
      for (std::size_t i = 0; i < data.dim(); ++i) {
        mean_[i] = model.mean()[data.Place(i, model.dim())];
      }
      linalg::Multiply(data.S(), mean_, product_);
      const double residuals =
          data.q() - 2 * linalg::Dot(data.c(), mean_) + linalg::Dot(product_, mean_);
      // A margin for what rounding takes from the squares.
      const double sure = residuals - 1e-9 * data.q();
      const double bound = constant - 0.5 * sure / (noise + model.variance_share() * trace);
      if (weights[k] + bound < least) {
        weights[k] = -std::numeric_limits<double>::infinity();
      } else {
        chosen_.push_back(k);
      }
    }
  }

  linalg::JointLikelihood joint_;
  std::vector<std::size_t> chosen_;
  std::vector<linalg::JointLikelihood::Model> models_;
  std::vector<double> densities_;
  std::vector<double> mean_;
  std::vector<double> product_;
};

class Product final : public Likelihood {
 public:
  Product(std::size_t dim, std::size_t memory) : memory_(memory), joint_(dim), recent_stats_(dim) {}

  std::size_t memory() const override { return memory_; }

  void Grow(std::size_t dim) override {
    joint_ = linalg::JointLikelihood(dim);
    recent_stats_ = linalg::SufficientStats(dim);
    without_data_.reset();
  }

  void AddLogDensities(const ModelPool& pool, const Period& period, std::size_t own,
                       std::span<double> weights) override {
    const linalg::JointLikelihood::Model prior{.posterior = &pool.prior(), .contains_data = false};
    double under_prior = 0;
    joint_.LogDensities(RecentStats(period), {&prior, 1}, {&under_prior, 1});
    weights.back() += under_prior;
    weights[own] += LogDensity(WithoutData(pool.model(own).posterior, period), *period.recent,
                               -std::numeric_limits<double>::infinity());
    // A bound rules most models out at a fraction of the cost.
    double best = std::max(weights.back(), weights[own]);
    for (std::size_t k = 0; k < pool.size(); ++k) {
      if (k == own) continue;
      weights[k] +=
          LogDensity(pool.model(k).posterior, *period.recent, best - kNegligible - weights[k]);
      best = std::max(best, weights[k]);
    }
  }

 private:
  // e⁻⁵⁰ is less than the rounding of a sum of weights.
  static constexpr double kNegligible = 50;

  const linalg::GaussianPosterior& WithoutData(const linalg::GaussianPosterior& model,
                                               const Period& period) {
    if (without_data_) {
      *without_data_ = model;  // same size: no allocation
    } else {
      without_data_.emplace(model);
    }
    without_data_->Remove(period.data);
    return *without_data_;
  }

  // Σ ln N(r | xᵀμ, σ² + xᵀΣx); -infinity if that is sure to be below `least`.
  double LogDensity(const linalg::GaussianPosterior& model, const RecentObservations& recent,
                    double least) {
    const std::size_t m = recent.size();
    const double noise = model.noise_variance();
    squares_.resize(m);
    // Whatever xᵀΣx is, the density is at most that of the variance that suits the residual best.
    double normalised = 0;
    linalg::LogProduct best_variances;
    for (std::size_t i = 0; i < m; ++i) {
      const double residual =
          recent.rewards()[i] -
          linalg::Dot(recent.features().subspan(i * model.dim(), model.dim()), model.mean());
      squares_[i] = residual * residual;
      const double best_variance = std::max(noise, squares_[i]);
      normalised += squares_[i] / best_variance;
      best_variances.Multiply(best_variance);
    }
    const double constant = static_cast<double>(m) * std::log(2 * std::numbers::pi);
    if (-0.5 * (constant + best_variances.Log() + normalised) < least) {
      return -std::numeric_limits<double>::infinity();
    }
    variances_.resize(m);
    model.Variances(recent.features(), variances_);
    normalised = 0;
    linalg::LogProduct variances;
    for (std::size_t i = 0; i < m; ++i) {
      normalised += squares_[i] / (noise + variances_[i]);
      variances.Multiply(noise + variances_[i]);
    }
    return -0.5 * (constant + variances.Log() + normalised);
  }

  const linalg::SufficientStats& RecentStats(const Period& period) {
    if (period.recent->size() == period.data.m()) return period.data;
    // From scratch: adding and subtracting at the ends of the window would let rounding pile up.
    recent_stats_.Clear();
    const std::size_t dim = recent_stats_.dim();
    for (std::size_t i = 0; i < period.recent->size(); ++i) {
      recent_stats_.Add(period.recent->features().subspan(i * dim, dim),
                        period.recent->rewards()[i]);
    }
    return recent_stats_;
  }

  std::size_t memory_;
  linalg::JointLikelihood joint_;
  linalg::SufficientStats recent_stats_;
  std::vector<double> squares_;
  std::vector<double> variances_;
  std::optional<linalg::GaussianPosterior> without_data_;
};

}  // namespace

std::unique_ptr<Likelihood> MakeJointLikelihood(std::size_t dim, const CoDBandOptions&) {
  return std::make_unique<Joint>(dim);
}

std::unique_ptr<Likelihood> MakeProductLikelihood(std::size_t dim, const CoDBandOptions& options) {
  return std::make_unique<Product>(dim, options.memory);
}

}  // namespace codband
