// codband simulate: policies side by side on a simulated population.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <optional>
#include <vector>

#include "codband/base/clock.h"
#include "codband/base/file.h"
#include "codband/cli/command.h"
#include "codband/cli/run_flags.h"
#include "codband/experiments/comparison_output.h"
#include "codband/experiments/simulation_settings.h"
#include "codband/policy/registry.h"

namespace codband::cli {
namespace {

struct SimulateFlags {
  SettingFlags settings;
  std::string policies;
  std::string friends;
  RunFlags runs;
  OutputFlags output;
};

constexpr std::string_view kSimulateFooter = R"(
Examples:
  codband simulate
      all policies on the paper's second setting (100 users, 3000 rounds): some minutes
  codband simulate --users 30 --models 5 --rounds 1000 --period 200:600 --policies linucb,codband
      a small population, a few seconds
  codband simulate --setting 3 --policies linucb,codband:paper,likelihood=joint --seeds 5 --format json
      five seeds of the stationary setting as JSON; 'p=v' belongs to the policy before it
  codband simulate --rewards clicks --order random --arms 10 --pool 10 --policies linucb,codband
      clicks instead of Gaussian rewards, users in random order, the same ten arms at every visit
  codband simulate --seeds 3 --out results
      also writes results/report.html with figures, and the numbers as JSON and CSV

A round has N visits, one slot for each of the N users.

With --partitions the same seeds are played with one partition too, and what the others cost
beside it is shown: in all, and after the first tenth of the rounds.

Settings (--setting): in 1 a user changes to a popular parameter or a new one (Chinese restaurant
process), in 2 to another parameter of a fixed set, in 3 never, in 4 always to a new parameter that no
user had before.

Rewards, for an arm with features x and a user with parameter θ; v = xᵀθ is from -1 to 1:
  gaussian     v + N(0, SIGMA²)
  clicks       Bernoulli with probability (1 + v) / 2
  rare-clicks  Bernoulli with probability 0.05 + 0.5 v, clipped to [0, 1]
  counts       Poisson with mean 1 + 2 v, at least 0
  ratings      3 + 2 (v + N(0, SIGMA²))
Regret is in the unit of the rewards. Policies that take the noise as a parameter are given the
standard deviation of a reward at v = 0.

The result of a policy depends on the population, the seed and its own parameters only, never on
--threads or on the other policies.)";

// A command that repeats the run, whatever this command line left to defaults.
std::string CommandFor(const sim::SyntheticOptions& environment, const sim::RunnerOptions& runner,
                       const std::string& friends) {
  return fmt::format("codband simulate {}{} --policies {} --seed {} --seeds {}",
                     experiments::SimulationFlags(environment),
                     friends.empty() ? "" : " --friends " + friends,
                     fmt::join(runner.policies, ","), runner.first_seed, runner.seeds);
}

// Several partitions are compared with one: the second comparison.
Result<std::vector<sim::Comparison>> Play(const sim::SyntheticOptions& environment,
                                          sim::RunnerOptions runner) {
  sim::SyntheticOptions one = environment;
  one.partitions = 1;
  const auto in = [](const sim::SyntheticOptions& population) -> sim::MakeEnvironment {
    return [population](std::uint64_t seed) { return sim::MakeSynthetic(population, seed); };
  };
  std::vector<sim::MakeEnvironment> kinds = {in(environment)};
  if (environment.partitions > 1) kinds.push_back(in(one));
  PercentBar bar(kinds.size() * runner.policies.size() * runner.seeds, "runs");
  runner.progress = bar.Shares();
  auto comparisons = sim::CompareAll(kinds, runner);
  bar.Finish();
  return comparisons;
}

Status RunSimulate(const SimulateFlags& flags, const Command& command) {
  const auto environment = experiments::ParseSimulation(flags.settings.Texts(command));
  if (!environment.ok()) return environment.status();
  const auto format = flags.output.ParseFormat();
  if (!format.ok()) return format.status();
  sim::RunnerOptions runner{.policies = flags.policies.empty() ? RegisteredSpecs()
                                                               : SplitPolicyList(flags.policies)};
  CODBAND_RETURN_IF_ERROR(flags.runs.Parse(runner.first_seed, runner.seeds, runner.threads));
  UserGraph friends;
  if (!flags.friends.empty()) {
    const auto text = ReadFile(flags.friends);
    if (!text.ok()) return text.status();
    auto graph = UserGraph::Parse(text.value());
    if (!graph.ok()) return graph.status();
    friends = std::move(graph).value();
    runner.friends = &friends;
  }
  CODBAND_RETURN_IF_ERROR(flags.output.MakeDirectory());

  const double start = WallSeconds();
  auto comparisons = Play(environment.value(), runner);
  if (!comparisons.ok()) return comparisons.status();
  std::optional<sim::Comparison> alone;
  if (comparisons.value().size() > 1) alone = std::move(comparisons.value().back());
  return Deliver(experiments::ComparisonRecord{.environment = environment.value(),
                                               .first_seed = runner.first_seed,
                                               .seeds = runner.seeds,
                                               .command = CommandFor(environment.value(), runner,
                                                                     flags.friends),
                                               .seconds = WallSeconds() - start,
                                               .comparison = std::move(comparisons.value().front()),
                                               .alone = std::move(alone)},
                 format.value(), flags.output.out);
}

}  // namespace

void AddSimulateCommand(CLI::App& app, Status& status) {
  auto flags = std::make_shared<SimulateFlags>();
  const Command command(app, "simulate", "Compare policies on a simulated, changing population",
                        kSimulateFooter);
  flags->settings.Add(command, experiments::SimulationSettings());
  command.Option("--policies", flags->policies, "LIST",
                 "Comma-separated, see 'codband policies' (default: all)");
  command.Option(
      "--friends", flags->friends, "FILE",
      "Friendships, two user ids (from 0) on each line, for policies with prior=friends");
  flags->runs.Add(command, "Number of seeds, counting up (default 1)");
  flags->output.AddFormat(command);
  flags->output.AddOut(command);
  command.Run(status, [flags, command] { return RunSimulate(*flags, command); });
}

}  // namespace codband::cli
