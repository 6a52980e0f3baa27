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

// What the draws of a preparation are for: streams with the same seed and another purpose are
// independent.
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

// One event before its other candidates are drawn. Numbers count users and items from 0.
struct StreamEvent {
  std::uint32_t user;    // as policies see it
  std::uint32_t source;  // who it was in the data set
  std::uint32_t item;    // the positive one
  std::int64_t time;
};

enum class StreamOrder {
  kStacked,      // one user after the other, users in random order, each one's events in time
  kInterleaved,  // users mixed at random, each one's events in time
  kTime,         // by time
};

// Puts the events in order. Events of the same user and time: by source, then item. Users keep
// their numbers, but for kStacked, where they are numbered in the order in which they come if
// `renumber`.
void OrderEvents(StreamOrder order, std::uint64_t seed, bool renumber,
                 std::vector<StreamEvent>& events);

// Keeps `count` of the events, each set of that many with the same chance, in the order they have.
// Nothing changes if there are no more, or if `count` is 0.
void DrawEvents(std::size_t count, std::uint64_t seed, std::vector<StreamEvent>& events);

// Which items every source has a positive reward for.
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

// Lines of events.tsv: user, time, item ids with commas between them. The positive item comes
// first; the others are drawn uniformly from the items that the source has no positive reward for,
// without repetition. What is drawn for an event depends on the seed and the event's number alone.
// kInvalidArgument if a source has too few such items.
Status WriteEvents(std::span<const StreamEvent> events, const PositiveItems& positives,
                   std::span<const std::uint64_t> user_ids, std::span<const std::uint64_t> item_ids,
                   const EventsOptions& options, data::OutputFile& file,
                   const data::WorkPart& part);

// Lines of features.tsv: item id, then its features.
void WriteFeatures(std::span<const std::uint64_t> item_ids, std::span<const double> features,
                   data::OutputFile& file);

}  // namespace codband::replay
