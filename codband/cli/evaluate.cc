// codband evaluate: what other policies would have earned, from logged decisions.
#include "codband/eval/evaluate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <thread>

#include "codband/base/file.h"
#include "codband/cli/command.h"
#include "codband/eval/log_reader.h"
#include "codband/experiments/evaluate_output.h"
#include "codband/policy/registry.h"
#include "codband/report/progress.h"

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
  RunFlags runs;
  std::string user_field, dim, action_base;
  eval::CsvLogOptions csv;
  std::string format = "table";
  std::string out;
};

constexpr std::string_view kFooter = R"(
Logs are DSJSON (as 'codband serve' and Vowpal Wabbit's services write it) or CSV with a header. The
propensity of each choice must be in them: nothing can be learned about other choices without it.

Policies: logged (the policy that made the log), first (always the first candidate), uniform (any
candidate), table:FILE (fixed chances: a CSV with the columns action and probability, and group if
there is --group-column), and every policy of 'codband policies'. These start knowing nothing, go
through the log once, are scored on each event, then learn what the log's choice brought. What is
estimated is the mean reward of a decision over that way.

Estimators: replay (events where policy and log agree), ips (inverse propensity scores), snips (the
same, self-normalised), dr (doubly robust), dm (the reward model alone, for reference).

Examples:
  codband evaluate --log decisions/                       all decisions-*.json of a directory
  codband evaluate --log decisions-*.json --policies logged,first,linucb:alpha=0.3 --out report
  codband evaluate --log men.csv --action-column item_id --reward-column click \
      --propensity-column propensity_score --time-column timestamp --items item_context.csv)";

Status Wrong(std::string_view flag, std::string_view value, std::string_view expected) {
  return Status::InvalidArgument(fmt::format("{} = '{}', expected {}", flag, value, expected));
}

