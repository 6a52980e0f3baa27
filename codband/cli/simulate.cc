// codband simulate: policies side by side on a simulated population.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "codband/base/clock.h"
#include "codband/base/file.h"
#include "codband/cli/command.h"
#include "codband/experiments/comparison_output.h"
#include "codband/policy/registry.h"
#include "codband/report/progress.h"

namespace codband::cli {
namespace {

// As typed; empty means not given.
struct SimulateFlags {
  std::string setting = "2";
  std::string users;
  std::string models;
  std::string rounds;
  std::string period;
  std::string noise;
  std::string arms;
  std::string pool;
  std::string dim;
  std::string order = "turn";
  bool drift = false;
  std::string separation;
  std::string rewards = "gaussian";
  std::string policies;
  std::string friends;
  RunFlags runs;
  std::string format = "table";
  std::string out;
};

constexpr std::size_t kMany = 1'000'000'000;

constexpr std::string_view kFooter = R"(
Examples:
  codband simulate
      all policies on the paper's second setting (100 users, 3000 rounds): some minutes
  codband simulate --users 30 --models 5 --rounds 1000 --period 200:600 --policies linucb,codband
      a small population, a few seconds
  codband simulate --setting 3 --policies linucb,codband:paper,likelihood=joint --seeds 5 --format json
      five seeds of the stationary setting as JSON; 'p=v' belongs to the policy before it
  codband simulate --rewards clicks --order random --arms 10 --pool 10 --policies linucb,codband
      clicks instead of Gaussian rewards, users come in random order, always the same ten arms
  codband simulate --seeds 3 --out results
      also writes results/report.html with figures, and the numbers as JSON and CSV

Settings: 1 users change to a popular or new parameter (Dirichlet process), 2 to another of a fixed
set, 3 never, 4 always to one that nobody had before.

Rewards, for an arm that fits the user with v = xᵀθ, from -1 to 1:
  gaussian     v + N(0, SIGMA²)
  clicks       0 or 1, with chance (1 + v) / 2
  rare-clicks  0 or 1, with chance 0.05 + 0.5 v
  counts       Poisson with mean 1 + 2 v
  ratings      3 + 2 (v + N(0, SIGMA²))
Regret is in the unit of the rewards. Policies that ask for the noise are told the standard deviation
of a reward at v = 0.

A policy's result depends on the environment, the seed and its own parameters only,
never on --threads or on the other policies.)";

Status ParsePeriod(const std::string& text, sim::SyntheticOptions& options) {
  const std::size_t colon = text.find(':');
  const Status malformed = Status::InvalidArgument(
      fmt::format("--period = '{}', expected MIN:MAX with 1 ≤ MIN ≤ MAX, such as 500:3000", text));
  if (colon == text.npos) return malformed;
  const auto min = ParseWhole("", std::string_view(text).substr(0, colon), 1, kMany);
  const auto max = ParseWhole("", std::string_view(text).substr(colon + 1), 1, kMany);
  if (!min.ok() || !max.ok() || min.value() > max.value()) return malformed;
  options.period_min = min.value();
  options.period_max = max.value();
  return {};
}

Status ParseRewards(const SimulateFlags& flags, sim::SyntheticOptions& options) {
  const auto rewards = sim::FindReward(flags.rewards);
  if (!rewards) {
    return Status::InvalidArgument(fmt::format("--rewards = '{}', expected one of {}",
                                               flags.rewards, fmt::join(sim::kRewardNames, ", ")));
  }
  options.rewards = *rewards;
  if (flags.noise.empty()) return {};
  if (!sim::HasNoise(*rewards)) {
    return Status::InvalidArgument(
        fmt::format("--noise = '{}', expected none: {} have no noise that could be set",
                    flags.noise, flags.rewards));
  }
  return Assign(ParseReal("--noise", flags.noise), options.noise);
}

Result<sim::SyntheticOptions> ParseEnvironment(const SimulateFlags& flags) {
  const auto setting = ParseWhole("--setting", flags.setting, 1, 4);
  if (!setting.ok()) return setting.status();
  sim::SyntheticOptions options =
      sim::SyntheticOptions::Paper(static_cast<sim::Setting>(setting.value()));
  const auto whole = [](const char* flag, const std::string& text, std::size_t& target) -> Status {
    if (text.empty()) return {};
    return Assign(ParseWhole(flag, text, 1, kMany), target);
  };
  CODBAND_RETURN_IF_ERROR(whole("--users", flags.users, options.users));
  CODBAND_RETURN_IF_ERROR(whole("--models", flags.models, options.models));
  CODBAND_RETURN_IF_ERROR(whole("--rounds", flags.rounds, options.rounds));
  CODBAND_RETURN_IF_ERROR(whole("--arms", flags.arms, options.arms));
  CODBAND_RETURN_IF_ERROR(whole("--pool", flags.pool, options.pool));
  CODBAND_RETURN_IF_ERROR(whole("--dim", flags.dim, options.dim));
  if (!flags.period.empty()) CODBAND_RETURN_IF_ERROR(ParsePeriod(flags.period, options));
  CODBAND_RETURN_IF_ERROR(ParseRewards(flags, options));
  if (flags.order != "turn" && flags.order != "random") {
    return Status::InvalidArgument(
        fmt::format("--order = '{}', expected turn or random", flags.order));
  }
  options.order = flags.order == "random" ? sim::VisitOrder::kRandom : sim::VisitOrder::kTurn;
  options.drift = flags.drift;
  if (!flags.separation.empty()) {
    CODBAND_RETURN_IF_ERROR(
        Assign(ParseReal("--separation", flags.separation), options.separation.emplace()));
  }
  if (const Status status = options.Validate(); !status.ok()) {
    return Status::InvalidArgument("--" + status.message());
  }
  return options;
}

// A command that repeats the run, whatever this command line left to defaults.
std::string CommandFor(const sim::SyntheticOptions& environment, const sim::RunnerOptions& runner,
                       const std::string& friends) {
  std::string command =
      fmt::format("codband simulate --setting {} --users {} --models {} --rounds {}",
                  static_cast<int>(environment.setting), environment.users, environment.models,
                  environment.rounds);
  if (environment.setting != sim::Setting::kStationary) {
    command += fmt::format(" --period {}:{}", environment.period_min, environment.period_max);
  }
  if (sim::HasNoise(environment.rewards)) command += fmt::format(" --noise {}", environment.noise);
  command += fmt::format(" --arms {} --pool {} --dim {}", environment.arms, environment.pool,
                         environment.dim);
  if (environment.order == sim::VisitOrder::kRandom) command += " --order random";
  if (environment.drift) command += " --drift";
  if (environment.separation) command += fmt::format(" --separation {}", *environment.separation);
  if (environment.rewards != sim::RewardKind::kGaussian) {
    command += fmt::format(" --rewards {}", sim::RewardName(environment.rewards));
  }
  if (!friends.empty()) command += " --friends " + friends;
  return command + fmt::format(" --policies {} --seed {} --seeds {}",
                               fmt::join(runner.policies, ","), runner.first_seed, runner.seeds);
}

Status RunSimulate(const SimulateFlags& flags) {
  const auto environment = ParseEnvironment(flags);
  if (!environment.ok()) return environment.status();
  const auto format = ParseFormat(flags.format);
  if (!format.ok()) return format.status();
  sim::RunnerOptions runner{.policies = flags.policies.empty() ? RegisteredSpecs()
                                                               : SplitPolicyList(flags.policies)};
  CODBAND_RETURN_IF_ERROR(flags.runs.Parse(runner.first_seed, runner.seeds, runner.threads));
  UserGraph friends;
  if (!flags.friends.empty()) {
    const auto text = ReadFile(flags.friends);
    if (!text.ok()) return text.status();
    CODBAND_RETURN_IF_ERROR(Assign(UserGraph::Parse(text.value()), friends));
    runner.friends = &friends;
  }
  if (!flags.out.empty()) CODBAND_RETURN_IF_ERROR(EnsureDirectory(flags.out));

  report::Progress progress({.total = 100});
  progress.SetLabel(fmt::format("% of {} runs", runner.policies.size() * runner.seeds));
  runner.progress = [&](double share) { progress.Advance(100 * share); };
  const double start = WallSeconds();
  auto comparison = sim::Compare(
      [&](std::uint64_t seed) { return sim::MakeSynthetic(environment.value(), seed); }, runner);
  progress.Finish();
  if (!comparison.ok()) return comparison.status();

  const experiments::ComparisonRecord record{
      .environment = environment.value(),
      .first_seed = runner.first_seed,
      .seeds = runner.seeds,
      .command = CommandFor(environment.value(), runner, flags.friends),
      .seconds = WallSeconds() - start,
      .comparison = std::move(comparison).value()};
  fmt::print("{}", Format(record, format.value()));
  if (flags.out.empty()) return {};
  CODBAND_RETURN_IF_ERROR(experiments::WriteReport(record, flags.out));
  fmt::print(stderr, "Report: {}/report.html\n", flags.out);
  return {};
}

}  // namespace

