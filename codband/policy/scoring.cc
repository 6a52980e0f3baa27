#include "codband/policy/scoring.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "codband/linalg/kernels.h"
#include "codband/linalg/packed.h"

namespace codband {

Propensity ChooseByUpperBound(const linalg::GaussianPosterior& posterior, double alpha,
                              ArmsView arms, Decision& decision, const ItemScores& items) {
  constexpr std::size_t kChunk = 64;
  std::array<double, kChunk> variances;
  decision.score = -std::numeric_limits<double>::infinity();
  for (std::size_t first = 0; first < arms.count(); first += kChunk) {
    const std::size_t count = std::min(kChunk, arms.count() - first);
    posterior.Variances(arms.features.subspan(first * arms.dim, count * arms.dim),
                        {variances.data(), count});
    for (std::size_t i = 0; i < count; ++i) {
      const double mean = linalg::Dot(arms.arm(first + i), posterior.mean());
      const double width = std::sqrt(variances[i]);
      const double item = items.scores.empty() ? 0 : items.scores[first + i];
      const double score = mean + alpha * width + item;
      if (score > decision.score) {
        decision.arm = static_cast<std::uint32_t>(first + i);
        decision.mean = mean + (items.means.empty() ? 0 : items.means[first + i]);
        decision.width = width;
        decision.score = score;
      }
    }
  }
  return Propensity::Certain();
}

std::uint32_t BestArm(std::span<const double> theta, ArmsView arms) {
  return BestArm(theta, {}, arms);
}

std::uint32_t BestArm(std::span<const double> theta, std::span<const double> added, ArmsView arms) {
  std::uint32_t best = 0;
  double best_score = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < arms.count(); ++i) {
    const double score = linalg::Dot(arms.arm(i), theta) + (added.empty() ? 0 : added[i]);
    if (score > best_score) {
      best = static_cast<std::uint32_t>(i);
      best_score = score;
    }
  }
  return best;
}

Propensity ChooseByParameter(const linalg::GaussianPosterior& posterior,
                             std::span<const double> theta, ArmsView arms, Decision& decision) {
  decision.arm = BestArm(theta, arms);
  const std::span<const double> x = arms.arm(decision.arm);
  decision.score = linalg::Dot(x, theta);
  decision.mean = linalg::Dot(x, posterior.mean());
  decision.width = std::sqrt(posterior.Variance(x));
  return Propensity::Certain();
}

Propensity ChooseByThompsonSampling(const linalg::GaussianPosterior& posterior, double scale,
                                    RandomStream& random, ArmsView arms, Decision& decision) {
  std::array<double, linalg::kMaxDimension> buffer;
  const std::span<double> theta(buffer.data(), arms.dim);
  posterior.Sample(random, scale, theta);
  static_cast<void>(ChooseByParameter(posterior, theta, arms, decision));
  return Propensity::Sampled();
}

}  // namespace codband
