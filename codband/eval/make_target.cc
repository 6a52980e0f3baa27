#include "codband/eval/make_target.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "codband/eval/log_reader.h"
#include "codband/policy/registry.h"

namespace codband::eval {

Result<std::unique_ptr<Target>> MakeTarget(const std::string& spec, const LoggedDecisions& log,
                                           const PolicyTargetOptions& options) {
  if (spec == "logged") return MakeLoggedTarget();
  if (spec == "first") return MakeFirstTarget();
  if (spec == "uniform") return MakeUniformTarget();
  constexpr std::string_view kTable = "table:";
  if (spec.starts_with(kTable)) {
    const std::string file = spec.substr(kTable.size());
    const auto table = ReadChances(file);
    if (!table.ok()) return table.status();
    auto target = MakeTableTarget(spec, table.value(), log);
    if (target.ok()) return target;
    return Status::InvalidArgument(fmt::format("{}: {}", file, target.status().message()));
  }
  auto policy = MakePolicy(spec, {.dim = log.dim()});
  if (!policy.ok()) return policy.status();
  return MakePolicyTarget(spec, std::move(policy).value(), options);
}

}  // namespace codband::eval
