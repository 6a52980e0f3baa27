#pragma once

#include <span>
#include <vector>

#include "codband/eval/reward_range.h"
#include "codband/linalg/gaussian_posterior.h"
#include "codband/policy/policy.h"

namespace codband::eval {

// The reward model r̂(x, a) of the direct method and of the doubly robust estimator: one ridge
// regression of the reward on the features of the action and an intercept, shared by all users,
//   θ = (λI + Σ x xᵀ)⁻¹ Σ r x,   r̂ = clamp(xᵀθ, range).
// Progressive validation (Blum, Kalai & Langford 1999): the reward of an event is predicted before
// it is learned, so that r̂ never depends on the reward it is compared with. No cross-fitting is
// needed, and the prediction is a function of the past alone, as the guaranteed intervals require.
// Before the first Learn r̂ is the point of the range nearest to 0.
//
// Predict O(nd), Learn O(d²). Not thread-safe.
class ProgressiveRidge {
 public:
  // Preconditions: dim > 0, lambda > 0.
  ProgressiveRidge(std::size_t dim, double lambda, RewardRange range);

  // The prediction for each arm.
  void Predict(ArmsView arms, std::span<double> out) const;
  void Learn(std::span<const double> features, double reward);

 private:
  RewardRange range_;
  linalg::GaussianPosterior posterior_;
  std::vector<double> x_;  // features, then 1
};

}  // namespace codband::eval
