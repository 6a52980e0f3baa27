#include "codband/sim/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "codband/base/clock.h"
#include "codband/base/parallel.h"
#include "codband/policy/registry.h"

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

  RunResult Play(const std::function<void(double)>& progress) {
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

  // One visit after the other; the reward follows the choice at once. Nothing but the policy is
  // timed.
  double PlayRound(std::size_t round) {
    const double start = ThreadCpuSeconds();
    for (std::size_t slot = 0; slot < visits_.size(); ++slot) {
      const Visit& visit = visits_[slot];
      const EventKey key{.seed = seed_, .event = round * visits_.size() + slot};
      Decision& decision = decisions_[slot];
      policy_.Choose(visit.user, {.features = visit.arms, .dim = environment_.dim()}, key,
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
  // By user: the model of the last choice, and whether there was a change since the last visit.
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
  auto policy = MakePolicy(spec.policy, {.dim = environment.value()->dim(),
                                         .noise = environment.value()->noise(),
                                         .truth = environment.value().get(),
                                         .friends = spec.friends});
  if (!policy.ok()) return policy.status();
  return Players{std::move(environment).value(), std::move(policy).value()};
}

}  // namespace

Result<RunResult> PlayOne(const MakeEnvironment& make_environment, const RunSpec& spec,
                          std::uint64_t seed, const std::function<void(double)>& progress) {
  auto players = Prepare(make_environment, spec, seed);
  if (!players.ok()) return players.status();
  return Run(*players.value().environment, *players.value().policy, seed, spec).Play(progress);
}

Result<std::string> ValidateRun(const MakeEnvironment& make_environment, const RunSpec& spec,
                                std::uint64_t seed) {
  const auto players = Prepare(make_environment, spec, seed);
  if (!players.ok()) return players.status();
  return players.value().policy->spec();
}

Status RunnerOptions::Validate() const {
  if (policies.empty()) {
    return Status::InvalidArgument("policies: none given, expected at least 1");
  }
  if (seeds < 1) return Status::InvalidArgument("seeds = 0, expected at least 1");
  return {};
}

void PlayRuns(std::size_t kinds, const RunnerOptions& options, const PlayRun& play) {
  const std::size_t jobs_a_kind = options.policies.size() * options.seeds;
  const std::size_t jobs = kinds * jobs_a_kind;
  const auto progress = [&](double share) {
    if (options.progress) options.progress(share / static_cast<double>(jobs));
  };
  ParallelFor(jobs, options.threads, [&](std::size_t job) {
    play({.kind = job / jobs_a_kind,
          .policy = job % options.policies.size(),
          .seed = job % jobs_a_kind / options.policies.size()},
         progress);
  });
}

Result<std::vector<Comparison>> CompareAll(std::span<const MakeEnvironment> kinds,
                                           const RunnerOptions& options) {
  CODBAND_RETURN_IF_ERROR(options.Validate());
  const auto run_spec = [&](const std::string& policy) {
    return RunSpec{
        .policy = policy, .checkpoints = options.checkpoints, .friends = options.friends};
  };

  // Everything that can be wrong is found out before anything is played.
  std::vector<Comparison> comparisons(kinds.size());
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    Comparison& comparison = comparisons[k];
    for (const std::string& policy : options.policies) {
      const auto valid = ValidateRun(kinds[k], run_spec(policy), options.first_seed);
      if (!valid.ok()) return valid.status();
      comparison.policies.push_back(
          {.spec = policy, .runs = std::vector<RunResult>(options.seeds)});
    }
    for (std::size_t s = 0; s < options.seeds; ++s) {
      const auto environment = kinds[k](options.first_seed + s);
      if (!environment.ok()) return environment.status();
      comparison.checkpoint_rounds =
          CheckpointRounds(environment.value()->round_count(), options.checkpoints);
    }
  }

  PlayRuns(kinds.size(), options, [&](const RunIndex& index, const auto& progress) {
    auto run = PlayOne(kinds[index.kind], run_spec(options.policies[index.policy]),
                       options.first_seed + index.seed, progress);
    CODBAND_CHECK(run.ok());
    comparisons[index.kind].policies[index.policy].runs[index.seed] = std::move(run).value();
  });
  return comparisons;
}

Result<Comparison> Compare(const MakeEnvironment& make_environment, const RunnerOptions& options) {
  auto comparisons = CompareAll({&make_environment, 1}, options);
  if (!comparisons.ok()) return comparisons.status();
  return std::move(comparisons.value().front());
}

}  // namespace codband::sim
