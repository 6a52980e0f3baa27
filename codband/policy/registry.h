#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codband/base/status.h"
#include "codband/policy/params.h"
#include "codband/policy/policy.h"

namespace codband {

// Every policy there is, in the order in which they are listed to people.
std::vector<const PolicyInfo*> RegisteredPolicies();

// Every policy, and each of its presets: "codband", "codband:paper", …, "linucb", …
std::vector<std::string> RegisteredSpecs();

// The facts of the policy that a spec such as "codband:paper,likelihood=joint" names.
Result<const PolicyInfo*> FindPolicy(std::string_view spec);

// Makes a policy from "name", "name:preset", "name:p=v,q=w" or "name:preset,p=v".
// kInvalidArgument says which name, parameter or value is wrong and what is allowed.
Result<std::unique_ptr<Policy>> MakePolicy(std::string_view spec, const PolicyContext& context);

// Makes policies that are not in the registry as well. Called from any thread.
using PolicyFactory = std::function<Result<std::unique_ptr<Policy>>(std::string_view spec,
                                                                    const PolicyContext& context)>;

// Whether a policy made from the spec `to` can continue from the state of one made from `from`: all
// parameters but those marked as live must be equal. kInvalidArgument names the one that is not.
Status CheckSpecChange(std::string_view from, std::string_view to, const PolicyContext& context);

// Splits "linucb:alpha=0.3,lambda=1,codband:paper,likelihood=joint" into its two policies: an item
// "p=v" belongs to the policy before it.
std::vector<std::string> SplitPolicyList(std::string_view list);

}  // namespace codband
