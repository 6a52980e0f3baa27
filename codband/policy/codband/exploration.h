#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "codband/linalg/covariance.h"
#include "codband/linalg/gaussian_posterior.h"
#include "codband/policy/policy.h"

namespace codband {

inline constexpr std::size_t kArmsTogether = 64;  // arms whose features are looked at together

// What is not known of the arms on offer, for a user whose likeliest model is `model`: the variance
// of what is expected of each, and what that of its features was before anything was learned.
// Borrows.
struct Uncertainty {
  const linalg::GaussianPosterior& model;
  std::span<const double> variances = {};
  std::span<const double> prior_variances = {};  // without the intercept's,
  double intercept_variance = 0;                 // which was this
};

// The variances of all arms: O(k²) for one with k features that are not 0 if the covariance of the
// model is known, O(d²) otherwise (nullptr). `extended`: the model has an intercept as its last
// feature, the arms have not. The other arguments are the memory that it works in.
Uncertainty FindUncertainty(const linalg::GaussianPosterior& model,
                            const linalg::Covariance* covariance, ArmsView arms, bool extended,
                            std::vector<double>& rows, std::vector<double>& variances,
                            std::vector<double>& prior_variances);

// How to explore.
struct Exploration {
  // The chance, from 0 to 1, with which the parameter is drawn (Thompson sampling) and not
  // averaged.
  double (*draw_chance)(const Uncertainty& uncertainty);
  // Adds to each arm what trying it is worth; nullptr: nothing.
  void (*add_worth)(const Uncertainty& uncertainty, std::span<double> scores);
};

// explore=thompson: always drawn, as in the paper, and nothing else.
double AlwaysDraw(const Uncertainty& uncertainty);

// explore=adaptive: as often as the arms on offer call for it.
//
// Where the arms differ from visit to visit, choosing the best of them explores by itself: after n
// observations the variance of what the arms bring is about that of n observations spread evenly
// over the d features, 1 / (1/prior + n/(dσ²)), or the prior's in the d - n directions that n < d
// observations leave open. Where the same few arms come back and one of them
// is always taken, the others stay as uncertain as they were while n grows. The ratio of the two is
// 1 to 2 in the first case and grows like n in the second; between 4 and 12 exploration is faded
// in. (Bastani, Bayati & Khosravi 2021 switch on the growth of the smallest eigenvalue instead,
// which does not ask whether any arm on offer lies in that direction.)
double DrawWhereUncertain(const Uncertainty& uncertainty);

// The rest of explore=adaptive: an arm of which less is known than of the surest one is worth
// trying. With v the variance of an arm, q what that is of the prior variance of its features (at
// most 1) and q₀ the least of them, n visits of the model so far and as many ahead,
//   0.5 √v Ψ(v n / σ²) (1 - q₀/q),
// Ψ the Gittins index (gittins_index.h). Where all arms are equally unknown, as they are at first
// and wherever they are much alike, the best of them teaches as much as any: nothing is added.
// Deterministic, so that it changes no propensity but those of the best arm.
void AddWorthOfTrying(const Uncertainty& uncertainty, std::span<double> scores);

}  // namespace codband
