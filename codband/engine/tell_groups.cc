#include "codband/engine/tell_groups.h"

#include "codband/features/feature_groups.h"
#include "codband/policy/grouped_features.h"

namespace codband::engine {

void TellGroups(const features::ColumnSpace& space, Policy& policy) {
  if (auto* const grouped = dynamic_cast<GroupedFeatures*>(&policy)) {
    grouped->SetGroups(features::GroupsOf(space));
  }
}

}  // namespace codband::engine
