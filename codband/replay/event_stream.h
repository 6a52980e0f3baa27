#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "codband/base/random.h"
#include "codband/base/status.h"
#include "codband/data/hooks.h"
#include "codband/data/output_directory.h"

namespace codband::replay {

// Purposes of the random draws of a preparation: streams with the same seed and different purposes
// are independent.
enum class StreamDraw : std::uint64_t {
  kEvents = 3100,
  kUserOrder,
  kInterleaving,
  kCandidates,
  kUserSample,
};

inline RandomStream DrawStream(std::uint64_t seed, StreamDraw purpose, std::uint64_t event = 0) {
  return {{.seed = seed, .event = event}, static_cast<std::uint64_t>(purpose)};
}

// One event before its other candidates are drawn. Users and items are numbered from 0.
struct StreamEvent {
  std::uint32_t user;    // as policies see them
  std::uint32_t source;  // the user in the data set
  std::uint32_t item;    // the positive one
  std::int64_t time;
};

enum class StreamOrder {
  kStacked,      // one user after the other, users in random order; each user's events by time
  kInterleaved,  // users interleaved at random; each user's events by time
  kTime,         // by time
};

// Sorts the events. Ties of user and time are broken by source, then item. Users keep their
// numbers, except that kStacked with `renumber` numbers them in their new order.
void OrderEvents(StreamOrder order, std::uint64_t seed, bool renumber,
                 std::vector<StreamEvent>& events);

// Keeps a uniform sample of `count` events without replacement, in their order. Does nothing if
// there are no more than that, or if `count` is 0.
void DrawEvents(std::size_t count, std::uint64_t seed, std::vector<StreamEvent>& events);

// The items for which each source has a positive reward.
class PositiveItems {
 public:
  PositiveItems(std::size_t sources, std::span<const StreamEvent> events);

  std::span<const std::uint32_t> of(std::size_t source) const {  // ascending
    return std::span(items_).subspan(begin_[source], begin_[source + 1] - begin_[source]);
  }
  bool Has(std::size_t source, std::uint32_t item) const;

 private:
  std::vector<std::size_t> begin_;
  std::vector<std::uint32_t> items_;
};

struct EventsOptions {
  std::size_t candidates = 25;
  std::uint64_t seed = 1;
};

// Draws the candidates of every event and writes events.tsv. The positive item comes first; the
// others are drawn uniformly without replacement from the items for which the source has no
// positive reward. The draws depend on the seed and the event's number only. kInvalidArgument if a
// source has too few such items.
Status WriteEvents(std::span<const StreamEvent> events, const PositiveItems& positives,
                   std::span<const std::uint64_t> user_ids, std::span<const std::uint64_t> item_ids,
                   const EventsOptions& options, data::OutputFile& file,
                   const data::WorkPart& part);

}  // namespace codband::replay
