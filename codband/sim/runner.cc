#include "codband/sim/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <mutex>
#include <thread>

#include "codband/base/clock.h"
#include "codband/policy/registry.h"

namespace codband {
namespace {

std::vector<std::size_t> CheckpointRounds(std::size_t rounds, std::size_t checkpoints) {
  const std::size_t count = std::clamp<std::size_t>(checkpoints, 1, rounds);
  std::vector<std::size_t> at;
  for (std::size_t i = 1; i <= count; ++i) at.push_back(rounds * i / count);
  return at;
}

// Plays one policy through one environment.
class Run {
 public:
  Run(Environment& environment, Policy& policy, std::uint64_t seed,
      const std::vector<std::size_t>& checkpoints)
      : environment_(environment),
        policy_(policy),
        seed_(seed),
        checkpoints_(checkpoints),
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
      alarms_[user] = policy_.Learn(decision, reward, key).change_detected;
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

  void TakeCheckpoint() {
    result_.regret.push_back(regret_);
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
  const std::vector<std::size_t>& checkpoints_;
  std::vector<Visit> visits_;
  std::vector<Decision> decisions_;
  std::vector<char> alarms_;
  ChangeTracker tracker_;
  double regret_ = 0;
  RunResult result_;
};

// Calls job(i) for every i < count on several threads; the first exception is thrown here.
void ParallelFor(std::size_t count, std::size_t threads,
                 const std::function<void(std::size_t)>& job) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        job(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        next = count;
      }
    }
  };
  std::vector<std::jthread> workers;
  for (std::size_t t = 1; t < std::min(threads, count); ++t) workers.emplace_back(work);
  work();
  workers.clear();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

double PolicyResults::mean_regret() const {
  double sum = 0;
  for (const RunResult& run : runs) sum += run.total_regret();
  return sum / static_cast<double>(runs.size());
}

double PolicyResults::sd_regret() const {
  if (runs.size() < 2) return 0;
  const double mean = mean_regret();
  double squares = 0;
  for (const RunResult& run : runs) {
    squares += (run.total_regret() - mean) * (run.total_regret() - mean);
  }
  return std::sqrt(squares / static_cast<double>(runs.size() - 1));
}

Result<Comparison> Compare(const MakeEnvironment& make_environment, const RunnerOptions& options) {
  if (options.policies.empty()) {
    return Status::InvalidArgument("policies: none given, expected at least 1");
  }
  if (options.seeds < 1) return Status::InvalidArgument("seeds = 0, expected at least 1");

  // Everything that can be wrong is found out before anything is played.
  Comparison comparison;
  for (std::size_t s = 0; s < options.seeds; ++s) {
    auto environment = make_environment(options.first_seed + s);
    if (!environment.ok()) return environment.status();
    if (s > 0) continue;
    comparison.checkpoint_rounds =
        CheckpointRounds(environment.value()->round_count(), options.checkpoints);
    const PolicyContext context{.dim = environment.value()->dim(),
                                .noise = options.noise,
                                .truth = environment.value().get()};
    for (const std::string& spec : options.policies) {
      const auto policy = MakePolicy(spec, context);
      if (!policy.ok()) return policy.status();
      comparison.policies.push_back({.spec = spec, .runs = std::vector<RunResult>(options.seeds)});
    }
  }

  const std::size_t jobs = options.policies.size() * options.seeds;
  const auto progress = [&](double share) {
    if (options.progress) options.progress(share / static_cast<double>(jobs));
  };
  ParallelFor(jobs, options.threads, [&](std::size_t job) {
    const std::size_t s = job / options.policies.size();
    const std::size_t p = job % options.policies.size();
    const std::uint64_t seed = options.first_seed + s;
    auto environment = make_environment(seed);
    CODBAND_CHECK(environment.ok());
    const PolicyContext context{.dim = environment.value()->dim(),
                                .noise = options.noise,
                                .truth = environment.value().get()};
    auto policy = MakePolicy(options.policies[p], context);
    CODBAND_CHECK(policy.ok());
    comparison.policies[p].runs[s] =
        Run(*environment.value(), *policy.value(), seed, comparison.checkpoint_rounds)
            .Play(progress);
  });
  return comparison;
}

}  // namespace codband
