#pragma once

#include <vector>

#include "codband/linalg/gaussian_posterior.h"
#include "codband/policy/policy.h"

namespace codband {

// How often to explore: the chance, from 0 to 1, with which the parameter is drawn (Thompson
// sampling) and not averaged, for a user whose likeliest model is `model`. `extended`: the model
// has an intercept as its last feature, the arms have not. `rows` is scratch memory.
using DrawChance = double (*)(const linalg::GaussianPosterior& model, ArmsView arms, bool extended,
                              std::vector<double>& rows);

// explore=thompson: always, as in the paper.
double AlwaysDraw(const linalg::GaussianPosterior& model, ArmsView arms, bool extended,
                  std::vector<double>& rows);

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
//
// O(n d²) for n arms, at most kExploreArms of which are looked at.
inline constexpr std::size_t kExploreArms = 16;
double DrawWhereUncertain(const linalg::GaussianPosterior& model, ArmsView arms, bool extended,
                          std::vector<double>& rows);

}  // namespace codband
