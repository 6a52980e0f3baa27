#pragma once

#include "codband/base/random.h"

namespace codband {

// What a policy draws random numbers for. Each purpose has a stream of its own for each event, so
// that one part may draw more or fewer numbers without changing the results of the others. The
// values are part of every result: append, never renumber.
enum class DrawPurpose : std::uint64_t {
  kArm = 1,            // a uniformly random arm
  kParameter = 2,      // Thompson sampling of a parameter
  kFirstModel = 3,     // the model of a user without observations
  kModel = 4,          // the Gibbs step
  kConcentration = 5,  // the Dirichlet process' α0
  kPermutation = 6,    // random permutations of a series, for a CUSUM test
  kExplore = 7,        // whether to explore
  kOthers = 8,         // Gibbs steps of other users
  kFloor = 9,          // the exploration floor of Rank
  kRepeat = 10,        // keys of repeated choices
  kStrategy = 11,      // the choice among the arms of a ranking
};

inline RandomStream StreamFor(EventKey key, DrawPurpose purpose) {
  return {key, static_cast<std::uint64_t>(purpose)};
}

}  // namespace codband
