#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "codband/eval/estimators.h"
#include "codband/eval/reward_range.h"
#include "codband/eval/scoring.h"

namespace codband::eval {

struct Interval {
  double low = 0;
  double high = 0;
};

// A distribution-free lower confidence bound: with probability at least 1 − alpha the mean over i
// of E[z_i | z_1 … z_{i−1}] is at least what is returned (≥ 0). Preconditions: every z_i ≥ 0, every
// conditional mean at most 1; 0 < alpha < 1.
//
// By betting (Waudby-Smith & Ramdas 2024, "Estimating means of bounded random variables by
// betting", §4; without an upper limit of z as in Waudby-Smith, Wu, Ramdas, Karampatziakis &
// Mineiro 2024, "Anytime-valid off-policy inference for contextual bandits", §3): if the mean were
// m, the wealth of a gambler who bets a share λ of it on z being larger,
//   Σ_k g_k Π_i (1 + λ_k (z_i − m)),   Σ g_k = 1,   0 < λ_k < 1,
// would be a supermartingale and exceed 1/alpha with probability at most alpha (Ville's
// inequality). The bound is the smallest m for which it does not. We bet fixed shares, a mixture
// over powers of two, instead of adaptive ones: then means that vary from event to event (a target
// that learns) may be averaged plainly. The bound is anytime-valid: it holds at all lengths of the
// log at once, so a growing log may be looked at repeatedly. Cost O(n) times about a thousand;
// zeros are free.
double LowerConfidenceBound(std::span<const double> z, double alpha);

// Confidence intervals of the value, made of two such bounds with half of 1 − confidence each. They
// are valid if rewards stay in the range, propensities are right, and no weight could have exceeded
// weight_bound. Probability that the target puts on actions that the log cannot choose is accounted
// for if all probabilities are logged; if they are not, there must be none.
//
// kMean: z = r on a scale from 0 to 1, and 1 − r. kIps: z = w r; above, the better of z = w (1 − r)
// and z = 1 − w r/weight_bound, each with half of that side's alpha. kDr: the same with the doubly
// robust term, whose prediction is clipped at 1/w so that z = (term + 1)/2 ≥ 0; above, 1 −
// term/(bound + 1) with the unclipped term. None for the others: kReplay is covered by kIps, which
// estimates the same value, kSnips is not a mean, and kDm has no guarantee.
std::optional<Interval> GuaranteedInterval(Estimator estimator, const ScoredLog& log,
                                           RewardRange range, double confidence);

struct BootstrapOptions {
  std::size_t resamples = 1000;
  double confidence = 0.95;
  std::uint64_t seed = 1;
  std::size_t threads = 1;
};

struct BootstrapResult {
  Interval interval;
  double standard_error = 0;
};

// Percentile intervals by resampling events with replacement (Efron & Tibshirani 1993, ch. 13), for
// several estimators from the same resamples. Resample b draws from the stream (seed, b): the
// result does not depend on `threads`. Beyond kMostUnits events, blocks of neighbouring events are
// resampled. Approximate: it assumes independent events, and does not see rewards or weights that
// were possible but are not in the log. None for an estimator that has no value in most resamples.
// Precondition: there are events.
inline constexpr std::size_t kMostUnits = 20'000;
std::vector<std::optional<BootstrapResult>> Bootstrap(std::span<const Estimator> estimators,
                                                      std::span<const ScoredEvent> events,
                                                      const BootstrapOptions& options);

}  // namespace codband::eval
