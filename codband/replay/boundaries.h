#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "codband/replay/replay.h"

namespace codband::replay {

// How the changes that a policy detected on a recorded stream go with true boundaries: events of a
// user whose origin is another one than that of the same user's event before.
//
// A detected change is *at a boundary* if it came at the boundary or at one of the user's next
// window − 1 events. A boundary is *found* if a change was detected there. Where boundaries are
// frequent, a detector that knows nothing is often right too: "by chance" is what one has on
// average that detects as many changes of each user, at events of that user drawn uniformly without
// repetition.
struct BoundaryCounts {
  std::size_t boundaries = 0;
  std::size_t found = 0;
  double found_by_chance = 0;
  std::size_t changes = 0;  // detected
  std::size_t hits = 0;     // of them at a boundary
  double hits_by_chance = 0;
  double hits_variance = 0;  // of the hits of that other detector

  void Add(const BoundaryCounts& other);
};

// `origins` has one entry an event, `changes` the numbers of events at which a change was detected,
// ascending and each once. O(events + boundaries · window). Precondition: window ≥ 1.
BoundaryCounts CountBoundaries(const RecordedStream& stream, std::span<const std::uint64_t> origins,
                               std::span<const std::size_t> changes, std::size_t window);

}  // namespace codband::replay
