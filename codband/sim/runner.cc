#include "codband/sim/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "codband/base/clock.h"
#include "codband/policy/registry.h"
#include "codband/sim/partitioned_policy.h"

namespace codband::sim {

std::vector<std::size_t> CheckpointRounds(std::size_t rounds, std::size_t checkpoints) {
  const std::size_t count = std::clamp<std::size_t>(checkpoints, 1, rounds);
  std::vector<std::size_t> at;
  for (std::size_t i = 1; i <= count; ++i) at.push_back(rounds * i / count);
  return at;
}

namespace {

// Plays one policy through one environment.
class Run {
 public:
  Run(Environment& environment, Policy& policy, std::uint64_t seed, const RunSpec& spec)
      : environment_(environment),
        policy_(policy),
        seed_(seed),
        checkpoints_(CheckpointRounds(environment.round_count(), spec.checkpoints)),
        record_users_(spec.record_users),
        visits_(environment.user_count()),
        decisions_(environment.user_count()),
        alarms_(environment.user_count()),
        models_(environment.user_count(), kNoModel),
        changed_(environment.user_count()),
        tracker_(environment.user_count()) {}

  RunResult Play(const ProgressFunction& progress) {
    const std::size_t rounds = environment_.round_count();
    double seconds[2] = {};
    for (std::size_t round = 0; round < rounds; ++round) {
      environment_.StartRound(round);
      NoteChanges(round);
      for (std::size_t slot = 0; slot < visits_.size(); ++slot) {
        environment_.MakeVisit(slot, visits_[slot]);
      }
      seconds[2 * round >= rounds] += PlayRound(round);
      Score();
      if (round + 1 == checkpoints_[result_.regret.size()]) {
        TakeCheckpoint();
        if (progress) progress(1 / static_cast<double>(checkpoints_.size()));
      }
    }
    result_.changes = tracker_.metrics();
    result_.models = policy_.model_count();
    const std::size_t first_half = (rounds + 1) / 2;
    const auto us_per_step = [&](double total, std::size_t played) {
      return played == 0 ? 0 : 1e6 * total / static_cast<double>(played * visits_.size());
    };
    result_.us_per_step = us_per_step(seconds[0] + seconds[1], rounds);
    result_.us_per_step_first_half = us_per_step(seconds[0], first_half);
    result_.us_per_step_second_half = us_per_step(seconds[1], rounds - first_half);
    return std::move(result_);
  }

 private:
  void NoteChanges(std::size_t round) {
    for (UserId user = 0; user < changed_.size(); ++user) {
      if (!environment_.changed(user)) continue;
      changed_[user] = 1;
      if (record_users_) result_.true_changes.push_back({user, round});
    }
  }

  // Visit after visit; the reward follows the choice at once. Only the policy is timed.
  double PlayRound(std::size_t round) {
    const double start = ThreadCpuSeconds();
    for (std::size_t slot = 0; slot < visits_.size(); ++slot) {
      const Visit& visit = visits_[slot];
      const EventKey key{.seed = seed_, .event = round * visits_.size() + slot};
      Decision& decision = decisions_[slot];
      policy_.Choose(visit.user,
                     {.features = visit.arms, .dim = environment_.dim(), .items = visit.items}, key,
                     decision);
      alarms_[slot] =
          policy_.Learn(decision, visit.rewards[decision.arm], key).change_detected ? 1 : 0;
    }
    return ThreadCpuSeconds() - start;
  }

  void Score() {
    for (std::size_t slot = 0; slot < visits_.size(); ++slot) {
      const UserId user = visits_[slot].user;
      const std::vector<double>& means = visits_[slot].means;
      regret_ += *std::ranges::max_element(means) - means[decisions_[slot].arm];
      models_[user] = decisions_[slot].model;
      tracker_.Step(user, std::exchange(changed_[user], 0) != 0, alarms_[slot] != 0);
    }
  }

  void TakeCheckpoint() {
    result_.regret.push_back(regret_);
    if (record_users_) result_.user_models.push_back(models_);
    std::vector<ModelId> models;
    std::vector<ModelId> truth;
    for (UserId user = 0; user < models_.size(); ++user) {
      if (models_[user] == kNoModel) continue;
      models.push_back(models_[user]);
      truth.push_back(environment_.model_of(user));
    }
    result_.clusters.Add(CompareClusters(models, truth));
  }

