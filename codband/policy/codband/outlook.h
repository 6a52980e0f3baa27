#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "codband/policy/codband/given_means.h"
#include "codband/policy/codband/model_pool.h"

namespace codband {

// What is believed of a user before a choice among arms: the posterior over their model z and,
// where users have random effects, how their parameter departs from that of the model. Borrows the
// pool and the caller's ChooseWorkspace.
struct Outlook {
  const ModelPool& pool;
  const GivenMeans* given = nullptr;  // nullptr: models say all that is known
  std::uint32_t period = 0;
  std::span<const double> chances = {};    // of each model and last of a new one
  std::size_t likeliest = 0;               // index of the largest
  std::size_t own = 0;                     // index of the user's model
  std::span<const double> departure = {};  // the user's random effect; empty: none
  double draw_chance = 1;                  // with which θ is drawn and not averaged
  // E[θ] over all models and, of each arm, xᵀE[θ] without the intercept; empty: not looked at.
  std::span<const double> expected = {};
  std::span<const double> means = {};
  // Of each arm, the variance of what is expected of its features; empty: not looked at.
  std::span<const double> variances = {};
  // Of each arm, the item's own part of the expected reward and its variance; empty where no items
  // are known.
  std::span<const double> item_means = {};
  std::span<const double> item_variances = {};
  // Of each arm, what it is compared by beside its features: the item's part and what trying it is
  // worth; empty: nothing.
  std::span<const double> added = {};

  bool has_items() const { return !item_means.empty(); }
  double ItemMean(std::size_t arm) const { return has_items() ? item_means[arm] : 0; }
  double ItemVariance(std::size_t arm) const { return has_items() ? item_variances[arm] : 0; }
  double Added(std::size_t arm) const { return added.empty() ? 0 : added[arm]; }

  // The model at an index of the chances.
  const linalg::GaussianPosterior& Posterior(std::size_t k) const {
    return k < pool.size() ? pool.model(k).posterior : pool.prior();
  }
  // Its covariance, if it is known; else nullptr.
  const linalg::Covariance* CovarianceOf(std::size_t k) const {
    return k < pool.size() && pool.model(k).covariance.known() ? &pool.model(k).covariance
                                                               : nullptr;
  }
  ModelId IdOf(std::size_t k) const { return k < pool.size() ? pool.model(k).id : kNoModel; }

  // E[θ | z = k] without the departure.
  std::span<const double> MeanOf(std::size_t k) const;

  // If the user is on model k: E[θ | z = k], or θ̃ ~ N(μ_k, v²Σ_k) plus the departure.
  void MeanOn(std::size_t k, std::span<double> theta) const;
  void DrawOn(std::size_t k, double v, RandomStream& random, std::span<double> theta) const;
  // E[θ], over all models.
  void Mean(std::span<double> theta) const;
};

}  // namespace codband
