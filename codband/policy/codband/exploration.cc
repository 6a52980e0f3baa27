#include "codband/policy/codband/exploration.h"

#include <algorithm>
#include <array>

namespace codband {

double AlwaysDraw(const linalg::GaussianPosterior&, ArmsView, bool, std::vector<double>&) {
  return 1;
}

double DrawWhereUncertain(const linalg::GaussianPosterior& model, ArmsView arms, bool extended,
                          std::vector<double>& rows) {
  constexpr double kEnough = 4;
  constexpr double kFull = 12;
  const std::size_t d = model.dim();
  const std::size_t looked_at = std::min(arms.count(), kExploreArms);
  rows.resize(looked_at * d);
  double prior_variance = 0;
  for (std::size_t i = 0; i < looked_at; ++i) {
    const std::span<const double> arm = arms.arm(i * arms.count() / looked_at);
    const std::span<double> x = std::span(rows).subspan(i * d, d);
    std::ranges::copy(arm, x.begin());
    if (extended) x[d - 1] = 1;
    for (std::size_t f = 0; f < d; ++f) prior_variance += x[f] * x[f] / model.prior_precision()[f];
  }
  std::array<double, kExploreArms> variances;
  model.Variances(rows, std::span(variances).first(looked_at));
  double variance = 0;
  for (std::size_t i = 0; i < looked_at; ++i) variance += variances[i];
  if (!(prior_variance > 0)) return 0;
  const auto count = static_cast<double>(looked_at);
  const double each = static_cast<double>(model.stats().m()) / static_cast<double>(d);
  const double prior = prior_variance / count;
  const double spread_evenly =
      std::max(1 / (1 / prior + each / model.noise_variance()), prior * (1 - each));
  const double ratio = variance / count / spread_evenly;
  return std::clamp((ratio - kEnough) / (kFull - kEnough), 0.0, 1.0);
}

}  // namespace codband
