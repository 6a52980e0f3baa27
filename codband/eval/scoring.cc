#include "codband/eval/scoring.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "codband/base/random.h"
#include "codband/eval/progressive_ridge.h"
#include "codband/linalg/kernels.h"

namespace codband::eval {
namespace {

// Disjoint from the purposes of policies, which use the same seed and event.
constexpr std::uint64_t kAcceptPurpose = 3000;
double AcceptDraw(std::uint64_t seed, std::size_t event) {
  return RandomStream({.seed = seed, .event = event}, kAcceptPurpose).Uniform();
}

// One event while it is scored. Probabilities and predictions are by candidate.
struct View {
  std::span<const double> chances;
  std::span<const double> logged;  // empty: not known
  std::span<const double> predictions;
  const LoggedEvent& event;
  bool on_policy;
};

// π(b)/p(b); the largest that it can be where p(b) is not known.
double WeightOf(const View& view, std::size_t b, double smallest_propensity) {
  if (view.on_policy) return 1;
  if (view.logged.empty()) return view.chances[b] / smallest_propensity;
  if (view.chances[b] == 0) return 0;
  return view.logged[b] > 0 ? view.chances[b] / view.logged[b]
                            : std::numeric_limits<double>::infinity();
}

// The doubly robust term for rewards and predictions on a scale from 0 to 1, with predictions
// clipped at 1/w(b): it is then never below -1, and still unbiased.
double RobustTerm(const View& view, double weight, const ScoringOptions& options, bool mirror) {
  const auto scaled = [&](double reward) {
    const double share = options.range.Scale(reward);
    return mirror ? 1 - share : share;
  };
  double mean = 0;
  double chosen = 0;
  for (std::size_t b = 0; b < view.chances.size(); ++b) {
    const double cut =
        std::min(scaled(view.predictions[b]), 1 / WeightOf(view, b, options.smallest_propensity));
    mean += view.chances[b] * cut;
    if (b == view.event.chosen) chosen = cut;
  }
  return weight * (scaled(view.event.reward) - chosen) + mean;
}

ScoredEvent Score(const View& view, const ScoringOptions& options) {
  ScoredEvent scored{.reward = view.event.reward};
  scored.weight = view.on_policy ? 1 : view.chances[view.event.chosen] / view.event.propensity;
  scored.predicted = view.predictions[view.event.chosen];
  scored.value = linalg::Dot(view.chances, view.predictions);
  scored.robust_low = RobustTerm(view, scored.weight, options, false);
  scored.robust_high = RobustTerm(view, scored.weight, options, true);
  if (view.logged.empty()) {
    scored.unsupported = std::numeric_limits<double>::quiet_NaN();
  } else {
    for (std::size_t b = 0; b < view.chances.size(); ++b) {
      if (view.logged[b] == 0) scored.unsupported += view.chances[b];
    }
  }
  return scored;
}

// If no bound of the weights is known, that of the logged events is used.
double WeightBound(const View& view, double smallest_propensity) {
  double bound = view.on_policy ? 1 : view.chances[view.event.chosen] / view.event.propensity;
  for (std::size_t b = 0; b < view.chances.size(); ++b) {
    const double weight = WeightOf(view, b, smallest_propensity);
    if (std::isfinite(weight)) bound = std::max(bound, weight);
  }
  return bound;
}

}  // namespace

ScoredLog ScoreEvents(const LoggedDecisions& log, Target& target, const ScoringOptions& options) {
  ScoredLog scored{.events = {}, .weight_bound = 0};
  scored.events.reserve(log.size());
  ProgressiveRidge model(log.dim(), options.ridge, options.range);
  std::vector<double> chances;
  std::vector<double> predictions;
  double largest_weight = 0;
  for (std::size_t i = 0; i < log.size(); ++i) {
    if (options.between) options.between();
    const LoggedEvent& event = log.event(i);
    chances.resize(log.candidate_count(i));
    predictions.resize(log.candidate_count(i));
    target.Chances(log, i, chances);
    model.Predict(log.arms(i), predictions);
    const View view{chances, log.probabilities(i), predictions, event, target.on_policy()};
    ScoredEvent& entry = scored.events.emplace_back(Score(view, options));
    largest_weight = std::max(largest_weight, entry.weight);
    scored.weight_bound =
        std::max(scored.weight_bound, WeightBound(view, options.smallest_propensity));
    entry.accepted = AcceptDraw(options.seed, i) < entry.weight * options.smallest_propensity;
    if (options.learn == LearnFrom::kAll || entry.accepted) target.Learn(log, i);
    model.Learn(log.arms(i).arm(event.chosen), event.reward);
  }
  if (options.learn == LearnFrom::kAll && largest_weight > 0) {
    for (std::size_t i = 0; i < log.size(); ++i) {
      ScoredEvent& entry = scored.events[i];
      entry.accepted = AcceptDraw(options.seed, i) * largest_weight < entry.weight;
    }
  }
  return scored;
}

}  // namespace codband::eval
