#include "codband/experiments/paper_runs.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "codband/base/check.h"
#include "codband/base/version.h"
#include "codband/experiments/simulation_settings.h"

namespace codband::experiments {
namespace {

// Raised when a policy or the environment behaves differently (golden traces change), so that runs
// kept by an earlier build are not taken for those of this one.
constexpr int kResultsVersion = 2;

constexpr std::size_t kCheckpoints = 150;

// Estimated running time of a run. A step of the product likelihood costs several times one of the
// joint likelihood, and both grow with the number of models.
double RelativeCost(const sim::SyntheticOptions& environment, const std::string& full_spec) {
  const auto steps = static_cast<double>(environment.users * environment.rounds);
  const auto models = static_cast<double>(environment.models);
  if (full_spec.find("likelihood=product") != full_spec.npos) return steps * (1 + models);
  if (full_spec.find("likelihood=joint") != full_spec.npos) return steps * (1 + 0.2 * models);
  return steps;
}

}  // namespace

std::string RunIdentity(const sim::SyntheticOptions& environment, const sim::PlannedRun& run) {
  return fmt::format("codband {} results {} | {} | {} | seed {} checkpoints {} users recorded {}",
                     kVersion, kResultsVersion, SimulationIdentity(environment), run.full_spec,
                     run.seed, run.spec.checkpoints, run.spec.record_users);
}

Result<std::vector<sim::PlannedRun>> PlanPaperRuns(const PaperRecord& record) {
  std::vector<sim::PlannedRun> runs;
  std::map<std::string, std::string> policy_of;  // by identity
  for (std::size_t e = 0; e < record.experiments.size(); ++e) {
    const PaperExperiment& experiment = record.experiments[e];
    const auto make = [environment = experiment.environment](std::uint64_t seed) {
      return sim::MakeSynthetic(environment, seed);
    };
    for (std::size_t p = 0; p < record.policies.size(); ++p) {
      for (std::size_t s = 0; s < record.seeds; ++s) {
        auto run = sim::PlanRun(make,
                                {.policy = WithPaperSettings(record.policies[p], experiment),
                                 .checkpoints = kCheckpoints,
                                 .record_users = s == 0 && NeedsUserModels(record, e, p)},
                                record.first_seed + s);
        if (!run.ok()) return run.status();
        run.value().cost = RelativeCost(experiment.environment, run.value().full_spec);
        run.value().identity = RunIdentity(experiment.environment, run.value());
        const auto [same, is_new] = policy_of.emplace(run.value().identity, record.policies[p]);
        if (!is_new) {
          return Status::InvalidArgument(fmt::format("--policies: '{}' and '{}' are the same in {}",
                                                     same->second, record.policies[p],
                                                     experiment.name));
        }
        runs.push_back(std::move(run).value());
      }
    }
  }
  return runs;
}

Status PlayPaperRuns(const std::vector<sim::PlannedRun>& runs, const sim::PlayOptions& options,
                     PaperRecord& record) {
  CODBAND_CHECK(runs.size() == record.experiments.size() * record.policies.size() * record.seeds);
  auto played = sim::PlayRuns(runs, options);
  if (!played.ok()) return played.status();
  auto next = played.value().results.begin();
  record.results.clear();
  for (std::size_t e = 0; e < record.experiments.size(); ++e) {
    std::vector<sim::PolicyResults>& results = record.results.emplace_back();
    for (const std::string& policy : record.policies) {
      sim::PolicyResults& of_policy = results.emplace_back(sim::PolicyResults{policy, {}});
      for (std::size_t s = 0; s < record.seeds; ++s) of_policy.runs.push_back(std::move(*next++));
    }
  }
  record.resumed_runs = played.value().resumed;
  return {};
}

std::string PaperCommand(const PaperRecord& record, std::string_view rows,
                         std::string_view policies) {
  std::string command = "codband paper";
  if (record.quick) command += " --quick";
  command += fmt::format(" --seed {} --seeds {}", record.first_seed, record.seeds);
  if (!rows.empty()) command += fmt::format(" --rows {}", rows);
  if (!policies.empty()) command += fmt::format(" --policies {}", policies);
  return command;
}

}  // namespace codband::experiments
