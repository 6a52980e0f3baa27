#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codband/base/status.h"
#include "codband/eval/estimators.h"
#include "codband/eval/intervals.h"
#include "codband/eval/logged_decisions.h"
#include "codband/eval/reward_range.h"
#include "codband/eval/scoring.h"
#include "codband/eval/target.h"

namespace codband::eval {

struct EvaluationOptions {
  std::optional<double> reward_low = {};   // none: the smallest in the log, or 0 if that is smaller
  std::optional<double> reward_high = {};  // none: the largest in the log, or 1 if that is larger
  std::optional<double> smallest_propensity = {};  // none: the smallest in the log
  double confidence = 0.95;
  std::size_t resamples = 1000;
  double ridge = 1;  // λ of the reward model
  LearnFrom learn = LearnFrom::kAll;
  std::uint64_t seed = 1;
  std::size_t threads = 1;
  std::function<void(double share)> progress = {};  // the share done since the last call
};

struct Estimate {
  Estimator estimator = Estimator::kMean;
  std::optional<double> value;  // none: no event to learn it from
  std::optional<BootstrapResult> bootstrap;
  std::optional<Interval> guaranteed;
};

struct TargetReport {
  std::string name;
  bool on_policy = false;
  std::vector<Estimate> estimates;  // kMean alone for the log's own policy, else all others
  double effective_sample = 0;
  std::size_t accepted = 0;           // events that replay used
  double largest_weight = 0;          // that there was
  double weight_bound = 0;            // that there could have been
  double mean_weight = 0;             // about 1 if the log's propensities are right
  std::optional<double> unsupported;  // mean chance of what the log cannot choose, where known
  std::vector<std::string> warnings;  // in plain words
};

struct Evaluation {
  std::size_t events = 0;
  RewardRange range;
  double smallest_propensity = 1;
  bool all_probabilities = false;     // the log has those of every candidate, for every event
  std::vector<TargetReport> targets;  // in the order given
  std::vector<std::string> warnings;  // of the log itself
};

// Estimates the value of every target from the log, each for itself: a target's numbers depend on
// neither threads nor the other targets. kInvalidArgument for a log without events, a range that
// the log's rewards leave, a smallest propensity above one in the log, and options out of range;
// the message starts with the option's name.
Result<Evaluation> Evaluate(const LoggedDecisions& log,
                            std::span<const std::unique_ptr<Target>> targets,
                            const EvaluationOptions& options);

}  // namespace codband::eval
