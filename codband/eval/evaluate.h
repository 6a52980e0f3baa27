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
  std::function<void()> between = {};  // called at every event; ends the evaluation if it throws
};

struct Estimate {
  Estimator estimator = Estimator::kMean;
  std::optional<double> value;  // none: no event supports it
  std::optional<BootstrapResult> bootstrap;
  std::optional<Interval> guaranteed;
};

struct TargetReport {
  std::string name;
  bool on_policy = false;
  std::vector<Estimate> estimates;  // kMean alone if on_policy, else all others
  double effective_sample = 0;
  std::size_t accepted = 0;           // events that replay accepted
  double largest_weight = 0;          // of the log
  double weight_bound = 0;            // the largest possible one
  double mean_weight = 0;             // about 1 if the log's propensities are right
  std::optional<double> unsupported;  // mean probability of actions the log cannot choose, if known
  std::vector<std::string> warnings;  // for people
};

struct Evaluation {
  std::size_t events = 0;
  RewardRange range;
  double smallest_propensity = 1;
  bool all_probabilities = false;     // the log has the probability of every candidate
  std::vector<TargetReport> targets;  // in the order given
  std::vector<std::string> warnings;  // of the log itself
};

// Estimates the value of every target from the log. The estimates of a target depend neither on
// threads nor on the other targets. kInvalidArgument for a log without events, rewards outside the
// range, a propensity below smallest_propensity, and options out of range; the message starts with
// the name of the option.
Result<Evaluation> Evaluate(const LoggedDecisions& log,
                            std::span<const std::unique_ptr<Target>> targets,
                            const EvaluationOptions& options);

}  // namespace codband::eval
