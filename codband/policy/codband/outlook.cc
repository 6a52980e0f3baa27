#include "codband/policy/codband/outlook.h"

#include <algorithm>

#include "codband/linalg/kernels.h"

namespace codband {

std::span<const double> Outlook::MeanOf(std::size_t k) const {
  const std::span<const double> mean = given == nullptr ? std::span<const double>() : given->Of(k);
  return mean.empty() ? Posterior(k).mean() : mean;
}

void Outlook::MeanOn(std::size_t k, std::span<double> theta) const {
  std::ranges::copy(MeanOf(k), theta.begin());
  if (k == own) linalg::Axpy(1, departure, theta.first(departure.size()));
}

void Outlook::DrawOn(std::size_t k, double v, RandomStream& random, std::span<double> theta) const {
  Posterior(k).Sample(random, v, theta);
  if (const std::span<const double> mean = MeanOf(k); mean.data() != Posterior(k).mean().data()) {
    linalg::Axpy(-1, Posterior(k).mean(), theta);
    linalg::Axpy(1, mean, theta);
  }
  if (k == own) linalg::Axpy(1, departure, theta.first(departure.size()));
}

void Outlook::Mean(std::span<double> theta) const {
  std::ranges::fill(theta, 0.0);
  for (std::size_t k = 0; k < chances.size(); ++k) {
    if (chances[k] > 0) linalg::Axpy(chances[k], MeanOf(k), theta);
  }
  if (!departure.empty()) linalg::Axpy(chances[own], departure, theta.first(departure.size()));
}

}  // namespace codband
