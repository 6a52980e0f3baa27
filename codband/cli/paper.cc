// codband paper: the synthetic section of the paper, complete, with one command.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "codband/base/clock.h"
#include "codband/base/file.h"
#include "codband/base/parallel.h"
#include "codband/base/version.h"
#include "codband/cli/command.h"
#include "codband/experiments/paper_experiments.h"
#include "codband/experiments/paper_report.h"
#include "codband/experiments/run_store.h"
#include "codband/policy/registry.h"
#include "codband/report/progress.h"

namespace codband::cli {
namespace {

struct PaperFlags {
  bool quick = false;
  RunFlags runs;
  std::string rows;
  std::string policies;
  std::string out = "out/paper";
};

constexpr std::string_view kFooter = R"(
Runs Figure 2 (a) to (c) and the table of "When and whom to collaborate with in a changing
environment": every algorithm on every row, over several seeds, on all cores.

Results go to --out: report.html with all figures and tables, table.md, table.csv, curves.csv, and
each figure as SVG and PNG. Finished runs are kept in its folder 'runs': interrupt it whenever you
like and start the same command again, it goes on where it was.

Examples:
  codband paper --quick                          the same shape in about a minute
  codband paper --out results/paper              everything, five seeds: tens of minutes on two cores
  codband paper --rows row1,row4 --policies codband,codband:paper,dlinucb --seeds 10

Rows: row1 … row8 of the table (row1 is also Figure 2 (b)), setting1 and setting3 of Figure 2.)";

// Raised when any policy or the environment behaves differently (golden traces change), so that
// runs kept from before are not taken for those of today.
constexpr int kResultsVersion = 2;

// One run to be played or found on disk.
struct Job {
  std::size_t experiment;
  std::size_t policy;
  std::size_t seed;  // counted from 0
  sim::RunSpec spec;
  std::string identity;
  double cost;  // relative, for the order and the progress bar
};

sim::MakeEnvironment EnvironmentOf(const experiments::PaperExperiment& experiment) {
  return [options = experiment.environment](std::uint64_t seed) {
    return sim::MakeSynthetic(options, seed);
  };
}

std::string Identity(const sim::SyntheticOptions& environment, const std::string& full_spec,
                     const sim::RunSpec& spec, std::uint64_t seed) {
  return fmt::format(
      "codband {} results {} | setting {} users {} models {} rounds {} period {}:{} noise {} arms "
      "{} pool {} "
      "dim {} | {} | seed {} checkpoints {} users recorded {}",
      kVersion, kResultsVersion, static_cast<int>(environment.setting), environment.users,
      environment.models, environment.rounds, environment.period_min, environment.period_max,
      environment.noise, environment.arms, environment.pool, environment.dim, full_spec, seed,
      spec.checkpoints, spec.record_users);
}

// About how long a run takes: a step of the product likelihood costs several times one of the joint
// likelihood, and both grow with the number of models.
double RelativeCost(const sim::SyntheticOptions& environment, const std::string& full_spec) {
  const auto steps = static_cast<double>(environment.users * environment.rounds);
  if (full_spec.find("likelihood=product") != full_spec.npos) {
    return steps * (1 + static_cast<double>(environment.models));
  }
  if (full_spec.find("likelihood=joint") != full_spec.npos) {
    return steps * (1 + 0.2 * static_cast<double>(environment.models));
  }
  return steps;
}

Result<std::vector<Job>> PlanJobs(const experiments::PaperRecord& record) {
  std::vector<Job> jobs;
  for (std::size_t e = 0; e < record.experiments.size(); ++e) {
    const experiments::PaperExperiment& experiment = record.experiments[e];
    for (std::size_t p = 0; p < record.policies.size(); ++p) {
      sim::RunSpec spec{.policy = experiments::WithPaperSettings(record.policies[p], experiment),
                        .checkpoints = 150};
      for (std::size_t s = 0; s < record.seeds; ++s) {
        const auto full_spec =
            sim::ValidateRun(EnvironmentOf(experiment), spec, record.first_seed + s);
        if (!full_spec.ok()) return full_spec.status();
        spec.record_users = s == 0 && experiments::NeedsUserModels(record, e, p);
        jobs.push_back({.experiment = e,
                        .policy = p,
                        .seed = s,
                        .spec = spec,
                        .identity = Identity(experiment.environment, full_spec.value(), spec,
                                             record.first_seed + s),
                        .cost = RelativeCost(experiment.environment, full_spec.value())});
      }
    }
  }
  std::map<std::string_view, const Job*> by_identity;
  for (const Job& job : jobs) {
    const auto [same, is_new] = by_identity.emplace(job.identity, &job);
    if (!is_new) {
      return Status::InvalidArgument(fmt::format(
          "--policies: '{}' and '{}' are the same in {}", record.policies[same->second->policy],
          record.policies[job.policy], record.experiments[job.experiment].name));
    }
  }
  // The longest first, so that no core is left with a long one at the end.
  std::ranges::stable_sort(jobs, std::greater{}, &Job::cost);
  return jobs;
}

// Whether a run found on disk has as many numbers as one that was played.
bool HasShape(const sim::RunResult& run, const sim::SyntheticOptions& environment,
              const sim::RunSpec& spec) {
  const std::size_t points = sim::CheckpointRounds(environment.rounds, spec.checkpoints).size();
  return run.regret.size() == points &&
         run.user_models.size() == (spec.record_users ? points : 0) &&
         std::ranges::all_of(run.user_models, [&](const std::vector<ModelId>& models) {
           return models.size() == environment.users;
         });
}

Status PlayJobs(const std::vector<Job>& jobs, const experiments::RunStore& store,
                std::size_t threads, experiments::PaperRecord& record) {
  std::vector<const Job*> open;
  double open_cost = 0;
  const auto slot = [&](const Job& job) -> sim::RunResult& {
    return record.results[job.experiment][job.policy].runs[job.seed];
  };
  for (const Job& job : jobs) {
    auto run = store.Load(job.identity);
    if (run && HasShape(*run, record.experiments[job.experiment].environment, job.spec)) {
      slot(job) = *std::move(run);
      ++record.kept_runs;
    } else {
      open.push_back(&job);
      open_cost += job.cost;
    }
  }
  if (open.size() < jobs.size()) {
    fmt::print(stderr, "{} of {} runs are there already.\n", jobs.size() - open.size(),
               jobs.size());
  }
  report::Progress progress({.total = static_cast<double>(open.size())});
  std::mutex mutex;
  Status failure;
  ParallelFor(open.size(), threads, [&](std::size_t i) {
    const Job& job = *open[i];
    {
      const std::lock_guard lock(mutex);
      if (!failure.ok()) return;
    }
    const experiments::PaperExperiment& experiment = record.experiments[job.experiment];
    progress.SetLabel(fmt::format("{} {}", experiment.name, job.spec.policy));
    // In units of an average run, by cost: the time left is then about right.
    const double weight = job.cost * static_cast<double>(open.size()) / open_cost;
    auto run = sim::PlayOne(EnvironmentOf(experiment), job.spec, record.first_seed + job.seed,
                            [&](double share) { progress.Advance(weight * share); });
    Status status = run.ok() ? store.Save(job.identity, run.value()) : run.status();
    if (status.ok()) {
      slot(job) = std::move(run).value();
      return;
    }
    const std::lock_guard lock(mutex);
    if (failure.ok()) failure = std::move(status);
  });
  return failure;
}

Status RunPaper(const PaperFlags& flags) {
  experiments::PaperRecord record{.quick = flags.quick};
  record.seeds = flags.quick ? 1 : 5;
  std::size_t threads = 1;
  CODBAND_RETURN_IF_ERROR(flags.runs.Parse(record.first_seed, record.seeds, threads));
  auto experiments = SelectByName("--rows", flags.rows, experiments::PaperExperiments(flags.quick));
  if (!experiments.ok()) return experiments.status();
  record.experiments = std::move(experiments).value();
  record.policies =
      flags.policies.empty() ? experiments::PaperPolicies() : SplitPolicyList(flags.policies);
  if (record.policies.empty()) {
    return Status::InvalidArgument("--policies: none given, expected at least 1");
  }
  for (std::size_t e = 0; e < record.experiments.size(); ++e) {
    std::vector<sim::PolicyResults>& results = record.results.emplace_back();
    for (const std::string& policy : record.policies) {
      results.push_back({.spec = policy, .runs = std::vector<sim::RunResult>(record.seeds)});
    }
  }
  const auto jobs = PlanJobs(record);
  if (!jobs.ok()) return jobs.status();
  CODBAND_RETURN_IF_ERROR(EnsureDirectory(flags.out));
  CODBAND_RETURN_IF_ERROR(EnsureDirectory(flags.out + "/runs"));

  record.command = "codband paper";
  if (flags.quick) record.command += " --quick";
  record.command += fmt::format(" --seed {} --seeds {}", record.first_seed, record.seeds);
  if (!flags.rows.empty()) record.command += " --rows " + flags.rows;
  if (!flags.policies.empty()) record.command += " --policies " + flags.policies;

  const double start = WallSeconds();
  CODBAND_RETURN_IF_ERROR(
      PlayJobs(jobs.value(), experiments::RunStore(flags.out + "/runs"), threads, record));
  record.seconds = WallSeconds() - start;
  CODBAND_RETURN_IF_ERROR(experiments::WritePaperReport(record, flags.out));
  fmt::print("{}", experiments::RegretTable(record).ToText());
  fmt::print(stderr, "Report: {}/report.html\n", flags.out);
  return {};
}

}  // namespace

void AddPaperCommand(CLI::App& app, Status& status) {
  auto flags = std::make_shared<PaperFlags>();
  const Command command(app, "paper", "Reproduce the paper's synthetic experiments, with a report",
                        kFooter);
  command.Switch("--quick", flags->quick, "Fewer users, rounds and seeds: about a minute");
  command.Option("--seed", flags->runs.seed, "S", "First seed (default 1)");
  command.Option("--seeds", flags->runs.seeds, "n", "How many seeds (default 5; 1 with --quick)");
  command.Option("--rows", flags->rows, "LIST", "Only these experiments (default: all)");
  command.Option("--policies", flags->policies, "LIST",
                 "Only these policies, or others (default: all)");
  command.Option("--threads", flags->runs.threads, "n", "Runs at a time (default: one per core)");
  command.Option("--out", flags->out, "DIR", "Where results go (default out/paper)");
  command.Run(status, [flags] { return RunPaper(*flags); });
}

}  // namespace codband::cli
