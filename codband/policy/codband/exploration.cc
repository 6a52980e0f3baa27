#include "codband/policy/codband/exploration.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "codband/policy/gittins_index.h"

namespace codband {

Uncertainty FindUncertainty(const linalg::GaussianPosterior& model, ArmsView arms, bool extended,
                            std::vector<double>& rows, std::vector<double>& variances,
                            std::vector<double>& prior_variances) {
  constexpr std::size_t kChunk = 64;  // arms that are looked at together
  const std::size_t d = model.dim();
  const std::size_t count = arms.count();
  const std::size_t features = extended ? d - 1 : d;
  const std::span<const double> precision = model.prior_precision();
  rows.resize(std::min(count, kChunk) * d);
  variances.resize(count);
  prior_variances.resize(count);
  for (std::size_t first = 0; first < count; first += kChunk) {
    const std::size_t together = std::min(kChunk, count - first);
    for (std::size_t i = 0; i < together; ++i) {
      const std::span<double> x = std::span(rows).subspan(i * d, d);
      std::ranges::copy(arms.arm(first + i), x.begin());
      if (extended) x[features] = 1;
      double sum = 0;
      for (std::size_t f = 0; f < features; ++f) sum += x[f] * x[f] / precision[f];
      prior_variances[first + i] = sum;
    }
    model.Variances(std::span(rows).first(together * d),
                    std::span(variances).subspan(first, together));
  }
  return {.model = model,
          .variances = variances,
          .prior_variances = prior_variances,
          .intercept_variance = extended ? 1 / precision[features] : 0};
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
