// codband paper: the synthetic section of the paper, complete, with one command.
#include <fmt/format.h>

#include <memory>

#include "codband/base/clock.h"
#include "codband/base/file.h"
#include "codband/cli/command.h"
#include "codband/cli/run_flags.h"
#include "codband/experiments/paper_experiments.h"
#include "codband/experiments/paper_report.h"
#include "codband/experiments/paper_runs.h"
#include "codband/experiments/run_store.h"
#include "codband/policy/registry.h"

namespace codband::cli {
namespace {

struct PaperFlags {
  bool quick = false;
  RunFlags runs;
  std::string rows;
  std::string policies;
  std::string out = "out/paper";
};

constexpr std::string_view kPaperFooter = R"(
Runs Figure 2 (a) to (c) and the table of "When and whom to collaborate with in a changing
environment": every algorithm on every row, over several seeds, on all cores.

Results go to --out: report.html with all figures and tables, table.md, table.csv, curves.csv, and
each figure as SVG and PNG. Finished runs are kept in its folder 'runs': after an interruption the
same command resumes.

--quick has two fifths of the users and a third of the rounds and periods. It shows whether everything
works, and which policies share what users have in common and follow their changes. Its numbers are
not those of the paper, and policies that need many rounds (adts) do worse than in the full
experiment, so that some change places.

Examples:
  codband paper --quick                          about a minute
  codband paper --out results/paper              everything, five seeds: tens of minutes on two cores
  codband paper --rows row1,row4 --policies codband,codband:paper,dlinucb --seeds 10

Rows: row1 … row8 of the table (row1 is also Figure 2 (b)), setting1 and setting3 of Figure 2.)";

Result<experiments::PaperRecord> MakeRecord(const PaperFlags& flags, std::size_t& threads) {
  experiments::PaperRecord record{.quick = flags.quick};
  record.seeds = flags.quick ? 1 : 5;
  CODBAND_RETURN_IF_ERROR(flags.runs.Parse(record.first_seed, record.seeds, threads));
  CODBAND_RETURN_IF_ERROR(
      Assign(SelectByName("--rows", flags.rows, experiments::PaperExperiments(flags.quick)),
             record.experiments));
  record.policies =
      flags.policies.empty() ? experiments::PaperPolicies() : SplitPolicyList(flags.policies);
  if (record.policies.empty()) {
    return Status::InvalidArgument("--policies: none given, expected at least 1");
  }
  record.command = PaperCommand(record, flags.rows, flags.policies);
  return record;
}

// Plays what is not in the store yet.
Status Play(const std::vector<sim::PlannedRun>& runs, const experiments::RunStore& store,
            std::size_t threads, experiments::PaperRecord& record) {
  PercentBar bar(runs.size(), "runs");
  const sim::PlayOptions options{
      .threads = threads,
      .archive = &store,
      .resumed =
          [&](std::size_t resumed) {
            if (resumed == 0) return;
            fmt::print(stderr, "{} of {} runs are there already.\n", resumed, runs.size());
          },
      .started = [&](const sim::PlannedRun& run) { bar.SetLabel(run.spec.policy); },
      .progress = bar.Shares()};
  return PlayPaperRuns(runs, options, record);
}

Status RunPaper(const PaperFlags& flags) {
  std::size_t threads = 1;
  auto record = MakeRecord(flags, threads);
  if (!record.ok()) return record.status();
  const auto runs = PlanPaperRuns(record.value());
  if (!runs.ok()) return runs.status();
  const std::string store = flags.out + "/runs";
  CODBAND_RETURN_IF_ERROR(EnsureDirectory(flags.out));
  CODBAND_RETURN_IF_ERROR(EnsureDirectory(store));

  const double start = WallSeconds();
  CODBAND_RETURN_IF_ERROR(
      Play(runs.value(), experiments::RunStore(store), threads, record.value()));
  record.value().seconds = WallSeconds() - start;
  CODBAND_RETURN_IF_ERROR(WritePaperReport(record.value(), flags.out));
  Print(RegretTable(record.value()).ToText());
  TellReport(flags.out);
  return {};
}

}  // namespace

void AddPaperCommand(CLI::App& app, Status& status) {
  auto flags = std::make_shared<PaperFlags>();
  const Command command(app, "paper", "Reproduce the paper's synthetic experiments, with a report",
                        kPaperFooter);
  command.Switch("--quick", flags->quick, "Fewer users, rounds and seeds: about a minute");
  command.Option("--rows", flags->rows, "LIST", "Only these experiments (default: all)");
  command.Option("--policies", flags->policies, "LIST",
                 "These policies instead of the paper's and ours");
  flags->runs.Add(command, "Number of seeds, counting up (default 5; 1 with --quick)");
  command.Option("--out", flags->out, "DIR", "Directory of the results (default out/paper)");
  command.Run(status, [flags] { return RunPaper(*flags); });
}

}  // namespace codband::cli