  Environment& environment_;
  Policy& policy_;
  std::uint64_t seed_;
  std::vector<std::size_t> checkpoints_;
  bool record_users_;
  // By slot of the current round.
  std::vector<Visit> visits_;
  std::vector<Decision> decisions_;
  std::vector<char> alarms_;
  // By user: the model of the last choice, and whether they changed since their last visit.
  std::vector<ModelId> models_;
  std::vector<char> changed_;
  ChangeTracker tracker_;
  double regret_ = 0;
  RunResult result_;
};

struct Players {
  std::unique_ptr<Environment> environment;
  std::unique_ptr<Policy> policy;
};

Result<Players> Prepare(const MakeEnvironment& make_environment, const RunSpec& spec,
                        std::uint64_t seed) {
  auto environment = make_environment(seed);
  if (!environment.ok()) return environment.status();
  if (environment.value()->round_count() == 0) {
    return Status::InvalidArgument("rounds = 0, expected at least 1");
  }
  const PolicyContext context{.dim = environment.value()->dim(),
                              .noise = environment.value()->noise(),
                              .truth = environment.value().get(),
                              .friends = spec.friends};
  const auto make = [&] { return spec.make_policy(spec.policy, context); };
  auto policy = MakePartitioned(environment.value()->partitions(), make);
  if (!policy.ok()) return policy.status();
  return Players{std::move(environment).value(), std::move(policy).value()};
}

// Whether a result has as many numbers as the run would give.
bool HasShape(const RunResult& result, const PlannedRun& run) {
  const std::size_t points = CheckpointRounds(run.rounds, run.spec.checkpoints).size();
  return result.regret.size() == points &&
         result.user_models.size() == (run.spec.record_users ? points : 0) &&
         std::ranges::all_of(result.user_models, [&](const std::vector<ModelId>& models) {
           return models.size() == run.users;
         });
}

std::optional<RunResult> LoadRun(const PlannedRun& run, const RunArchive* archive) {
  if (archive == nullptr || run.identity.empty()) return std::nullopt;
  auto result = archive->Load(run.identity);
  if (result && !HasShape(*result, run)) result.reset();
  return result;
}

}  // namespace

Result<RunResult> PlayOne(const MakeEnvironment& make_environment, const RunSpec& spec,
                          std::uint64_t seed, const ProgressFunction& progress) {
  auto players = Prepare(make_environment, spec, seed);
  if (!players.ok()) return players.status();
  return Run(*players.value().environment, *players.value().policy, seed, spec).Play(progress);
}

Result<PlannedRun> PlanRun(MakeEnvironment make_environment, RunSpec spec, std::uint64_t seed) {
  const auto players = Prepare(make_environment, spec, seed);
  if (!players.ok()) return players.status();
  return PlannedRun{.make_environment = std::move(make_environment),
                    .spec = std::move(spec),
                    .seed = seed,
                    .full_spec = players.value().policy->spec(),
                    .rounds = players.value().environment->round_count(),
                    .users = players.value().environment->user_count()};
}

Result<PlayedRuns> PlayRuns(std::span<const PlannedRun> runs, const PlayOptions& options) {
  PlayedRuns played{.results = std::vector<RunResult>(runs.size())};
  std::vector<std::size_t> open;
  std::vector<double> costs;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    auto found = LoadRun(runs[r], options.archive);
    if (found) {
      played.results[r] = *std::move(found);
      ++played.resumed;
    } else {
      open.push_back(r);
      costs.push_back(runs[r].cost);
    }
  }
  if (options.resumed) options.resumed(played.resumed);
  const auto play = [&](std::size_t job, const ProgressFunction& progress) -> Status {
    const PlannedRun& run = runs[open[job]];
    if (options.started) options.started(run);
    auto result = PlayOne(run.make_environment, run.spec, run.seed, progress);
    if (!result.ok()) return result.status();
    if (options.archive != nullptr && !run.identity.empty()) {
      CODBAND_RETURN_IF_ERROR(options.archive->Save(run.identity, result.value()));
    }
    played.results[open[job]] = std::move(result).value();
    return {};
  };
  CODBAND_RETURN_IF_ERROR(
      RunJobs(costs, {.threads = options.threads, .progress = options.progress}, play));
  return played;
}

Status RunnerOptions::Validate() const {
  if (policies.empty()) {
    return Status::InvalidArgument("policies: none given, expected at least 1");
  }
  if (seeds < 1) return Status::InvalidArgument("seeds = 0, expected at least 1");
  return {};
}

Result<std::vector<Comparison>> CompareAll(std::span<const MakeEnvironment> kinds,
                                           const RunnerOptions& options) {
  CODBAND_RETURN_IF_ERROR(options.Validate());

  // Everything that can be wrong is found before anything is played.
  std::vector<PlannedRun> runs;
  std::vector<Comparison> comparisons(kinds.size());
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    for (const std::string& policy : options.policies) {
      const auto planned = PlanRun(kinds[k],
                                   {.policy = policy,
                                    .checkpoints = options.checkpoints,
                                    .friends = options.friends,
                                    .make_policy = options.make_policy},
                                   options.first_seed);
      if (!planned.ok()) return planned.status();
      for (std::size_t s = 0; s < options.seeds; ++s) {
        runs.push_back(planned.value());
        runs.back().seed = options.first_seed + s;
      }
    }
    for (std::size_t s = 0; s < options.seeds; ++s) {
      const auto environment = kinds[k](options.first_seed + s);
      if (!environment.ok()) return environment.status();
    }
    comparisons[k].checkpoint_rounds = CheckpointRounds(runs.back().rounds, options.checkpoints);
  }

  auto played = PlayRuns(runs, {.threads = options.threads, .progress = options.progress});
  if (!played.ok()) return played.status();
  auto next = played.value().results.begin();
  for (Comparison& comparison : comparisons) {
    for (const std::string& policy : options.policies) {
      PolicyResults& results = comparison.policies.emplace_back(PolicyResults{policy, {}});
      for (std::size_t s = 0; s < options.seeds; ++s) results.runs.push_back(std::move(*next++));
    }
  }
  return comparisons;
}

Result<Comparison> Compare(const MakeEnvironment& make_environment, const RunnerOptions& options) {
  auto comparisons = CompareAll({&make_environment, 1}, options);
  if (!comparisons.ok()) return comparisons.status();
  return std::move(comparisons.value().front());
}

}  // namespace codband::sim
