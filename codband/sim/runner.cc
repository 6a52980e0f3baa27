#include "codband/sim/runner.h"

#include <fmt/format.h>

#include <algorithm>

#include "codband/base/clock.h"
#include "codband/base/parallel.h"
#include "codband/policy/registry.h"

namespace codband {

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
        tracker_(environment.user_count()) {}

  RunResult Play(const std::function<void(double)>& progress) {
    const std::size_t rounds = environment_.round_count();
    double seconds[2] = {};
    for (std::size_t round = 0; round < rounds; ++round) {
      environment_.StartRound(round);
      for (UserId user = 0; user < visits_.size(); ++user) {
        environment_.MakeVisit(user, visits_[user]);
      }
      seconds[2 * round >= rounds] += PlayRound(round);
      Score();
      if (record_users_) RecordChanges(round);
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
  // All users in turn; the reward follows the choice at once. Nothing but the policy is timed.
  double PlayRound(std::size_t round) {
    const double start = ThreadCpuSeconds();
    for (UserId user = 0; user < visits_.size(); ++user) {
      const Visit& visit = visits_[user];
      const EventKey key{.seed = seed_, .event = round * visits_.size() + user};
      Decision& decision = decisions_[user];
      policy_.Choose(user, {.features = visit.arms, .dim = environment_.dim()}, key, decision);
      const double reward = visit.means[decision.arm] + visit.noise;
      alarms_[user] = policy_.Learn(decision, reward, key).change_detected ? 1 : 0;
    }
    return ThreadCpuSeconds() - start;
  }

  void Score() {
    for (UserId user = 0; user < visits_.size(); ++user) {
      const std::vector<double>& means = visits_[user].means;
      regret_ += *std::ranges::max_element(means) - means[decisions_[user].arm];
      tracker_.Step(user, environment_.changed(user), alarms_[user]);
    }
  }

  void RecordChanges(std::size_t round) {
    for (UserId user = 0; user < visits_.size(); ++user) {
      if (environment_.changed(user)) result_.true_changes.push_back({user, round});
    }
  }

  void TakeCheckpoint() {
    result_.regret.push_back(regret_);
    if (record_users_) {
      std::vector<ModelId>& row = result_.user_models.emplace_back();
      for (const Decision& decision : decisions_) row.push_back(decision.model);
    }
    std::vector<ModelId> models;
    std::vector<ModelId> truth;
    for (UserId user = 0; user < decisions_.size(); ++user) {
      if (decisions_[user].model == kNoModel) continue;
      models.push_back(decisions_[user].model);
      truth.push_back(environment_.model_of(user));
    }
    result_.clusters.Add(CompareClusters(models, truth));
  }

  Environment& environment_;
  Policy& policy_;
  std::uint64_t seed_;
  std::vector<std::size_t> checkpoints_;
  bool record_users_;
  std::vector<Visit> visits_;
  std::vector<Decision> decisions_;
  std::vector<char> alarms_;
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
  auto policy = MakePolicy(
      spec.policy,
      {.dim = environment.value()->dim(), .noise = spec.noise, .truth = environment.value().get()});
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

Result<Comparison> Compare(const MakeEnvironment& make_environment, const RunnerOptions& options) {
  if (options.policies.empty()) {
    return Status::InvalidArgument("policies: none given, expected at least 1");
  }
  if (options.seeds < 1) return Status::InvalidArgument("seeds = 0, expected at least 1");
  const auto run_spec = [&](const std::string& policy) {
    return RunSpec{.policy = policy, .noise = options.noise, .checkpoints = options.checkpoints};
  };

  // Everything that can be wrong is found out before anything is played.
  Comparison comparison;
  for (const std::string& policy : options.policies) {
    const auto valid = ValidateRun(make_environment, run_spec(policy), options.first_seed);
    if (!valid.ok()) return valid.status();
    comparison.policies.push_back({.spec = policy, .runs = std::vector<RunResult>(options.seeds)});
  }
  for (std::size_t s = 0; s < options.seeds; ++s) {
    const auto environment = make_environment(options.first_seed + s);
    if (!environment.ok()) return environment.status();
    comparison.checkpoint_rounds =
        CheckpointRounds(environment.value()->round_count(), options.checkpoints);
  }

  const std::size_t jobs = options.policies.size() * options.seeds;
  const auto progress = [&](double share) {
    if (options.progress) options.progress(share / static_cast<double>(jobs));
  };
  ParallelFor(jobs, options.threads, [&](std::size_t job) {
    const std::size_t s = job / options.policies.size();
    const std::size_t p = job % options.policies.size();
    auto run =
        PlayOne(make_environment, run_spec(options.policies[p]), options.first_seed + s, progress);
    CODBAND_CHECK(run.ok());
    comparison.policies[p].runs[s] = std::move(run).value();
  });
  return comparison;
}

}  // namespace codband
