#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "codband/replay/recorded_stream.h"

namespace codband::replay {

// Compares the changes that a policy detected on a recorded stream with the true boundaries: events
// of a user whose origin differs from that of the same user's previous event.
//
// A detected change is *at a boundary* (a hit) if it is at the boundary or at one of the user's
// next window − 1 events. A boundary is *found* if a change was detected there. Where boundaries
// are frequent, an uninformed detector is often right too: "by chance" is the expectation for a
// detector that detects as many changes of each user, at events of that user drawn uniformly
// without replacement.
struct BoundaryCounts {
  std::size_t boundaries = 0;
  std::size_t found = 0;
  double found_by_chance = 0;
  std::size_t changes = 0;  // detected
  std::size_t hits = 0;     // of them at a boundary
  double hits_by_chance = 0;
  double hits_variance = 0;  // of the hits of that detector

  void Add(const BoundaryCounts& other);
};

// `origins` has one entry per event, `changes` the numbers of the events at which a change was
// detected, ascending and unique. O(events + boundaries · window). Precondition: window ≥ 1.
BoundaryCounts CountBoundaries(const RecordedStream& stream, std::span<const std::uint64_t> origins,
                               std::span<const std::size_t> changes, std::size_t window);

}  // namespace codband::replay
