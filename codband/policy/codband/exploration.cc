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

// The variance of an arm, by its non-zeros unless most features are.
double VarianceOf(const linalg::Covariance& covariance, std::span<const double> arm,
                  bool extended) {
  std::array<std::uint16_t, linalg::kMaxDimension> places;
  std::array<double, linalg::kMaxDimension> values;
  std::size_t count = 0;
  for (std::size_t f = 0; f < arm.size(); ++f) {
    if (arm[f] == 0) continue;
    places[count] = static_cast<std::uint16_t>(f);
    values[count++] = arm[f];
  }
  if (count > arm.size() / kManyNonZeros) {
    std::ranges::copy(arm, values.begin());
    if (extended) values[arm.size()] = 1;
    return covariance.Variance({values.data(), arm.size() + (extended ? 1 : 0)});
  }
  if (extended) {
    places[count] = static_cast<std::uint16_t>(arm.size());
    values[count++] = 1;
  }
  return covariance.Variance({places.data(), count}, {values.data(), count});
}

// What a single user has taught a model is not what others explore for.
bool IsOneUsers(const ModelPool& pool, std::size_t k) {
  return k < pool.size() && pool.model(k).periods == 1;
}

double PriorVariance(std::span<const double> arm, std::span<const double> precision) {
  double sum = 0;
  for (std::size_t f = 0; f < arm.size(); ++f) {
    if (arm[f] != 0) sum += arm[f] * arm[f] / precision[f];
  }
  return sum;
}

void SolveForVariances(const linalg::GaussianPosterior& model, ArmsView arms, bool extended,
                       std::vector<double>& rows, std::span<double> variances) {
  const std::size_t d = model.dim();
  rows.resize(std::min(arms.count(), kArmsTogether) * d);
  for (std::size_t first = 0; first < arms.count(); first += kArmsTogether) {
    const std::size_t together = std::min(kArmsTogether, arms.count() - first);
    for (std::size_t i = 0; i < together; ++i) {
      const std::span<double> x = std::span(rows).subspan(i * d, d);
      std::ranges::copy(arms.arm(first + i), x.begin());
      if (extended) x.back() = 1;
    }
    model.Variances(std::span(rows).first(together * d), variances.subspan(first, together));
  }
}

}  // namespace

Uncertainty FindUncertainty(const linalg::GaussianPosterior& model,
                            const linalg::Covariance* covariance, ArmsView arms, bool extended,
                            std::vector<double>& rows, std::vector<double>& variances,
                            std::vector<double>& prior_variances) {
  const std::span<const double> precision = model.prior_precision();
  variances.resize(arms.count());
  prior_variances.resize(arms.count());
  for (std::size_t i = 0; i < arms.count(); ++i) {
    prior_variances[i] = PriorVariance(arms.arm(i), precision);
    if (covariance != nullptr) {
      variances[i] = VarianceOf(*covariance, arms.arm(i), extended);
    }
  }
  if (covariance == nullptr) SolveForVariances(model, arms, extended, rows, variances);
  return {.model = model, .variances = variances, .prior_variances = prior_variances};
}

std::span<const double> FindDisagreement(const Outlook& outlook, std::span<const double> mean,
                                         ArmsView arms, std::vector<double>& values) {
  if (outlook.chances[outlook.likeliest] > kCertain) return {};
  const std::size_t d = outlook.Posterior(outlook.likeliest).dim();
  FeatureVector off(d);
  values.assign(arms.count(), 0.0);
  for (std::size_t k = 0; k < outlook.chances.size(); ++k) {
    if (outlook.chances[k] < kNegligible || IsOneUsers(outlook.pool, k)) continue;
    outlook.MeanOn(k, off.values());
    linalg::Axpy(-1, mean, off.values());
    const std::span<const double> features = off.values().first(arms.dim);
    const double intercept = d > arms.dim ? off.values().back() : 0;
    for (std::size_t i = 0; i < arms.count(); ++i) {
      const double distance = linalg::Dot(arms.arm(i), features) + intercept;
      values[i] += outlook.chances[k] * std::abs(distance);
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
    least = std::min(least, unknown(i));
    sum += unknown(i);
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
