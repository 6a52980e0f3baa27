#pragma once

#include <span>

#include "codband/linalg/gaussian_posterior.h"
#include "codband/policy/policy.h"

namespace codband {

// The rules by which linear policies choose an arm. Each sets arm, mean, width and score of the
// decision and returns its propensity; of equally good arms the first wins. None allocates.
// Preconditions: as in Policy::DoChoose, arms.dim == posterior.dim().

// What items add to the mean of each arm and to what it is compared by; empty for nothing.
struct ItemScores {
  std::span<const double> means = {};
  std::span<const double> scores = {};
};

// The largest upper confidence bound xᵀμ + alpha · sqrt(xᵀΛ⁻¹x). O(n d²).
Propensity ChooseByUpperBound(const linalg::GaussianPosterior& posterior, double alpha,
                              ArmsView arms, Decision& decision, const ItemScores& items = {});

// The largest xᵀθ for a given θ, such as a draw or the posterior mean; mean and width are those of
// the posterior.
// O(n d + d²).
Propensity ChooseByParameter(const linalg::GaussianPosterior& posterior,
                             std::span<const double> theta, ArmsView arms, Decision& decision);

// The largest xᵀθ for θ ~ N(μ, scale² Λ⁻¹): Thompson sampling. O(n d + d²).
Propensity ChooseByThompsonSampling(const linalg::GaussianPosterior& posterior, double scale,
                                    RandomStream& random, ArmsView arms, Decision& decision);

// The index of the arm with the largest xᵀθ.
std::uint32_t BestArm(std::span<const double> theta, ArmsView arms);
// The same with a number added to the score of each arm; `added` is empty for none.
std::uint32_t BestArm(std::span<const double> theta, std::span<const double> added, ArmsView arms);

}  // namespace codband
