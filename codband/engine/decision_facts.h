#pragma once

#include <cstdint>

#include "codband/engine/engine.h"
#include "codband/policy/streams.h"

namespace codband::engine {

// What the statistics need to know of a decision beside what learning needs. Travels with the
// pending decision.
struct DecisionFacts {
  Mode mode = Mode::kOnline;
  Source source = Source::kPolicy;
  bool agrees = false;        // the policy expects most of the first action
  bool explored = false;      // every action had a chance to be chosen
  std::uint32_t offered = 0;  // how many actions there were; 0: made by a version without facts
  double baseline_mean = 0;   // expected reward of the first action
  double uniform_mean = 0;    // mean of the expected rewards of all actions
};

// Whether the exploration floor made the choice of an event: the first draw of Policy::Rank from
// this stream.
inline bool ChosenByFloor(EventKey key, double floor) {
  return floor > 0 && StreamFor(key, DrawPurpose::kFloor).Uniform() < floor;
}

}  // namespace codband::engine
