#pragma once

#include <memory>
#include <span>

#include "codband/base/random.h"
#include "codband/linalg/gaussian_posterior.h"
#include "codband/policy/params.h"
#include "codband/policy/policy.h"

namespace codband {

// adts: Thompson sampling for each user (lints.h, with σ = 1) that restarts a user when two
// neighbouring windows of their observations disagree. Every `step` observations, once there are
// two windows of W = window · step observations:
//   fit the last W observations and the W before them separately: means m1, m2, precisions A1, A2;
//   append the distance (m1 - m2)ᵀ ½(A1 + A2) (m1 - m2) to the user's series of distances;
//   with more than 5 distances, compute the series' CUSUM range, max S_i - min S_i for S_0 = 0,
//   S_i = S_(i-1) + distance_i - mean distance. It is a change if the range exceeds the `level`
//   quantile of the ranges of random permutations of the series. Then all data of the user is
//   dropped.
// Neighbouring distances share most of their windows, so the series is far from exchangeable and
// the test raises false alarms on users who never change: that is the paper's method, not our port.
// Nor can it detect a change at level 95% before there are 10 distances (850 observations):
// permutations that agree up to a rotation and within the high and the low values have the same
// range, and with 9 distances those are at least 7% of all.
//
// Paper: Hariri, Mobasher & Burke, "Adapting to user preference changes in interactive
// recommendation", IJCAI 2015, §3.
// Where we differ and why:
// - Windows are whole numbers of steps. Sufficient statistics of step-sized blocks are then all the
//   test needs, and no observation is kept.
// - At most the last 256 distances are tested, so that cost and memory do not grow with history.
// - A permutation whose range equals that of the series, up to rounding, counts against a change.
// - A reward that arrives after its period was dropped is ignored.
// Symbols: as in lints.h; S_i, the CUSUM of the series of distances.
// Parameters: v ≥ 0 (0.4; 1 for setting 1), the scale of the draw; lambda > 0 (1), the prior
// precision; step ≥ 1 (50); window ≥ 1 (4, in steps: 200 observations); permutations ≥ 1 (1000);
// level in [0, 1) (0.95).
// Cost: O(n d + d²) to choose among n arms; O(d²) to learn, and once in `step` observations O(d³ +
// permutations · distances). Allocates for new users only.
// Persisted: each user's sufficient statistics and Cholesky factor, the statistics of the last
// 2·window blocks, the distances, the number of restarts.
struct AdTsOptions {
  double v = 0.4;
  double lambda = 1;
  std::size_t step = 50;
  std::size_t window = 4;  // in steps
  std::size_t permutations = 1000;
  double level = 0.95;
};

PolicyInfo AdTsInfo();
std::unique_ptr<Policy> MakeAdTs(std::size_t dim, const AdTsOptions& options);
std::unique_ptr<Policy> MakeAdTs(const ParamValues& params, const PolicyContext& context);

// The distance between the fits of two sets of observations, (m1 - m2)ᵀ ½(A1 + A2) (m1 - m2).
// Precondition: of the same dimension and prior, noise variance 1.
double AdTsDistance(const linalg::GaussianPosterior& before,
                    const linalg::GaussianPosterior& after);

// The CUSUM range of the series. `mean` is that of the series.
double CusumRange(std::span<const double> series, double mean);

// Whether the CUSUM range of the series is above the `level` quantile of those of random
// permutations. Leaves the series in some order. Precondition: not empty.
bool CusumDetects(std::span<double> series, std::size_t permutations, double level,
                  RandomStream& random);

}  // namespace codband
