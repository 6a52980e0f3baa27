#pragma once

#include "codband/features/column_space.h"
#include "codband/policy/policy.h"

namespace codband::engine {

// Tells the policy which columns belong together (feature_groups.h), if it wants to know.
void TellGroups(const features::ColumnSpace& space, Policy& policy);

}  // namespace codband::engine
