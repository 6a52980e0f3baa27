#include "codband/policy/codband/exploration.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "codband/linalg/kernels.h"
#include "codband/policy/codband/feature_vector.h"
#include "codband/policy/gittins_index.h"

namespace codband {

namespace {

// With this chance of one model nothing is to be learned of which it is; a model with less than the
// other is not asked.
constexpr double kCertain = 0.98;
constexpr double kNegligible = 0.01;

constexpr std::size_t kManyNonZeros = 3;  // one in so many: whole rows are faster than gathering

// The features of an arm that are not 0.
class NonZeros {
 public:
  explicit NonZeros(std::span<const double> arm) : arm_(arm) {
    for (std::size_t f = 0; f < arm.size(); ++f) {
      if (arm[f] == 0) continue;
      places_[count_] = static_cast<std::uint16_t>(f);
      values_[count_++] = arm[f];
    }
  }

  double PriorVariance(std::span<const double> precision) const {
    double sum = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      sum += values_[i] * values_[i] / precision[places_[i]];
    }
    return sum;
  }

  // By the non-zeros unless most features are.
  double Variance(const linalg::Covariance& covariance, bool extended) {
    if (count_ > arm_.size() / kManyNonZeros) {
      std::ranges::copy(arm_, values_.begin());
      if (extended) values_[arm_.size()] = 1;
      return covariance.Variance({values_.data(), arm_.size() + (extended ? 1 : 0)});
    }
    if (extended) {
      places_[count_] = static_cast<std::uint16_t>(arm_.size());
      values_[count_++] = 1;
    }
    return covariance.Variance({places_.data(), count_}, {values_.data(), count_});
  }

 private:
  std::span<const double> arm_;
  std::size_t count_ = 0;
  std::array<std::uint16_t, linalg::kMaxDimension> places_;
  std::array<double, linalg::kMaxDimension> values_;
};

// What a single user has taught a model is not what others explore for.
bool IsOneUsers(const ModelPool& pool, std::size_t k) {
  return k < pool.size() && pool.model(k).periods == 1;
}

}  // namespace

Uncertainty FindUncertainty(const linalg::GaussianPosterior& model,
                            const linalg::Covariance* covariance, ArmsView arms, bool extended,
                            std::vector<double>& variances, std::vector<double>& prior_variances) {
  variances.resize(arms.count());
  prior_variances.resize(arms.count());
  if (covariance == nullptr) {
    model.Variances(arms.features, variances, prior_variances);
  } else {
    const std::span<const double> precision = model.prior_precision();
    for (std::size_t i = 0; i < arms.count(); ++i) {
      NonZeros arm(arms.arm(i));
      prior_variances[i] = arm.PriorVariance(precision);
      variances[i] = arm.Variance(*covariance, extended);
    }
  }
  return {.model = model, .variances = variances, .prior_variances = prior_variances};
}

std::span<const double> FindDisagreement(const Outlook& outlook, std::span<const double> mean,
                                         ArmsView arms, std::vector<double>& values) {
  if (outlook.chances[outlook.likeliest] > kCertain) return {};
  const std::size_t d = outlook.Posterior(outlook.likeliest).dim();
  FeatureVector off(d);
  std::array<double, kArmsTogether> distances;
  values.assign(arms.count(), 0.0);
  for (std::size_t k = 0; k < outlook.chances.size(); ++k) {
    if (outlook.chances[k] < kNegligible || IsOneUsers(outlook.pool, k)) continue;
    outlook.MeanOn(k, off.values());
    linalg::Axpy(-1, mean, off.values());
    const std::span<const double> features = off.values().first(arms.dim);
    const double intercept = d > arms.dim ? off.values().back() : 0;
    for (std::size_t first = 0; first < arms.count(); first += kArmsTogether) {
      const std::size_t together = std::min(kArmsTogether, arms.count() - first);
      linalg::MultiplyRows(arms.features.subspan(first * arms.dim, together * arms.dim), features,
                           {distances.data(), together});
      for (std::size_t i = 0; i < together; ++i) {
        values[first + i] += outlook.chances[k] * std::abs(distances[i] + intercept);
      }
    }
  }
  return values;
}

void AddWorthOfTrying(const Uncertainty& uncertainty, std::span<double> scores) {
  const auto unknown = [&](std::size_t i) {
    const double prior = uncertainty.prior_variances[i];
    return prior > 0 ? std::min(1.0, uncertainty.variances[i] / prior) : 1;
  };
  double least = 1;
  double sum = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const double here = unknown(i);
    least = std::min(least, here);
    sum += here;
  }
  const double average = sum / static_cast<double>(scores.size());
  const double share = 1 - unknown(uncertainty.best) / average;
  if (!(share > 0)) return;
  const double noise = uncertainty.model.noise_variance();
  const double visits = static_cast<double>(uncertainty.model.stats().m()) / noise;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const double here = unknown(i);
    if (!(here > least)) continue;
    const double variance = uncertainty.variances[i];
    scores[i] += share * std::sqrt(variance) * GittinsIndex(variance * visits) * (1 - least / here);
  }
  const double own_visits = uncertainty.period_visits / noise;
  for (std::size_t i = 0; i < uncertainty.disagreement.size(); ++i) {
    const double apart = uncertainty.disagreement[i];
    scores[i] += share * apart * GittinsIndex(apart * apart * own_visits);
  }
}

}  // namespace codband
