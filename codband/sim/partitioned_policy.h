#pragma once

#include <functional>
#include <memory>

#include "codband/base/status.h"
#include "codband/policy/policy.h"
#include "codband/sim/environment.h"

namespace codband::sim {

// Several instances of a policy as one: users are spread over them by a hash, and they learn
// together (policy/shared_pool.h) as partitions on different machines would. Every publish_min_ms
// those partitions that have news publish their registers, every publish_max_ms all do; registers
// are merged at once, and pool_delay_ms later every partition imports the pool. One partition is
// the policy itself.
//
// kInvalidArgument if the policy cannot learn together with others.
using MakeOne = std::function<Result<std::unique_ptr<Policy>>()>;
Result<std::unique_ptr<Policy>> MakePartitioned(const PartitionOptions& options,
                                                const MakeOne& make);

}  // namespace codband::sim
