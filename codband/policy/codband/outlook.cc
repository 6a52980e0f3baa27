#include "codband/policy/codband/outlook.h"

#include <algorithm>

#include "codband/linalg/kernels.h"

namespace codband {

void Outlook::MeanOn(std::size_t k, std::span<double> theta) const {
  std::ranges::copy(Posterior(k).mean(), theta.begin());
  if (k == own) linalg::Axpy(1, departure, theta.first(departure.size()));
}

void Outlook::DrawOn(std::size_t k, double v, RandomStream& random, std::span<double> theta) const {
  Posterior(k).Sample(random, v, theta);
  if (k == own) linalg::Axpy(1, departure, theta.first(departure.size()));
}

void Outlook::Mean(std::span<double> theta) const {
  std::ranges::fill(theta, 0.0);
  for (std::size_t k = 0; k < chances.size(); ++k) {
    if (chances[k] > 0) linalg::Axpy(chances[k], Posterior(k).mean(), theta);
  }
  if (!departure.empty()) linalg::Axpy(chances[own], departure, theta.first(departure.size()));
}

}  // namespace codband
