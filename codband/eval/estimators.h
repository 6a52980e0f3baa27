#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "codband/eval/scoring.h"

namespace codband::eval {

// Off-policy estimators of the value of a policy (the mean reward of its decisions) from the
// decisions of another one. Symbols as in scoring.h; n events.
//
// kMean    Σ r / n: on-policy, of the policy that made the log.
// kReplay  the mean of r over events accepted by rejection sampling: with probability w/M, M the
//          largest weight (the largest possible one if the target learns from accepted events
//          only). Where the log chose uniformly and the target is deterministic these are the
//          events where both agree: Li, Chu, Langford & Wang 2011, "Unbiased offline evaluation of
//          contextual- bandit-based news article recommendation algorithms", Algorithm 2. For other
//          logs: Mandel, Liu, Brunskill & Popović 2016, "Offline evaluation of online reinforcement
//          learning algorithms", §4. Wastes the most data.
// kIps     Σ w r / n: inverse propensity scoring. Horvitz & Thompson 1952; unbiased; its variance
//          grows with the weights.
// kSnips   Σ w r / Σ w: self-normalised. Swaminathan & Joachims 2015, "The self-normalized
//          estimator for counterfactual learning", eq. 9. Never leaves the range of the rewards and
//          shifts with them; its bias vanishes like 1/n.
// kDr      Σ [w (r − r̂(a)) + Σ_b π(b) r̂(b)] / n: doubly robust. Dudík, Langford & Li 2011, "Doubly
//          robust policy evaluation and learning", eq. 2. Unbiased whatever r̂ is, since r̂ knows
//          only earlier events; the better r̂, the smaller the variance.
// kDm      Σ Σ_b π(b) r̂(b) / n: the direct method, for reference: as biased as r̂.
enum class Estimator { kMean, kReplay, kIps, kSnips, kDr, kDm };

// Of every target except the policy that made the log.
inline constexpr std::array kOffPolicyEstimators = {
    Estimator::kReplay, Estimator::kIps, Estimator::kSnips, Estimator::kDr, Estimator::kDm};

std::string_view EstimatorName(Estimator estimator);  // "ips"

// Every estimator is a ratio of two sums over events; this is what one event adds to each.
struct Term {
  double numerator = 0;
  double denominator = 0;
};
Term TermOf(Estimator estimator, const ScoredEvent& event);

// None if the denominator is 0: no event was accepted, or all weights are 0.
std::optional<double> EstimateValue(Estimator estimator, std::span<const ScoredEvent> events);

// (Σ w)² / Σ w²: the number of on-policy decisions that the log is worth, approximately (Kong
// 1992). 0 if all weights are.
double EffectiveSampleSize(std::span<const ScoredEvent> events);

}  // namespace codband::eval
