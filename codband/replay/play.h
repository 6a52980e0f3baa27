#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "codband/base/status.h"
#include "codband/policy/policy.h"
#include "codband/replay/recorded_stream.h"
#include "codband/sim/runner.h"

namespace codband::replay {

// The most models that a run describes.
inline constexpr std::size_t kPopularModels = 12;

// What one policy did with one seed.
struct ReplayRun {
  std::vector<double> reward_curve;   // cumulative reward at each checkpoint
  std::vector<double> matched_curve;  // events that counted up to each checkpoint; in a stream of
                                      // positives all of them
  double times_chance = 0;            // the reward (of a log: per event that counted) as a multiple
                                      // of chance; NaN if none counted
  double changes_per_1000 = 0;        // detected changes per 1000 events that were learned from
  std::size_t models = 0;             // at the end
  double us_per_event = 0;            // processor time of choosing and learning, microseconds
  // The events after which a change was detected, ascending.
  std::vector<std::size_t> changes = {};
  // Where models are shared: those with the most users at the end, in descending order.
  std::vector<ModelDescription> popular_models = {};

  double reward() const { return reward_curve.back(); }
  double matched() const { return matched_curve.back(); }
  // Reward per event that counted: the click-through rate of a log. NaN if none counted.
  double mean_reward() const { return reward() / matched(); }
  // Its standard error for independent events with 0/1 rewards.
  double mean_reward_error() const;
};

// Plays a fresh policy on the stream. Candidates are shuffled; the order depends on the seed and
// the event only. The policy's keys are {seed, number of the event}. The reward follows the choice
// immediately. In a stream of positives it is 1 for the positive candidate and 0 for the others. In
// a log it is known only where the policy chooses what was shown: such events count; from all
// others the policy learns nothing, and they are not counted (rejection sampling). Because the log
// chose uniformly at random, the events that count are distributed as if the policy had run live,
// and the reward per event that counts is unbiased (Li, Chu, Langford & Wang, WSDM 2011, Theorem
// 1). Deterministic except for the timing. `progress` is called with the share done since the last
// call. Preconditions: the stream has events, and the policy has its dimension.
ReplayRun PlayStream(const RecordedStream& stream, Policy& policy, std::uint64_t seed,
                     std::size_t checkpoints = 100,
                     const std::function<void(double)>& progress = {});

struct ReplayResults {
  std::string spec;  // as requested
  std::vector<ReplayRun> runs;
};

struct ReplayComparison {
  std::vector<std::size_t> checkpoint_events;  // events played at each checkpoint
  // The expected reward of random choice by then; for a log, the log's own reward.
  std::vector<double> checkpoint_chance;
  std::vector<ReplayResults> policies;  // in the order requested
};

// Plays every policy with every seed. Runs are independent: a result depends neither on threads,
// nor on the other policies, nor on the number of seeds. kInvalidArgument, before anything is
// played, for a policy that cannot be made, such as a yardstick that needs the ground truth.
Result<ReplayComparison> CompareOnStream(const RecordedStream& stream,
                                         const sim::RunnerOptions& options);

}  // namespace codband::replay
