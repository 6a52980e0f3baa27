#pragma once

#include "codband/base/random.h"

namespace codband {

// What a policy draws random numbers for. Each purpose has its own stream for each event, so that
// a part that draws more or less does not disturb the others. Numbers are part of the results:
// append, never renumber.
enum class DrawPurpose : std::uint64_t {
  kArm = 1,            // a uniformly random arm
  kParameter = 2,      // Thompson sampling of a parameter
  kFirstModel = 3,     // the model of a user without observations
  kModel = 4,          // the Gibbs step
  kConcentration = 5,  // the Dirichlet process' α0
  kPermutation = 6,    // random orders of a series, to judge a CUSUM by
  kExplore = 7,        // whether to explore
  kOthers = 8,         // which other users are resampled, and to which models
  kFloor = 9,          // whether a choice is uniformly random, and which
  kRepeat = 10,        // the events of repeated choices
  kStrategy = 11,      // which of the choices that have a chance is made
};

inline RandomStream StreamFor(EventKey key, DrawPurpose purpose) {
  return {key, static_cast<std::uint64_t>(purpose)};
}

}  // namespace codband
