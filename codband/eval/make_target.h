#pragma once

#include <memory>
#include <string>

#include "codband/base/status.h"
#include "codband/eval/logged_decisions.h"
#include "codband/eval/target.h"

namespace codband::eval {

// The target that a text names: logged, first, uniform, table:FILE (a CSV, see ReadChances), or any
// policy of the registry. kInvalidArgument for an unknown policy, one that needs the truth, or a
// table that does not fit the log.
Result<std::unique_ptr<Target>> MakeTarget(const std::string& spec, const LoggedDecisions& log,
                                           const PolicyTargetOptions& options);

}  // namespace codband::eval
