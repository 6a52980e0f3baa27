#include "codband/eval/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "codband/base/parallel.h"

namespace codband::eval {
namespace {

// Below these, warn: the estimate rests on few events.
constexpr double kFewEffective = 100;
constexpr std::size_t kFewAccepted = 100;
// The same for events with a reward above the smallest, weighted alike.
constexpr double kFewRewarded = 10;
// Share of the total weight on one event.
constexpr double kHeavyShare = 0.05;
// In standard errors: a false alarm for one correct log in 16,000.
constexpr double kSurprise = 4;
constexpr double kUnsupportedShare = 0.001;

Status CheckOptions(const EvaluationOptions& options) {
  if (!(options.confidence >= 0.5 && options.confidence <= 0.9999)) {
    return WrongNumber("confidence", options.confidence, "a number from 0.5 to 0.9999");
  }
  if (!(options.ridge > 0 && options.ridge <= 1e9)) {
    return WrongNumber("ridge", options.ridge, "a number above 0 and at most 1e9");
  }
  return {};
}

Status FindRange(const LoggedDecisions& log, const EvaluationOptions& options,
                 Evaluation& evaluation) {
  double low = 0;
  double high = 1;
  double propensity = 1;
  evaluation.all_probabilities = true;
  for (std::size_t i = 0; i < log.size(); ++i) {
    const LoggedEvent& event = log.event(i);
    if (options.reward_low && event.reward < *options.reward_low) {
      return WrongNumber("reward-min", *options.reward_low,
                         fmt::format("at most {}, the reward of event {}", event.reward, i + 1));
    }
    if (options.reward_high && event.reward > *options.reward_high) {
      return WrongNumber("reward-max", *options.reward_high,
                         fmt::format("at least {}, the reward of event {}", event.reward, i + 1));
    }
    low = std::min(low, event.reward);
    high = std::max(high, event.reward);
    propensity = std::min(propensity, event.propensity);
    const std::span<const double> logged = log.probabilities(i);
    if (logged.empty()) evaluation.all_probabilities = false;
    for (const double p : logged) {
      if (p > 0) propensity = std::min(propensity, p);
    }
  }
  evaluation.range = {options.reward_low.value_or(low), options.reward_high.value_or(high)};
  if (!(evaluation.range.low < evaluation.range.high)) {
    return WrongNumber("reward-min", evaluation.range.low,
                       fmt::format("a number below {}, the largest reward", evaluation.range.high));
  }
  evaluation.smallest_propensity = options.smallest_propensity.value_or(propensity);
  if (!(evaluation.smallest_propensity > 0 && evaluation.smallest_propensity <= propensity)) {
    return WrongNumber(
        "min-propensity", evaluation.smallest_propensity,
        fmt::format("a number above 0 and at most {}, the smallest in the log", propensity));
  }
  return {};
}

// The effective number of events with more than the smallest reward: clicks may be rare though
// events are many.
double EffectiveRewarded(const std::vector<ScoredEvent>& events, double low) {
  double sum = 0;
  double squares = 0;
  for (const ScoredEvent& event : events) {
    const double gain = event.weight * (event.reward - low);
    sum += gain;
    squares += gain * gain;
  }
  return squares == 0 ? 0 : sum * sum / squares;
}

void AddWarnings(const std::vector<ScoredEvent>& events, double low, TargetReport& report) {
  const double rewarded = EffectiveRewarded(events, low);
  if (rewarded < kFewRewarded) {
    report.warnings.push_back(
        fmt::format("the value rests on about {:.0f} rewarded event{}: bootstrap intervals are too "
                    "narrow, trust the guaranteed ones",
                    rewarded, std::lround(rewarded) == 1 ? "" : "s"));
  }
  if (report.on_policy) return;
  const auto n = static_cast<double>(events.size());
  const auto warn = [&](std::string_view text) { report.warnings.emplace_back(text); };
  double squares = 0;
  for (const ScoredEvent& event : events) squares += event.weight * event.weight;
  if (squares == 0) {
    report.warnings.emplace_back(
        "no support: the log never chose an action that this policy would choose");
    return;
  }
  if (report.effective_sample < kFewEffective) {
    warn(
        fmt::format("thin support: the effective sample size is about {:.0f} of {} events; expect "
                    "wide intervals, and bootstrap intervals that are too narrow",
                    report.effective_sample, events.size()));
  }
  if (report.accepted < kFewAccepted) {
    warn(fmt::format("replay rests on {} event{}", report.accepted,
                     report.accepted == 1 ? "" : "s"));
  }
  const double share = report.largest_weight / (report.mean_weight * n);
  if (share > kHeavyShare && report.effective_sample >= 1) {
    warn(fmt::format("one event carries {:.0f}% of all weight (weight {:.4g})", 100 * share,
                     report.largest_weight));
  }
  if (report.unsupported.value_or(0) > kUnsupportedShare) {
    warn(
        fmt::format("{:.1f}% of this policy's choices are of actions that the log could not have "
                    "chosen: ips counts them as reward 0, dr and dm trust the reward model",
                    100 * *report.unsupported));
  }
  const double variance = std::max(0.0, squares / n - report.mean_weight * report.mean_weight);
  const double error = std::sqrt(variance / n);
  const double off = report.mean_weight - 1;
  if (std::abs(off) > kSurprise * error + 0.01 &&
      !(report.unsupported.value_or(0) > 0 && off < 0)) {
    warn(
        fmt::format("the weights average {:.3f} where 1 is expected: the log's propensities are "
                    "wrong, or the log lacks some choices of this policy",
                    report.mean_weight));
  }
}

TargetReport Report(const LoggedDecisions& log, Target& target, const Evaluation& evaluation,
                    const EvaluationOptions& options) {
  const ScoredLog scored = ScoreEvents(log, target,
                                       {.range = evaluation.range,
                                        .smallest_propensity = evaluation.smallest_propensity,
                                        .ridge = options.ridge,
                                        .learn = options.learn,
                                        .seed = options.seed,
                                        .between = options.between});
  TargetReport report;
  report.name = target.name();
  report.on_policy = target.on_policy();
  double unsupported = 0;
  for (const ScoredEvent& event : scored.events) {
    report.accepted += event.accepted ? 1 : 0;
    report.largest_weight = std::max(report.largest_weight, event.weight);
    report.mean_weight += event.weight / static_cast<double>(log.size());
    unsupported += event.unsupported / static_cast<double>(log.size());
  }
  if (!std::isnan(unsupported)) report.unsupported = unsupported;
  report.weight_bound = scored.weight_bound;
  report.effective_sample = EffectiveSampleSize(scored.events);

  std::vector<Estimator> estimators(kOffPolicyEstimators.begin(), kOffPolicyEstimators.end());
  if (target.on_policy()) estimators = {Estimator::kMean};
  // One thread: targets run in parallel already.
  const auto bootstrap = Bootstrap(estimators, scored.events,
                                   {.resamples = options.resamples,
                                    .confidence = options.confidence,
                                    .seed = options.seed,
                                    .threads = 1});
  for (std::size_t e = 0; e < estimators.size(); ++e) {
    report.estimates.push_back({.estimator = estimators[e],
                                .value = EstimateValue(estimators[e], scored.events),
                                .bootstrap = bootstrap[e],
                                .guaranteed = GuaranteedInterval(
                                    estimators[e], scored, evaluation.range, options.confidence)});
  }
  AddWarnings(scored.events, evaluation.range.low, report);
  return report;
}

std::vector<std::string> LogWarnings(const LoggedDecisions& log) {
  std::size_t certain = 0;
  for (std::size_t i = 0; i < log.size(); ++i) {
    certain += log.event(i).propensity == 1 && log.candidate_count(i) > 1 ? 1 : 0;
  }
  if (2 * certain < log.size()) return {};
  return {
      fmt::format("{} of {} decisions were made without any chance for the other candidates "
                  "(propensity 1): they say nothing about other choices",
                  certain, log.size())};
}

}  // namespace

Result<Evaluation> Evaluate(const LoggedDecisions& log,
                            std::span<const std::unique_ptr<Target>> targets,
                            const EvaluationOptions& options) {
  if (log.size() == 0) return Status::InvalidArgument("the log has no decisions");
  CODBAND_RETURN_IF_ERROR(CheckOptions(options));
  Evaluation evaluation;
  evaluation.events = log.size();
  evaluation.warnings = LogWarnings(log);
  CODBAND_RETURN_IF_ERROR(FindRange(log, options, evaluation));
  evaluation.targets.resize(targets.size());
  ParallelFor(targets.size(), options.threads, [&](std::size_t t) {
    evaluation.targets[t] = Report(log, *targets[t], evaluation, options);
    if (options.progress) options.progress(1 / static_cast<double>(targets.size()));
  });
  return evaluation;
}

}  // namespace codband::eval
