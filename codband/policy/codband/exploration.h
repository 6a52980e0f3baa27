#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "codband/linalg/covariance.h"
#include "codband/linalg/gaussian_posterior.h"
#include "codband/policy/codband/outlook.h"
#include "codband/policy/policy.h"

namespace codband {

inline constexpr std::size_t kArmsTogether = 64;  // arms whose features are looked at together

// What is not known of the arms on offer, for a user whose likeliest model is `model`: the variance
// of what is expected of each, and what that of its features was before anything was learned.
// Borrows.
struct Uncertainty {
  const linalg::GaussianPosterior& model;
  std::span<const double> variances = {};
  std::span<const double> prior_variances = {};  // without the intercept's
  // How far the models that the user may be on are apart; empty where it is known which it is.
  std::span<const double> disagreement = {};
  double period_visits = 0;  // of the user so far, with this one
  std::size_t best = 0;      // the arm of which most is expected
};

// The variances of all arms: O(k²) for one with k features that are not 0 if the covariance of the
// model is known, O(d²) otherwise (nullptr). `extended`: the model has an intercept as its last
// feature, the arms have not. The other arguments are the memory that it works in.
Uncertainty FindUncertainty(const linalg::GaussianPosterior& model,
                            const linalg::Covariance* covariance, ArmsView arms, bool extended,
                            std::vector<double>& variances, std::vector<double>& prior_variances);

// Of each arm, Σ p(k) |xᵀμ_k - xᵀμ|, μ = Σ p(k) μ_k: how far the models that the user may be on
// disagree of it. (Not the root of the squares: a model that is far off and hardly likely would
// decide.) Models of a single user do not count, so that nobody makes others explore. Empty if one
// model is all but certain. `mean` is μ, and `values` the memory that it works in.
std::span<const double> FindDisagreement(const Outlook& outlook, std::span<const double> mean,
                                         ArmsView arms, std::vector<double>& values);

// How to explore.
struct Exploration {
  // The chance, from 0 to 1, with which the parameter is drawn (Thompson sampling) and not
  // averaged.
  double draw_chance;
  // Adds to each arm what trying it is worth; nullptr: nothing.
  void (*add_worth)(const Uncertainty& uncertainty, std::span<double> scores);
};

// explore=adaptive. What an arm would teach is worth something in two ways.
//
// Of its model: with v the variance of the arm, q what that is of the prior variance of its
// features (at most 1) and q₀ the least of them, n visits of the model so far and as many ahead,
//   √v Ψ(v n / σ²) (1 - q₀/q),
// Ψ the Gittins index (gittins_index.h). Where all arms are equally unknown, as they are at first
// and wherever they are much alike, the best of them teaches as much as any: nothing is added.
//
// Of the user: with b the mean distance between the models that they may be on (FindDisagreement),
// m visits of their period so far and as many ahead,
//   b Ψ(b² m / σ²).
// An arm on which these models agree does not tell on which of them the user is, however often it
// is chosen.
//
// Both count by the share 1 - q*/q̄, at least 0, that the best arm does not teach anyway: q* is the
// q of the arm with the largest mean and q̄ the average over the arms on offer. Where the arms vary
// the best of them is as unknown as any, and choosing it explores by itself. Where the same arms
// come back the best is the one that has been chosen all along, and q* is far below q̄. What is off
// now cannot stay off: if nothing but the best arm is chosen q* falls, and the share grows.
//
// Deterministic, so that it changes no propensity but those of the best arm.
void AddWorthOfTrying(const Uncertainty& uncertainty, std::span<double> scores);

}  // namespace codband
