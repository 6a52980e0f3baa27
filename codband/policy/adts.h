#pragma once

#include <memory>
#include <span>

#include "codband/base/random.h"
#include "codband/linalg/gaussian_posterior.h"
#include "codband/policy/params.h"
#include "codband/policy/policy.h"

namespace codband {

// adts: Thompson sampling for each user (as lints.h, with σ = 1), which starts the user afresh when
// the user's recent observations tell another story than those before. Every `step` observations,
// once there are two windows of W = window · step:
//   fit the last W observations and the W before them separately: means m1, m2, precisions A1, A2;
//   append the distance (m1 - m2)ᵀ ½(A1 + A2) (m1 - m2) to the user's series of distances;
//   with more than 5 distances, judge the series by its CUSUM range, the largest less the smallest
//   of S_0 = 0, S_i = S_(i-1) + distance_i - mean: a change if it is above the `level` quantile of
//   the ranges of random permutations of the series. Then everything of the user is dropped.
//
// Paper: Hariri, Mobasher & Burke, "Adapting to user preference changes in interactive
// recommendation", IJCAI 2015, §3.
// Where we differ and why:
// - Windows are whole numbers of steps: sums of step-sized blocks then hold all that the test
//   needs, and no observation is kept.
// - At most the last 256 distances are judged, so that cost and memory do not grow with history.
// - Permuted series that reach the range of the series, up to rounding, count against a change.
// - A reward that arrives after its period was dropped teaches nothing.
// Neighbouring distances share most of their windows, so the series is far from exchangeable and
// the test fires on users who never change: that is the method's, not ours. Nor can it fire at 95%
// before there are 10 distances (850 observations): orders that agree up to a rotation and within
// the high and the low values have the same range, which for 9 leaves 7% of all orders at least.
//
// Parameters: v ≥ 0 (0.4; 1 for setting 1), scale of the draw; lambda > 0 (1); step ≥ 1 (50);
// window ≥ 1 (4, in steps: 200 observations); permutations ≥ 1 (1000); level in [0, 1) (0.95).
// Cost: O(n d + d²) to choose among n arms; O(d²) to learn, and once in `step` observations O(d³ +
// permutations · distances). Allocates for new users only.
// Persisted: each user's sums and Cholesky factor, sums of the last 2·window blocks, distances,
// number of restarts.
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
