#include "codband/eval/estimators.h"

#include "codband/base/check.h"

namespace codband::eval {

std::string_view EstimatorName(Estimator estimator) {
  switch (estimator) {
    case Estimator::kMean:
      return "mean";
    case Estimator::kReplay:
      return "replay";
    case Estimator::kIps:
      return "ips";
    case Estimator::kSnips:
      return "snips";
    case Estimator::kDr:
      return "dr";
    case Estimator::kDm:
      return "dm";
  }
  return "";
}

Term TermOf(Estimator estimator, const ScoredEvent& event) {
  switch (estimator) {
    case Estimator::kMean:
      return {event.reward, 1};
    case Estimator::kReplay:
      return event.accepted ? Term{event.reward, 1} : Term{};
    case Estimator::kIps:
      return {event.weight * event.reward, 1};
    case Estimator::kSnips:
      return {event.weight * event.reward, event.weight};
    case Estimator::kDr:
      return {event.weight * (event.reward - event.predicted) + event.value, 1};
    case Estimator::kDm:
      return {event.value, 1};
  }
  return {};
}

std::optional<double> EstimateValue(Estimator estimator, std::span<const ScoredEvent> events) {
  Term sum;
  for (const ScoredEvent& event : events) {
    const Term term = TermOf(estimator, event);
    sum.numerator += term.numerator;
    sum.denominator += term.denominator;
  }
  if (sum.denominator == 0) return std::nullopt;
  return sum.numerator / sum.denominator;
}

double EffectiveSampleSize(std::span<const ScoredEvent> events) {
  double sum = 0;
  double squares = 0;
  for (const ScoredEvent& event : events) {
    sum += event.weight;
    squares += event.weight * event.weight;
  }
  return squares == 0 ? 0 : sum * sum / squares;
}

}  // namespace codband::eval
