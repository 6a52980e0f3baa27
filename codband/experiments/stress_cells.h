#pragma once

#include <string>
#include <vector>

#include "codband/sim/synthetic.h"

namespace codband::experiments {

// One population of `codband stress`.
struct StressCell {
  std::string name;     // "clicks"
  std::string changed;  // how it differs from the base, for people
  sim::SyntheticOptions environment;
};

// The base population and, in each further cell, the same with one thing changed; then populations
// of the kind that products have. `quick`: two fifths of the users, a third of the rounds unless
// they are few, periods a third as long.
std::vector<StressCell> StressCells(bool quick);

}  // namespace codband::experiments