Status ParseOptions(const EvaluateFlags& flags, eval::EvaluationOptions& options) {
  const auto real = [](std::string_view flag, const std::string& text, auto& target) -> Status {
    if (text.empty()) return {};
    const auto value = ParseReal(flag, text);
    if (value.ok()) target = value.value();
    return value.ok() ? Status() : value.status();
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
  if (flags.learn != "all" && flags.learn != "accepted") {
    return Wrong("--learn", flags.learn, "all or accepted");
  }
  options.learn = flags.learn == "all" ? eval::LearnFrom::kAll : eval::LearnFrom::kAccepted;
  if (flags.order != "time" && flags.order != "log") {
    return Wrong("--order", flags.order, "time or log");
  }
  std::size_t seeds = 1;
  return flags.runs.Parse(options.seed, seeds, options.threads);
}

Result<eval::ReadLog> Read(const EvaluateFlags& flags) {
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
  if (input == "csv") return eval::ReadCsvLog(source, flags.csv);
  if (input != "dsjson") return Wrong("--input", input, "dsjson or csv");
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

Result<std::unique_ptr<eval::Target>> MakeTarget(const std::string& spec,
                                                 const eval::LoggedDecisions& log,
                                                 const eval::PolicyTargetOptions& options) {
  if (spec == "logged") return eval::MakeLoggedTarget();
  if (spec == "first") return eval::MakeFirstTarget();
  if (spec == "uniform") return eval::MakeUniformTarget();
  constexpr std::string_view kTable = "table:";
  if (spec.starts_with(kTable)) {
    const std::string file = spec.substr(kTable.size());
    const auto table = eval::ReadChances(file);
    if (!table.ok()) return table.status();
    auto target = eval::MakeTableTarget(spec, table.value(), log);
    if (target.ok()) return target;
    return Status::InvalidArgument(fmt::format("{}: {}", file, target.status().message()));
  }
  auto policy = MakePolicy(spec, {.dim = log.dim()});
  if (!policy.ok()) return policy.status();
  return eval::MakePolicyTarget(spec, std::move(policy).value(), options);
}

Status RunEvaluate(const EvaluateFlags& flags, const Command& command) {
  const auto format = ParseFormat(flags.format);
  if (!format.ok()) return format.status();
  experiments::EvaluationRecord record;
  CODBAND_RETURN_IF_ERROR(ParseOptions(flags, record.options));
  eval::PolicyTargetOptions target_options{.seed = record.options.seed};
  if (!flags.floor.empty()) {
    CODBAND_RETURN_IF_ERROR(Assign(ParseReal("--floor", flags.floor), target_options.floor));
    if (!(target_options.floor >= 0 && target_options.floor <= 1)) {
      return Wrong("--floor", flags.floor, "a number from 0 to 1");
    }
  }
  auto read = Read(flags);
  if (!read.ok()) return read.status();
  eval::LoggedDecisions& log = read.value().log;
  record.sorted = flags.order == "time" && read.value().summary.timed;
  if (record.sorted) log.SortByTime();
  std::vector<std::unique_ptr<eval::Target>> targets;
  for (const std::string& spec : SplitPolicyList(flags.policies)) {
    auto target = MakeTarget(spec, log, target_options);
    if (!target.ok()) {
      return {target.status().code(), fmt::format("--policies: {}", target.status().message())};
    }
    targets.push_back(std::move(target).value());
  }
  if (!flags.out.empty()) CODBAND_RETURN_IF_ERROR(EnsureDirectory(flags.out));

  report::Progress progress({.total = 100});
  progress.SetLabel(fmt::format("% of {} policies", targets.size()));
  record.options.progress = [&](double share) { progress.Advance(100 * share); };
  auto evaluation = eval::Evaluate(log, targets, record.options);
  progress.Finish();
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
  fmt::print("{}", Format(record, format.value()));
  if (flags.out.empty()) return {};
  CODBAND_RETURN_IF_ERROR(experiments::WriteReport(record, flags.out));
  fmt::print(stderr, "Report: {}/report.html\n", flags.out);
  return {};
}

void AddCsvFlags(const Command& command, eval::CsvLogOptions& csv) {
  command.Option("--action-column", csv.action, "NAME", "CSV: the action taken (default action)");
  command.Option("--reward-column", csv.reward, "NAME", "CSV: what it brought (default reward)");
  command.Option("--propensity-column", csv.propensity, "NAME",
                 "CSV: the chance it was taken with (default propensity)");
  command.Option(
      "--user-column", csv.user, "NAMES",
      "CSV: the user; several with commas: a user is a combination (default user, if there)");
  command.Option("--time-column", csv.time, "NAME", "CSV: when (default time, if there)");
  command.Option("--group-column", csv.group, "NAME",
                 "CSV: the group for table:FILE, such as a position");
  command.Option("--items", csv.items_file, "FILE", "CSV: features of the actions, one row each");
  command.Option("--item-column", csv.items_column, "NAME",
                 "CSV: the action in --items (default: as --action-column)");
  command.Option("--action-features", csv.action_prefix, "PREFIX",
                 "CSV: columns PREFIX + action hold one feature of each action");
  command.Option(
      "--context-columns", csv.context, "NAMES",
      "CSV: numbers that describe the event; every action has its own parameters for them");
}

}  // namespace

void AddEvaluateCommand(CLI::App& app, Status& status) {
  auto flags = std::make_shared<EvaluateFlags>();
  const Command command(app, "evaluate",
                        "Estimate from logged decisions what other policies would have earned",
                        kFooter);
  command.List("--log", flags->files, "FILE…", "The log's files, or the directory they are in");
  command.Option("--input", flags->input, "dsjson|csv",
                 "What they are (default: by the first one's name)");
  command.Switch("--strict", flags->strict, "Fail on every line that cannot be used");
  command.Switch("--lenient", flags->lenient,
                 "Leave out decisions with impossible values too, instead of failing");
  command.Option("--policies", flags->policies, "LIST",
                 "Comma-separated (default logged,first,uniform,linucb,codband)");
  command.Option("--order", flags->order, "time|log",
                 "In which order events are played (default time)");
  command.Option(
      "--learn", flags->learn, "all|accepted",
      "What policies learn from: every logged outcome, or those replay accepts (default all)");
  command.Option("--floor", flags->floor, "SHARE",
                 "Of policies' choices that are uniform (default 0)");
  command.Option("--confidence", flags->confidence, "C", "Of the intervals (default 0.95)");
  command.Option("--resamples", flags->resamples, "n", "Of the bootstrap (default 1000)");
  command.Option("--reward-min", flags->reward_min, "R",
                 "No reward can be smaller (default: data, or 0)");
  command.Option("--reward-max", flags->reward_max, "R",
                 "No reward can be larger (default: data, or 1)");
  command.Option("--min-propensity", flags->min_propensity, "P",
                 "No propensity can be smaller (default: the smallest in the log)");
  command.Option("--ridge", flags->ridge, "L", "Of the reward model of dr and dm (default 1)");
  command.Option("--seed", flags->runs.seed, "S", "Of policies, replay and bootstrap (default 1)");
  command.Option("--threads", flags->runs.threads, "n",
                 "Policies at a time (default: one per core)");
  command.Option("--user-field", flags->user_field, "PATH",
                 "DSJSON: the user in c (default User.id)");
  command.Option("--dim", flags->dim, "D",
                 "DSJSON: features (default: as logged; 32 if hashed by name)");
  command.Option("--action-base", flags->action_base, "auto|0|1",
                 "DSJSON: what the numbers in a count from (default auto)");
  AddCsvFlags(command, flags->csv);
  command.Option("--format", flags->format, "table|json|csv", "What is printed (default table)");
  command.Option("--out", flags->out, "DIR", "Also write a report with a figure to this directory");
  command.Run(status, [flags, command] { return RunEvaluate(*flags, command); });
}

}  // namespace codband::cli
