#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "codband/base/status.h"
#include "codband/policy/user_graph.h"
#include "codband/sim/environment.h"
#include "codband/sim/metrics.h"

namespace codband::sim {

// What one policy did in one environment.
struct RunResult {
  std::vector<double> regret;  // accumulated up to each checkpoint
  ChangeMetrics changes;
  ClusterMetrics clusters;  // over all checkpoints
  std::size_t models = 0;   // at the end
  // Processor time of choosing and learning, microseconds a step: over all, and over each half of
  // the rounds.
  double us_per_step = 0;
  double us_per_step_first_half = 0;
  double us_per_step_second_half = 0;

  // If they were asked for: the model of every user at each checkpoint (kNoModel: none), and who
  // changed in which round.
  std::vector<std::vector<ModelId>> user_models;
  std::vector<std::pair<UserId, std::size_t>> true_changes;

  double total_regret() const { return regret.empty() ? 0 : regret.back(); }
};

// The results of one policy, one run for each seed.
struct PolicyResults {
  std::string spec;  // as it was asked for
  std::vector<RunResult> runs;
};

using MakeEnvironment = std::function<Result<std::unique_ptr<Environment>>(std::uint64_t seed)>;

// One policy in one kind of environment.
struct RunSpec {
  std::string policy;
  std::size_t checkpoints = 100;       // at most; fewer if there are fewer rounds
  bool record_users = false;           // fill user_models and true_changes
  const UserGraph* friends = nullptr;  // for policies that can use them
};

// How many rounds have been played at each checkpoint.
std::vector<std::size_t> CheckpointRounds(std::size_t rounds, std::size_t checkpoints);

// Plays one run. A function of its arguments alone, but for timings. `progress` is called with the
// share of the run done since the last call.
Result<RunResult> PlayOne(const MakeEnvironment& make_environment, const RunSpec& spec,
                          std::uint64_t seed, const std::function<void(double)>& progress = {});

// Whether PlayOne would accept its arguments: the policy's full spec, or what is wrong.
Result<std::string> ValidateRun(const MakeEnvironment& make_environment, const RunSpec& spec,
                                std::uint64_t seed);

struct RunnerOptions {
  std::vector<std::string> policies;
  std::uint64_t first_seed = 1;
  std::size_t seeds = 1;  // first_seed, first_seed + 1, …
  std::size_t threads = 1;
  std::size_t checkpoints = 100;       // at most; fewer if there are fewer rounds
  const UserGraph* friends = nullptr;  // for policies that can use them
  // Called with the share of all work done since the last call, from any thread.
  std::function<void(double)> progress = {};

  // kInvalidArgument if there is nothing to play.
  Status Validate() const;
};

// One of the runs that the options ask for.
struct RunIndex {
  std::size_t kind = 0;    // of what it is played in
  std::size_t policy = 0;  // among the policies
  std::size_t seed = 0;    // counted from 0
};

// Calls `play` for every policy and seed in each of `kinds` kinds, on the threads of the options.
// `progress` of a run is called with the share of that run done since the last call.
using PlayRun =
    std::function<void(const RunIndex& run, const std::function<void(double)>& progress)>;
void PlayRuns(std::size_t kinds, const RunnerOptions& options, const PlayRun& play);

struct Comparison {
  std::vector<std::size_t> checkpoint_rounds;  // how many rounds were played at each checkpoint
  std::vector<PolicyResults> policies;         // in the order asked for
};

// Plays every policy on every seed. Each (policy, seed) is a run of its own, with an environment of
// its own made from the seed: the rounds are the same for all policies, and a policy's result does
// not depend on threads, on the other policies, or on the number of seeds.
// kInvalidArgument for an unknown policy or parameter, before anything is played.
Result<Comparison> Compare(const MakeEnvironment& make_environment, const RunnerOptions& options);

// The same in several kinds of environment; all runs of all of them share the threads.
Result<std::vector<Comparison>> CompareAll(std::span<const MakeEnvironment> kinds,
                                           const RunnerOptions& options);

}  // namespace codband::sim
