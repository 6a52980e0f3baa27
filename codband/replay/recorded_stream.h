#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "codband/policy/policy.h"

namespace codband::replay {

// Recorded events in their order: who came and what was on offer. The first candidate is the one
// whose reward is known. In a stream of positives its reward is 1 and that of the others 0. In a
// log it is the one that was shown, drawn uniformly from the candidates; the rewards of the others
// are unknown. Plain data; const use from any thread.
struct RecordedStream {
  struct Event {
    UserId user = 0;
    // The range of its candidates.
    std::size_t begin = 0;
    std::size_t end = 0;
    double reward = 1;       // of the first candidate
    std::size_t number = 0;  // its place in the file, from 0, whatever the order of playing

    std::size_t candidate_count() const { return end - begin; }

    friend bool operator==(const Event&, const Event&) = default;
  };

  bool logged = false;
  std::size_t dim = 0;
  std::vector<double> features;           // row-major, one row per item
  std::vector<std::uint32_t> candidates;  // rows of items, event after event
  std::vector<Event> events;
  std::size_t user_count = 0;
  std::vector<std::uint64_t> item_ids = {};  // as in the file, one per row

  std::size_t item_count() const { return features.size() / dim; }
  // Of all events.
  double total_reward() const;
  // The expected reward of uniformly random choice: the sum of reward / candidates over events. A
  // log was itself chosen at random, so there it is the reward of the log.
  double chance() const;

  friend bool operator==(const RecordedStream&, const RecordedStream&) = default;
};

// What may be known about a stream besides what policies see: tags of its items, and where its
// events come from. Plain data; const use from any thread.

struct ItemTags {
  struct Count {
    std::uint32_t tag = 0;  // index in names
    double count = 0;

    friend bool operator==(const Count&, const Count&) = default;
  };
  std::vector<std::string> names;
  std::vector<std::vector<Count>> of_item;  // by the item's row

  friend bool operator==(const ItemTags&, const ItemTags&) = default;
};

struct EventOrigins {
  std::string file;  // where they were read from
  // By event, in the order of the stream: the user in the data set, and the group of users they
  // belong to.
  std::vector<std::uint64_t> sources;
  std::vector<std::uint64_t> groups;
};

// Interleaves the users at random; the events of each user keep their order. Deterministic.
void InterleaveUsers(RecordedStream& stream);

}  // namespace codband::replay