void AddSimulateCommand(CLI::App& app, Status& status) {
  auto flags = std::make_shared<SimulateFlags>();
  const Command command(app, "simulate", "Compare policies on a simulated, changing population",
                        kFooter);
  command.Option("--setting", flags->setting, "1|2|3|4", "How users change, see below (default 2)");
  command.Option("--users", flags->users, "N", "Users (default 100; setting 3: 500)");
  command.Option("--models", flags->models, "K",
                 "Parameters at the start (default 10; setting 3: 2)");
  command.Option("--rounds", flags->rounds, "T",
                 "Rounds of one visit for each user (default 3000; setting 3: 600)");
  command.Option("--period", flags->period, "MIN:MAX", "Rounds between changes (default 500:3000)");
  command.Option("--noise", flags->noise, "SIGMA",
                 "Noise of gaussian rewards and ratings (default 0.1)");
  command.Option("--arms", flags->arms, "A", "Arms on offer at a visit (default 10)");
  command.Option("--pool", flags->pool, "P",
                 "Arms there are (default 1000); as many as --arms: always the same");
  command.Option("--dim", flags->dim, "D", "Features of an arm (default 25)");
  command.Option("--order", flags->order, "turn|random",
                 "Who comes in a round: every user once, or each time a random one (default turn)");
  command.Switch("--drift", flags->drift, "Users change little by little instead of at once");
  command.Option(
      "--separation", flags->separation, "S",
      "About how far parameters lie apart, 0.01 to 1.4 (default: spread over the sphere)");
  command.Option("--rewards", flags->rewards, "KIND",
                 "What an arm brings, see below (default gaussian)");
  command.Option("--policies", flags->policies, "LIST",
                 "Comma-separated, see 'codband policies' (default: all)");
  command.Option(
      "--friends", flags->friends, "FILE",
      "Who is a friend of whom, two user ids (from 0) a line, for policies with prior=friends");
  command.Option("--seed", flags->runs.seed, "S", "First seed (default 1)");
  command.Option("--seeds", flags->runs.seeds, "n", "How many seeds, counting up (default 1)");
  command.Option("--threads", flags->runs.threads, "n", "Runs at a time (default: one per core)");
  command.Option("--format", flags->format, "table|json|csv", "What is printed (default table)");
  command.Option("--out", flags->out, "DIR", "Also write a report with figures to this directory");
  command.Run(status, [flags] { return RunSimulate(*flags); });
}

}  // namespace codband::cli
