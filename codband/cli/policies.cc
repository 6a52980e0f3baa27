// codband policies [NAME]: the registered policies and their parameters.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "codband/cli/command.h"
#include "codband/cli/run_flags.h"
#include "codband/policy/registry.h"
#include "codband/report/table.h"

namespace codband::cli {
namespace {

using Json = nlohmann::ordered_json;

struct PoliciesFlags {
  std::string name;
  OutputFlags output;
};

std::string Traits(const PolicyInfo& info) {
  std::vector<std::string> traits;
  if (info.shares_between_users) traits.push_back("shares between users");
  if (info.detects_changes) traits.push_back("detects changes");
  if (info.knows_truth) traits.push_back("simulations only");
  return fmt::format("{}", fmt::join(traits, ", "));
}

void PrintList() {
  report::ReportTable table({{"policy"}, {"what it does"}, {"traits"}});
  for (const PolicyInfo* info : RegisteredPolicies()) {
    table.AddRow({info->name, info->summary, Traits(*info)});
    for (const Preset& preset : info->presets) {
      table.AddRow({fmt::format("{}:{}", info->name, preset.name), preset.help, Traits(*info)});
    }
  }
  fmt::print("{}\n", table.ToText());
  fmt::print(
      "codband policies NAME shows the parameters of a policy. Set them after a colon:\n"
      "  linucb:alpha=0.3,lambda=1      codband:paper,likelihood=joint\n");
}

void PrintOne(const PolicyInfo& info) {
  fmt::print("{}: {}\nSource: {}\n", info.name, info.summary, info.paper);
  if (const std::string traits = Traits(info); !traits.empty()) fmt::print("Traits: {}\n", traits);
  if (info.params.empty()) {
    fmt::print("\nIt has no parameters.\n");
    return;
  }
  report::ReportTable table({{"parameter"}, {"default"}, {"allowed"}, {"meaning"}});
  for (const ParamInfo& param : info.params) {
    table.AddRow({param.name, param.DefaultText(), param.AllowedText(), param.help});
  }
  fmt::print("\n{}", table.ToText());
  for (const Preset& preset : info.presets) {
    fmt::print("\nPreset {}:{}: {}\n ", info.name, preset.name, preset.help);
    for (const auto& [name, value] : preset.values) fmt::print(" {}={}", name, value);
    fmt::print("\n");
  }
}

Json ToJson(const PolicyInfo& info) {
  Json params = Json::array();
  for (const ParamInfo& param : info.params) {
    Json entry{{"name", param.name}, {"help", param.help}, {"default", param.DefaultText()}};
    if (param.words.empty()) {
      entry["min"] = param.min;
      entry["max"] = param.max;
    } else {
      entry["words"] = param.words;
    }
    params.push_back(std::move(entry));
  }
  Json presets = Json::object();
  for (const Preset& preset : info.presets) {
    for (const auto& [name, value] : preset.values) presets[preset.name][name] = value;
  }
  return {{"name", info.name},
          {"summary", info.summary},
          {"paper", info.paper},
          {"shares_between_users", info.shares_between_users},
          {"detects_changes", info.detects_changes},
          {"knows_truth", info.knows_truth},
          {"parameters", std::move(params)},
          {"presets", std::move(presets)}};
}

Status RunPolicies(const PoliciesFlags& flags) {
  const auto format = flags.output.ParseFormat();
  if (!format.ok()) return format.status();
  std::vector<const PolicyInfo*> infos = RegisteredPolicies();
  if (!flags.name.empty()) {
    const auto info = FindPolicy(flags.name);
    if (!info.ok()) return info.status();
    infos = {info.value()};
  }
  switch (format.value()) {
    case OutputFormat::kCsv:
      return Status::InvalidArgument("--format = 'csv', expected table or json");
    case OutputFormat::kJson: {
      Json all = Json::array();
      for (const PolicyInfo* info : infos) all.push_back(ToJson(*info));
      fmt::print("{}\n", Json{{"policies", std::move(all)}}.dump(2));
      return {};
    }
    case OutputFormat::kTable:
      break;
  }
  if (flags.name.empty()) {
    PrintList();
  } else {
    PrintOne(*infos.front());
  }
  return {};
}

}  // namespace

void AddPoliciesCommand(CLI::App& app, Status& status) {
  auto flags = std::make_shared<PoliciesFlags>();
  const Command command(app, "policies", "List the policies and their parameters");
  command.Option("NAME", flags->name, "NAME",
                 "Show the parameters of this policy, with ranges and defaults");
  flags->output.AddFormat(command, "table|json");
  command.Run(status, [flags] { return RunPolicies(*flags); });
}

}  // namespace codband::cli
