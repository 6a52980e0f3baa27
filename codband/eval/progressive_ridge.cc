#include "codband/eval/progressive_ridge.h"

#include <algorithm>

#include "codband/linalg/kernels.h"

namespace codband::eval {

ProgressiveRidge::ProgressiveRidge(std::size_t dim, double lambda, RewardRange range)
    : range_(range), posterior_(dim + 1, lambda, 1), x_(dim + 1, 1) {}

void ProgressiveRidge::Predict(ArmsView arms, std::span<double> out) const {
  const std::span<const double> theta = posterior_.mean().first(arms.dim);
  const double intercept = posterior_.mean().back();
  for (std::size_t i = 0; i < arms.count(); ++i) {
    out[i] = std::clamp(linalg::Dot(arms.arm(i), theta) + intercept, range_.low, range_.high);
  }
}

void ProgressiveRidge::Learn(std::span<const double> features, double reward) {
  std::ranges::copy(features, x_.begin());
  posterior_.Add(x_, reward);
}

}  // namespace codband::eval
