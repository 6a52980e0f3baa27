#pragma once

#include <memory>

#include "codband/policy/params.h"
#include "codband/policy/policy.h"

namespace codband {

// random: every arm is equally likely. Learns nothing; the zero of every comparison.
//
// Paper: none.
// Parameters: none.
// Cost: O(1) to choose, nothing to learn.
// Persisted: nothing.
PolicyInfo RandomInfo();
std::unique_ptr<Policy> MakeRandom(const ParamValues& params, const PolicyContext& context);

}  // namespace codband
