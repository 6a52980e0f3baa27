#include "codband/policy/codband/exploration.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "codband/policy/gittins_index.h"

namespace codband {

namespace {

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
  return {.model = model,
          .variances = variances,
          .prior_variances = prior_variances,
          .intercept_variance = extended ? 1 / precision.back() : 0};
}

double AlwaysDraw(const Uncertainty&) { return 1; }

double DrawWhereUncertain(const Uncertainty& uncertainty) {
  constexpr double kEnough = 4;
  constexpr double kFull = 12;
  const linalg::GaussianPosterior& model = uncertainty.model;
  const auto mean_of = [](std::span<const double> values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  };
  const double prior = mean_of(uncertainty.prior_variances) + uncertainty.intercept_variance;
  if (!(prior > 0)) return 0;
  const double each = static_cast<double>(model.stats().m()) / static_cast<double>(model.dim());
  const double spread_evenly =
      std::max(1 / (1 / prior + each / model.noise_variance()), prior * (1 - each));
  const double ratio = mean_of(uncertainty.variances) / spread_evenly;
  return std::clamp((ratio - kEnough) / (kFull - kEnough), 0.0, 1.0);
}

void AddWorthOfTrying(const Uncertainty& uncertainty, std::span<double> scores) {
  constexpr double kShare = 0.5;  // the rest is taught by what is chosen anyway
  const auto share = [&](std::size_t i) {
    const double prior = uncertainty.prior_variances[i];
    return prior > 0 ? std::min(1.0, uncertainty.variances[i] / prior) : 1;
  };
  double least = 1;
  for (std::size_t i = 0; i < scores.size(); ++i) least = std::min(least, share(i));
  const double visits =
      static_cast<double>(uncertainty.model.stats().m()) / uncertainty.model.noise_variance();
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const double here = share(i);
    if (!(here > least)) continue;
    const double variance = uncertainty.variances[i];
    scores[i] +=
        kShare * std::sqrt(variance) * GittinsIndex(variance * visits) * (1 - least / here);
  }
}

}  // namespace codband
