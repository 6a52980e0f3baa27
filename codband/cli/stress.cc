// codband stress: one policy against others on many populations, to find where it loses.
#include "codband/experiments/stress.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "codband/base/clock.h"
#include "codband/cli/command.h"
#include "codband/cli/run_flags.h"
#include "codband/policy/registry.h"

namespace codband::cli {
namespace {

constexpr const char* kStressPolicies =
    "codband,codband:paper,codband:explore=thompson,linucb,lints,dlinucb,club,sclub,uniform-linucb";

struct StressFlags {
  bool quick = false;
  bool strict = false;
  RunFlags runs;
  std::string cells;
  std::string policies = kStressPolicies;
  OutputFlags output;
};

constexpr std::string_view kStressFooter = R"(
The first policy is under test, against the others. Every cell is one population: the base (50 users
with 10 parameters, 1500 rounds, changes every 300 to 1000 rounds, 25 features, noise 0.1) with one
thing changed, or one of a product's kind: a fixed catalogue, clicks, many features, few visits.
'ratio' is the regret of the policy under test over that of the best other one, 'difference' how much
higher it is, seed by seed, with a 95% interval. A cell is lost if the whole interval is above 0.
Yardsticks (oracle-…) are shown, but no cell is lost to them.

Examples:
  codband stress --quick                        every cell with fewer users and rounds
  codband stress --cells clicks,counts,ratings --seeds 5
  codband stress --policies codband:paper,linucb,club,sclub --format json
  codband stress --quick --strict               for scripts: exit code 1 if a cell is lost
  codband stress --seeds 5 --out results        also writes results/report.html with a figure

Policies unless given: {}.

Cells: {}.)";

Status RunStress(const StressFlags& flags) {
  experiments::StressRecord record{.policies = SplitPolicyList(flags.policies)};
  if (flags.quick) record.seeds = 1;
  std::size_t threads = 1;
  CODBAND_RETURN_IF_ERROR(flags.runs.Parse(record.first_seed, record.seeds, threads));
  const auto format = flags.output.ParseFormat();
  if (!format.ok()) return format.status();
  CODBAND_RETURN_IF_ERROR(experiments::CheckStressPolicies(record.policies));
  const auto cells = SelectByName("--cells", flags.cells, experiments::StressCells(flags.quick));
  if (!cells.ok()) return cells.status();
  CODBAND_RETURN_IF_ERROR(flags.output.MakeDirectory());
  record.command = fmt::format("codband stress{}{} --policies {} --seed {} --seeds {}",
                               flags.quick ? " --quick" : "",
                               flags.cells.empty() ? "" : " --cells " + flags.cells,
                               fmt::join(record.policies, ","), record.first_seed, record.seeds);
  const double start = WallSeconds();
  {
    PercentBar bar(cells.value().size() * record.policies.size() * record.seeds, "runs");
    CODBAND_RETURN_IF_ERROR(PlayStress(cells.value(), threads, bar.Shares(), record));
  }
  record.seconds = WallSeconds() - start;
  CODBAND_RETURN_IF_ERROR(Deliver(record, format.value(), flags.output.out));
  if (!flags.strict || record.lost().empty()) return {};
  return {StatusCode::kCheckFailed, Conclusion(record)};
}

}  // namespace

void AddStressCommand(CLI::App& app, Status& status) {
  auto flags = std::make_shared<StressFlags>();
  std::vector<std::string> names;
  for (const experiments::StressCell& cell : experiments::StressCells(false)) {
    names.push_back(cell.name);
  }
  const Command command(app, "stress", "Find the populations on which a policy loses to others",
                        fmt::format(kStressFooter, kStressPolicies, fmt::join(names, ", ")));
  command.Switch("--quick", flags->quick, "Fewer users, rounds and seeds");
  command.Switch("--strict", flags->strict, "Exit code 1 if the policy under test loses a cell");
  command.Option("--policies", flags->policies, "LIST",
                 "The one under test first (default: codband and eight others, see 'Policies')");
  command.Option("--cells", flags->cells, "LIST", "Only these cells (default: all)");
  flags->runs.Add(command, "Number of seeds, counting up (default 3; 1 with --quick)");
  flags->output.AddFormat(command);
  flags->output.AddOut(command);
  command.Run(status, [flags] { return RunStress(*flags); });
}

}  // namespace codband::cli
