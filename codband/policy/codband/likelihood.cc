#include "codband/policy/codband/likelihood.h"

#include <cmath>
#include <numbers>
#include <optional>
#include <vector>

#include "codband/base/check.h"
#include "codband/linalg/joint_likelihood.h"
#include "codband/linalg/kernels.h"

namespace codband {
namespace {

class Joint final : public Likelihood {
 public:
  explicit Joint(std::size_t dim) : joint_(dim) {}

  void LogDensities(const ModelPool& pool, const Period& period, std::size_t own,
                    std::span<double> out) override {
    models_.clear();
    for (std::size_t k = 0; k < pool.size(); ++k) {
      models_.push_back({.posterior = &pool.model(k).posterior, .contains_data = k == own});
    }
    models_.push_back({.posterior = &pool.prior(), .contains_data = false});
    joint_.LogDensities(period.data(), models_, out);
  }

 private:
  JointLikelihood joint_;
  std::vector<JointLikelihood::Model> models_;
};

class Product final : public Likelihood {
 public:
  explicit Product(std::size_t dim) : joint_(dim), recent_stats_(dim) {}

  void LogDensities(const ModelPool& pool, const Period& period, std::size_t own,
                    std::span<double> out) override {
    for (std::size_t k = 0; k < pool.size(); ++k) {
      const GaussianPosterior& model = pool.model(k).posterior;
      if (k != own) {
        out[k] = SumOfLogDensities(model, period.recent);
        continue;
      }
      if (own_without_data_) {
        *own_without_data_ = model;  // same size: no allocation
      } else {
        own_without_data_.emplace(model);
      }
      own_without_data_->Remove(period.data());
      out[k] = SumOfLogDensities(*own_without_data_, period.recent);
    }
    const JointLikelihood::Model prior{.posterior = &pool.prior(), .contains_data = false};
    joint_.LogDensities(RecentStats(period), {&prior, 1}, out.last(1));
  }

 private:
  double SumOfLogDensities(const GaussianPosterior& model, const RecentObservations& recent) {
    variances_.resize(recent.size());
    model.Variances(recent.features(), variances_);
    double squares = 0;
    LogProduct variance_product;
    for (std::size_t i = 0; i < recent.size(); ++i) {
      const double variance = model.noise_variance() + variances_[i];
      const double residual =
          recent.rewards()[i] -
          Dot(recent.features().subspan(i * model.dim(), model.dim()), model.mean());
      squares += residual * residual / variance;
      variance_product.Multiply(variance);
    }
    const auto m = static_cast<double>(recent.size());
    return -0.5 * (m * std::log(2 * std::numbers::pi) + variance_product.Log() + squares);
  }

  const SufficientStats& RecentStats(const Period& period) {
    if (period.recent.size() == period.data().m()) return period.data();
    // From scratch: adding and subtracting at the ends of the window would let rounding pile up.
    recent_stats_.Clear();
    const std::size_t dim = recent_stats_.dim();
    for (std::size_t i = 0; i < period.recent.size(); ++i) {
      recent_stats_.Add(period.recent.features().subspan(i * dim, dim), period.recent.rewards()[i]);
    }
    return recent_stats_;
  }

  JointLikelihood joint_;
  SufficientStats recent_stats_;
  std::vector<double> variances_;
  std::optional<GaussianPosterior> own_without_data_;
};

}  // namespace

std::unique_ptr<Likelihood> MakeJointLikelihood(std::size_t dim) {
  return std::make_unique<Joint>(dim);
}

std::unique_ptr<Likelihood> MakeProductLikelihood(std::size_t dim) {
  return std::make_unique<Product>(dim);
}

}  // namespace codband
