#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "codband/base/status.h"
#include "codband/policy/registry.h"
#include "codband/policy/user_graph.h"
#include "codband/sim/environment.h"
#include "codband/sim/metrics.h"
#include "codband/sim/schedule.h"

namespace codband::sim {

// The result of one policy in one environment.
struct RunResult {
  std::vector<double> regret;  // accumulated up to each checkpoint
  ChangeMetrics changes;
  ClusterMetrics clusters;  // over all checkpoints
  std::size_t models = 0;   // at the end
  // Processor time of choosing and learning, in microseconds per step: over all rounds, and over
  // each half of them.
  double us_per_step = 0;
  double us_per_step_first_half = 0;
  double us_per_step_second_half = 0;

  // If RunSpec::record_users: the model of every user at each checkpoint (kNoModel: none), and the
  // user and round of every true change.
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
  PolicyFactory make_policy = MakePolicy;
};

// How many rounds have been played at each checkpoint.
std::vector<std::size_t> CheckpointRounds(std::size_t rounds, std::size_t checkpoints);

// Plays one run. A function of its arguments alone, apart from timings. `progress` is called with
// the share of the run done since the last call.
Result<RunResult> PlayOne(const MakeEnvironment& make_environment, const RunSpec& spec,
                          std::uint64_t seed, const ProgressFunction& progress = {});

// Many runs ---------------------------------------------------------------------------------------

// A run that was checked and can be played.
struct PlannedRun {
  MakeEnvironment make_environment;
  RunSpec spec;
  std::uint64_t seed = 1;
  // As PlanRun found them.
  std::string full_spec = {};  // the policy's, with every parameter
  std::size_t rounds = 0;
  std::size_t users = 0;
  // For the caller to set.
  double cost = 1;            // estimated running time, relative to the other runs
  std::string identity = {};  // its key in the archive; empty: it is not kept
};

// kInvalidArgument if the environment or the policy cannot be made.
Result<PlannedRun> PlanRun(MakeEnvironment make_environment, RunSpec spec, std::uint64_t seed);

// Keeps finished runs, so that interrupted work can be resumed. An identity holds everything that
// determines the result of a run. Thread-safe for different identities.
class RunArchive {
 public:
  virtual ~RunArchive() = default;
  // None if the run was never finished, or if what was kept cannot be read.
  virtual std::optional<RunResult> Load(const std::string& identity) const = 0;
  virtual Status Save(const std::string& identity, const RunResult& run) const = 0;
};

struct PlayOptions {
  std::size_t threads = 1;
  const RunArchive* archive = nullptr;
  // Called once before anything is played, with the number of runs found in the archive.
  std::function<void(std::size_t resumed)> resumed = {};
  std::function<void(const PlannedRun& run)> started = {};  // from any thread
  ProgressFunction progress = {};                           // of the runs that are played
};

struct PlayedRuns {
  std::vector<RunResult> results;  // in the order of the runs
  std::size_t resumed = 0;         // of them, found in the archive
};

// Plays the runs that the archive does not have, the most expensive first, and saves each as soon
// as it is finished. A run of the archive that does not have the shape its plan asks for is played
// again. After a failure no further run starts, and the first failure is returned.
Result<PlayedRuns> PlayRuns(std::span<const PlannedRun> runs, const PlayOptions& options);

// Comparisons -------------------------------------------------------------------------------------

struct RunnerOptions {
  std::vector<std::string> policies;
  std::uint64_t first_seed = 1;
  std::size_t seeds = 1;  // first_seed, first_seed + 1, …
  std::size_t threads = 1;
  std::size_t checkpoints = 100;       // at most; fewer if there are fewer rounds
  const UserGraph* friends = nullptr;  // for policies that can use them
  ProgressFunction progress = {};
  PolicyFactory make_policy = MakePolicy;

  // kInvalidArgument if there is nothing to play.
  Status Validate() const;
};

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
