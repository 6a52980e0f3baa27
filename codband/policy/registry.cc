#include "codband/policy/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "codband/base/text.h"
#include "codband/linalg/packed.h"
#include "codband/policy/baselines/adts.h"
#include "codband/policy/baselines/club.h"
#include "codband/policy/baselines/dlinucb.h"
#include "codband/policy/baselines/linear_groups.h"
#include "codband/policy/baselines/lints.h"
#include "codband/policy/baselines/linucb.h"
#include "codband/policy/baselines/oracle_filter.h"
#include "codband/policy/baselines/random_policy.h"
#include "codband/policy/baselines/sclub.h"
#include "codband/policy/codband/codband.h"

namespace codband {
namespace {

struct Registration {
  PolicyInfo info;
  std::unique_ptr<Policy> (*make)(const ParamValues& params, const PolicyContext& context);
  // Checks combinations of parameters, each within its range; nullptr if all combinations are
  // valid.
  Status (*check)(const ParamValues& params, const PolicyContext& context) = nullptr;
};

// The one place that names every policy.
const std::vector<Registration>& Table() {
  static const std::vector<Registration> table = {
      {CoDBandInfo(), MakeCoDBand, CheckCoDBand},
      {LinUcbInfo(), MakeLinUcb},
      {LinTsInfo(), MakeLinTs},
      {AdTsInfo(), MakeAdTs},
      {DLinUcbInfo(), MakeDLinUcb},
      {ClubInfo(), MakeClub},
      {SClubInfo(), MakeSClub},
      {UniformLinUcbInfo(), MakeUniformLinUcb},
      {RandomInfo(), MakeRandom},
      {OracleLinUcbInfo(), MakeOracleLinUcb},
      {OracleGreedyInfo(), MakeOracleGreedy},
      {OracleFilterInfo(), MakeOracleFilter},
  };
  return table;
}

// Splits "name:rest" at the first colon.
std::pair<std::string_view, std::string_view> SplitSpec(std::string_view spec) {
  const std::size_t colon = spec.find(':');
  if (colon == spec.npos) return {spec, {}};
  return {spec.substr(0, colon), spec.substr(colon + 1)};
}

Result<const Registration*> FindRegistration(std::string_view spec) {
  const std::string_view name = SplitSpec(spec).first;
  std::vector<std::string> names;
  for (const Registration& entry : Table()) {
    if (entry.info.name == name) return &entry;
    names.push_back(entry.info.name);
  }
  return Status::InvalidArgument(
      fmt::format("policy '{}' is unknown; there are {}", name, fmt::join(names, ", ")));
}

// Parameters that specs of earlier versions do not name: their states have nothing of it, and any
// choice may continue from them.
constexpr std::array<std::string_view, 2> kCameLater = {"items", "lengths"};

// What the new spec says of the parameter, if the old one says nothing.
void TakeOver(std::string_view name, const std::string& new_spec, std::string& old_text) {
  const std::size_t at = new_spec.find(fmt::format(",{}=", name));
  if (at == std::string::npos || old_text.find(fmt::format("{}=", name)) != std::string::npos)
    return;
  const std::string choice = new_spec.substr(at, new_spec.find(',', at + 1) - at);
  old_text += old_text.empty() ? choice.substr(1) : choice;
}

}  // namespace

std::vector<const PolicyInfo*> RegisteredPolicies() {
  std::vector<const PolicyInfo*> infos;
  for (const Registration& entry : Table()) infos.push_back(&entry.info);
  return infos;
}

std::vector<std::string> RegisteredSpecs() {
  std::vector<std::string> specs;
  for (const Registration& entry : Table()) {
    specs.push_back(entry.info.name);
    for (const Preset& preset : entry.info.presets) {
      specs.push_back(fmt::format("{}:{}", entry.info.name, preset.name));
    }
  }
  return specs;
}

Result<const PolicyInfo*> FindPolicy(std::string_view spec) {
  const auto entry = FindRegistration(spec);
  if (!entry.ok()) return entry.status();
  return &entry.value()->info;
}

Result<std::unique_ptr<Policy>> MakePolicy(std::string_view spec, const PolicyContext& context) {
  const auto entry = FindRegistration(spec);
  if (!entry.ok()) return entry.status();
  const PolicyInfo& info = entry.value()->info;
  if (context.dim < 1 || context.dim > kMaxFeatures) {
    return Status::InvalidArgument(
        fmt::format("dim = {}, expected a whole number from 1 to {}", context.dim, kMaxFeatures));
  }
  if (info.knows_truth && context.truth == nullptr) {
    return Status::InvalidArgument(fmt::format(
        "policy '{}' is a yardstick that needs the true parameters; only a simulation has them",
        info.name));
  }
  const auto params = ParamValues::Parse(info, SplitSpec(spec).second, context);
  if (!params.ok()) return params.status();
  if (entry.value()->check != nullptr) {
    const Status status = entry.value()->check(params.value(), context);
    if (!status.ok()) return status;
  }
  std::unique_ptr<Policy> policy = entry.value()->make(params.value(), context);
  policy->set_spec(params.value().Spec());
  return policy;
}

Status CheckSpecChange(std::string_view from, std::string_view to, const PolicyContext& context) {
  const auto before = FindPolicy(from);
  if (!before.ok()) return before.status();
  const auto after = FindPolicy(to);
  if (!after.ok()) return after.status();
  if (before.value() != after.value()) {
    return Status::InvalidArgument(fmt::format("policy '{}' cannot continue from the state of '{}'",
                                               after.value()->name, before.value()->name));
  }
  const auto new_params = ParamValues::Parse(*after.value(), SplitSpec(to).second, context);
  if (!new_params.ok()) return new_params.status();
  std::string old_text(SplitSpec(from).second);
  const std::string new_spec = new_params.value().Spec();
  for (const std::string_view name : kCameLater) TakeOver(name, new_spec, old_text);
  const auto old_params = ParamValues::Parse(*before.value(), old_text, context);
  if (!old_params.ok()) return old_params.status();
  return new_params.value().CheckChange(old_params.value());
}

std::vector<std::string> SplitPolicyList(std::string_view list) {
  std::vector<std::string> specs;
  for (const std::string_view item : SplitList(list)) {
    const bool continues = item.find('=') != item.npos && item.find(':') == item.npos;
    if (continues && !specs.empty()) {
      specs.back().append(specs.back().find(':') == std::string::npos ? ":" : ",").append(item);
    } else {
      specs.emplace_back(item);
    }
  }
  return specs;
}

}  // namespace codband
