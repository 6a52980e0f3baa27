#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "codband/base/status.h"
#include "codband/policy/policy.h"
#include "codband/sim/runner.h"

namespace codband {

// Recorded events in their order: who came, what was on offer, and which one of the candidates was
// the positive one. Plain data; const use from any thread.
struct RecordedStream {
  struct Event {
    UserId user = 0;
    // Where its candidates begin and end.
    std::size_t begin = 0;
    std::size_t end = 0;

    std::size_t candidate_count() const { return end - begin; }
  };

  std::size_t dim = 0;
  std::vector<double> features;  // row-major, one row an item
  std::vector<std::uint32_t>
      candidates;  // rows of items, event after event, the positive one first
  std::vector<Event> events;
  std::size_t user_count = 0;

  std::size_t item_count() const { return features.size() / dim; }
  // How many positives random choice takes on average: the sum of 1 / candidates over events.
  double chance() const;
};

// Reads two files of tab-separated lines:
//   features.tsv  item id, then its features, as many on every line
//   events.tsv    user id, timestamp, item ids with commas between them, the positive one first
// Ids are whole numbers; the timestamp is a number that nothing depends on: events are played in
// the order of the file. Lines may end in "\r\n".
// kInvalidArgument names the file, the line, what is wrong and what was expected; kNotFound and
// kIoError name the file. Takes time and memory proportional to the files.
Result<RecordedStream> ReadStream(const std::filesystem::path& directory);

// What one policy did with one seed.
struct ReplayRun {
  std::vector<double> reward_curve;  // positives taken up to each checkpoint
  double times_chance = 0;           // all of them, as a multiple of chance
  double changes_per_1000 = 0;       // changes that the policy detected, per 1000 events
  std::size_t models = 0;            // at the end
  double us_per_event = 0;           // processor time of choosing and learning, microseconds

  double reward() const { return reward_curve.back(); }
};

// Plays a policy that has learned nothing yet through the stream. Candidates come in a random order
// that depends on the seed and the event alone; the policy's keys are {seed, number of the event}.
// The reward is 1 for the positive one and else 0, and follows the choice at once. A function of
// its arguments, but for the timing. `progress` is called with the share done since the last call.
// Preconditions: the stream has events, and the policy its dimension.
ReplayRun PlayStream(const RecordedStream& stream, Policy& policy, std::uint64_t seed,
                     std::size_t checkpoints = 100,
                     const std::function<void(double)>& progress = {});

struct ReplayResults {
  std::string spec;  // as it was asked for
  std::vector<ReplayRun> runs;
};

struct ReplayComparison {
  std::vector<std::size_t> checkpoint_events;  // how many events were played at each checkpoint
  std::vector<ReplayResults> policies;         // in the order asked for
};

// Plays every policy on every seed, each run for itself: a policy's result does not depend on
// threads, on the other policies, or on the number of seeds. kInvalidArgument for a policy that
// cannot be made, yardsticks that need the truth among them, before anything is played.
Result<ReplayComparison> CompareOnStream(const RecordedStream& stream,
                                         const RunnerOptions& options);

}  // namespace codband
