#pragma once

#include <functional>
#include <memory>

#include "codband/base/status.h"
#include "codband/policy/policy.h"
#include "codband/sim/environment.h"

namespace codband::sim {

// Several instances of a policy as one: users are spread over them by a hash, and they learn
// together (policy/shared_pool.h) as partitions on different machines would. A partition publishes
// its register when it has news, every publish_min visits at most, and after publish_max visits in
// any case; the registers are merged at once, and `pool_delay` visits later every partition imports
// the pool. One partition is the policy itself.
//
// kInvalidArgument if the policy cannot learn together with others.
using MakeOne = std::function<Result<std::unique_ptr<Policy>>()>;
Result<std::unique_ptr<Policy>> MakePartitioned(const PartitionOptions& options,
                                                const MakeOne& make);

}  // namespace codband::sim
