// codband evaluate: what other policies would have earned, from logged decisions.
#include "codband/eval/evaluate.h"

#include <fmt/format.h>

#include <memory>

#include "codband/cli/command.h"
#include "codband/cli/run_flags.h"
#include "codband/eval/log_reader.h"
#include "codband/eval/make_target.h"
#include "codband/experiments/evaluate_output.h"
#include "codband/policy/registry.h"

namespace codband::cli {
namespace {

struct EvaluateFlags {
  std::vector<std::string> files;
  std::string input;
  bool strict = false;
  bool lenient = false;
  std::string policies = "logged,first,uniform,linucb,codband";
  std::string order = "time";
  std::string learn = "all";
  std::string floor, confidence, resamples, ridge, reward_min, reward_max, min_propensity;
  RunFlags runs;  // without --seeds
  std::string user_field, dim, action_base;
  eval::CsvLogOptions csv;
  OutputFlags output;
};

constexpr std::string_view kEvaluateFooter = R"(
Logs are DSJSON (as 'codband serve' and Vowpal Wabbit's services write it) or CSV with a header. They
must hold the propensity of each choice: other policies cannot be evaluated without it.

Policies: logged (the policy that made the log), first (always the first candidate), uniform (any
candidate), table:FILE (fixed probabilities: a CSV with the columns action and probability, and group
if there is --group-column), and every policy of 'codband policies'. These start untrained and pass
through the log once. At each event a policy is scored first and then learns the reward of the logged
choice. What is estimated is its mean reward per decision over that pass.

Estimators: replay (rejection sampling: events where policy and log agree), ips (inverse propensity
scoring), snips (self-normalised ips), dr (doubly robust), dm (direct method: the reward model alone,
for reference).

Examples:
  codband evaluate --log decisions/                       all decisions-*.json of a directory
  codband evaluate --log decisions-*.json --policies logged,first,linucb:alpha=0.3 --out report
  codband evaluate --log men.csv --action-column item_id --reward-column click \
      --propensity-column propensity_score --time-column timestamp --items item_context.csv)";

constexpr std::string_view kLearns[] = {"all", "accepted"};  // by LearnFrom
constexpr std::string_view kLogOrders[] = {"time", "log"};
constexpr std::string_view kInputs[] = {"dsjson", "csv"};

Status ParseOptions(const EvaluateFlags& flags, eval::EvaluationOptions& options) {
  const auto real = [](std::string_view flag, const std::string& text, auto& target) -> Status {
    return text.empty() ? Status() : Assign(ParseReal(flag, text), target);
  };
  CODBAND_RETURN_IF_ERROR(real("--confidence", flags.confidence, options.confidence));
  CODBAND_RETURN_IF_ERROR(real("--ridge", flags.ridge, options.ridge));
  CODBAND_RETURN_IF_ERROR(real("--reward-min", flags.reward_min, options.reward_low));
  CODBAND_RETURN_IF_ERROR(real("--reward-max", flags.reward_max, options.reward_high));
  CODBAND_RETURN_IF_ERROR(
      real("--min-propensity", flags.min_propensity, options.smallest_propensity));
  if (!flags.resamples.empty()) {
    CODBAND_RETURN_IF_ERROR(
        Assign(ParseWhole("--resamples", flags.resamples, 10, 1'000'000), options.resamples));
  }
  CODBAND_RETURN_IF_ERROR(Assign(ParseWord("--learn", flags.learn, kLearns), options.learn));
  std::size_t seeds = 1;
  return flags.runs.Parse(options.seed, seeds, options.threads);
}

Result<eval::LoggedData> ReadLog(const EvaluateFlags& flags) {
  if (flags.strict && flags.lenient) {
    return Status::InvalidArgument("--strict and --lenient, expected one of them at most");
  }
  const eval::LogSource source{.files = flags.files,
                               .leave_out = flags.strict    ? eval::BadLines::kFail
                                            : flags.lenient ? eval::BadLines::kAny
                                                            : eval::BadLines::kForeign};
  const std::string input = !flags.input.empty()                    ? flags.input
                            : flags.files.front().ends_with(".csv") ? "csv"
                                                                    : "dsjson";
  const auto kind = ParseWord("--input", input, kInputs);
  if (!kind.ok()) return kind.status();
  if (input == "csv") return eval::ReadCsvLog(source, flags.csv);
  eval::DsJsonOptions options;
  if (!flags.user_field.empty()) options.user_field = flags.user_field;
  if (!flags.dim.empty()) {
    CODBAND_RETURN_IF_ERROR(
        Assign(ParseWhole("--dim", flags.dim, 1, kMaxFeatures), options.dim.emplace()));
  }
  if (!flags.action_base.empty() && flags.action_base != "auto") {
    CODBAND_RETURN_IF_ERROR(Assign(ParseWhole("--action-base", flags.action_base, 0, 1),
                                   options.action_base.emplace()));
  }
  return eval::ReadDsJsonLog(source, options);
}

Result<std::vector<std::unique_ptr<eval::Target>>> MakeTargets(
    const EvaluateFlags& flags, const eval::LoggedDecisions& log,
    const eval::PolicyTargetOptions& options) {
  std::vector<std::unique_ptr<eval::Target>> targets;
  for (const std::string& spec : SplitPolicyList(flags.policies)) {
    auto target = eval::MakeTarget(spec, log, options);
    if (!target.ok()) {
      return Status(target.status().code(),
                    fmt::format("--policies: {}", target.status().message()));
    }
    targets.push_back(std::move(target).value());
  }
  return targets;
}

Status RunEvaluate(const EvaluateFlags& flags, const Command& command) {
  const auto format = flags.output.ParseFormat();
  if (!format.ok()) return format.status();
  experiments::EvaluationRecord record;
  CODBAND_RETURN_IF_ERROR(ParseOptions(flags, record.options));
  std::size_t order = 0;
  CODBAND_RETURN_IF_ERROR(Assign(ParseWord("--order", flags.order, kLogOrders), order));
  eval::PolicyTargetOptions target_options{.seed = record.options.seed};
  if (!flags.floor.empty()) {
    CODBAND_RETURN_IF_ERROR(Assign(ParseReal("--floor", flags.floor, 0, 1), target_options.floor));
  }
  auto read = ReadLog(flags);
  if (!read.ok()) return read.status();
  eval::LoggedDecisions& log = read.value().log;
  record.sorted = order == 0 && read.value().summary.timed;
  if (record.sorted) log.SortByTime();
  const auto targets = MakeTargets(flags, log, target_options);
  if (!targets.ok()) return targets.status();
  CODBAND_RETURN_IF_ERROR(flags.output.MakeDirectory());

  PercentBar bar(targets.value().size(), "policies");
  record.options.progress = bar.Shares();
  auto evaluation = eval::Evaluate(log, targets.value(), record.options);
  bar.Finish();
  if (!evaluation.ok()) {
    return Status::InvalidArgument("--" + evaluation.status().message());
  }
  record.command = command.Typed("--out");
  record.files = flags.files;
  record.log = read.value().summary;
  record.dim = log.dim();
  record.users = log.users.size();
  record.actions = log.action_names.size();
  record.evaluation = std::move(evaluation).value();
  return Deliver(record, format.value(), flags.output.out);
}

void AddCsvFlags(const Command& command, eval::CsvLogOptions& csv) {
  command.Option("--action-column", csv.action, "NAME", "CSV: the action taken (default action)");
  command.Option("--reward-column", csv.reward, "NAME", "CSV: its reward (default reward)");
  command.Option("--propensity-column", csv.propensity, "NAME",
                 "CSV: its propensity (default propensity)");
  command.Option(
      "--user-column", csv.user, "NAMES",
      "CSV: the user; several, comma-separated: their combination (default user, if there)");
  command.Option("--time-column", csv.time, "NAME",
                 "CSV: time of the decision (default time, if there)");
  command.Option("--group-column", csv.group, "NAME",
                 "CSV: the group for table:FILE, such as a position");
  command.Option("--items", csv.items_file, "FILE",
                 "CSV: features of the actions, one row for each");
  command.Option("--item-column", csv.items_column, "NAME",
                 "CSV: the action in --items (default: as --action-column)");
  command.Option("--action-features", csv.action_prefix, "PREFIX",
                 "CSV: columns PREFIX + action hold one feature of each action");
  command.Option("--context-columns", csv.context, "NAMES",
                 "CSV: context features, with separate parameters for every action");
}

}  // namespace

void AddEvaluateCommand(CLI::App& app, Status& status) {
  auto flags = std::make_shared<EvaluateFlags>();
  const Command command(app, "evaluate",
                        "Estimate from logged decisions what other policies would have earned",
                        kEvaluateFooter);
  command.List("--log", flags->files, "FILE…", "Files of the log, or their directory");
  command.Option("--input", flags->input, "dsjson|csv",
                 "Format of the log (default: by the name of the first file)");
  command.Switch("--strict", flags->strict, "Fail on every line that cannot be used");
  command.Switch("--lenient", flags->lenient,
                 "Leave out decisions with impossible values too, instead of failing");
  command.Option("--policies", flags->policies, "LIST",
                 "Comma-separated (default logged,first,uniform,linucb,codband)");
  command.Option("--order", flags->order, "time|log", "Order of events (default time)");
  command.Option(
      "--learn", flags->learn, "all|accepted",
      "Policies learn from every logged reward, or from those that replay accepts (default all)");
  command.Option("--floor", flags->floor, "SHARE",
                 "Share of a policy's choices made uniformly at random (default 0)");
  command.Option("--confidence", flags->confidence, "C",
                 "Confidence level of the intervals (default 0.95)");
  command.Option("--resamples", flags->resamples, "n",
                 "Number of bootstrap resamples (default 1000)");
  command.Option("--reward-min", flags->reward_min, "R",
                 "Lower bound of rewards (default: the smallest in the log, or 0)");
  command.Option("--reward-max", flags->reward_max, "R",
                 "Upper bound of rewards (default: the largest in the log, or 1)");
  command.Option("--min-propensity", flags->min_propensity, "P",
                 "Lower bound of propensities (default: the smallest in the log)");
  command.Option("--ridge", flags->ridge, "L",
                 "Ridge penalty of the reward model of dr and dm (default 1)");
  command.Option("--seed", flags->runs.seed, "S",
                 "Seed of policies, replay and bootstrap (default 1)");
  command.Option("--threads", flags->runs.threads, "n",
                 "Number of policies at a time (default: one per core)");
  command.Option("--user-field", flags->user_field, "PATH",
                 "DSJSON: path of the user id in c (default User.id)");
  command.Option("--dim", flags->dim, "D",
                 "DSJSON: hash names into so many features, without context (default: a column for "
                 "every name, and crossings with the context)");
  command.Option("--action-base", flags->action_base, "auto|0|1",
                 "DSJSON: whether actions in a are numbered from 0 or 1 (default auto)");
  AddCsvFlags(command, flags->csv);
  flags->output.AddFormat(command);
  flags->output.AddOut(command);
  command.Run(status, [flags, command] { return RunEvaluate(*flags, command); });
}

}  // namespace codband::cli
