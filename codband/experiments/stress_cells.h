#pragma once

#include <string>
#include <vector>

#include "codband/sim/synthetic.h"

namespace codband::experiments {

// One population of `codband stress`.
struct StressCell {
  std::string name;     // "clicks"
  std::string changed;  // what is unlike the base, for people
  sim::SyntheticOptions environment;
};

// The base population and, in each further cell, the same with one thing changed. `quick` keeps
// their shape with fewer users and rounds; periods shrink as the rounds do.
std::vector<StressCell> StressCells(bool quick);

}  // namespace codband::experiments
