#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "codband/eval/logged_decisions.h"
#include "codband/eval/reward_range.h"
#include "codband/eval/target.h"

namespace codband::eval {

// Which of the logged rewards a target learns from.
enum class LearnFrom {
  kAll,       // every one, after the event was scored
  kAccepted,  // those that replay accepts: a sample of what the target would have seen online
};

struct ScoringOptions {
  RewardRange range;
  double smallest_propensity = 1;  // lower bound of the log's propensities
  double ridge = 1;                // λ of the reward model
  LearnFrom learn = LearnFrom::kAll;
  std::uint64_t seed = 1;
  std::function<void()> between = {};  // called at every event; ends the scoring if it throws
};

// What the estimators need of one event. π: the target's probabilities, p: the log's, a: the logged
// choice, r: its reward, r̂: the reward model (progressive_ridge.h).
struct ScoredEvent {
  double weight = 0;       // w = π(a)/p(a)
  double reward = 0;       // r
  double predicted = 0;    // r̂(a)
  double value = 0;        // Σ_b π(b) r̂(b); NaN if the logged policy's are unknown
  double unsupported = 0;  // Σ π(b) over p(b) = 0; NaN unless all p(b) are known
  bool accepted = false;   // by rejection sampling; see estimators.h

  // Terms of the lower and the upper bound of the doubly robust value; see GuaranteedInterval.
  double robust_low = 0;
  double robust_high = 0;
};

struct ScoredLog {
  std::vector<ScoredEvent> events;
  double weight_bound = 1;  // upper bound of the weights, whatever the log had chosen
};

// Passes the target through the log in its order. At each event: probabilities, score, then
// learning. A function of its arguments. Preconditions: every propensity ≥ smallest_propensity > 0,
// rewards are in the range.
ScoredLog ScoreEvents(const LoggedDecisions& log, Target& target, const ScoringOptions& options);

}  // namespace codband::eval
