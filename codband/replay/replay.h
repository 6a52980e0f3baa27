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

namespace codband::replay {

// Recorded events in their order: who came and what was on offer. The first candidate is the one
// that something is known of. In a stream of positives it brought 1 and the others nothing. In a
// log it is the one that was shown, drawn uniformly from the candidates; it brought its reward, and
// what the others would have brought nobody knows. Plain data; const use from any thread.
struct RecordedStream {
  struct Event {
    UserId user = 0;
    // Where its candidates begin and end.
    std::size_t begin = 0;
    std::size_t end = 0;
    double reward = 1;       // of the first candidate
    std::size_t number = 0;  // its place in the file, from 0, in whichever order events are played

    std::size_t candidate_count() const { return end - begin; }
  };

  bool logged = false;
  std::size_t dim = 0;
  std::vector<double> features;           // row-major, one row an item
  std::vector<std::uint32_t> candidates;  // rows of items, event after event
  std::vector<Event> events;
  std::size_t user_count = 0;
  std::vector<std::uint64_t> item_ids = {};  // as in the file, one a row

  std::size_t item_count() const { return features.size() / dim; }
  // Of all events.
  double total_reward() const;
  // What random choice brings on average: the sum of reward / candidates over events, but for a log
  // that of the log itself, which was chosen at random.
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

// The same for a log:
//   log.tsv       user id, timestamp, item shown, its reward (0 or 1), item ids with commas between
//                 them, the shown one among them
// kInvalidArgument also if nothing in it was rewarded.
Result<RecordedStream> ReadLog(const std::filesystem::path& directory);

// Mixes the users at random, each one's events staying in their order. Always in the same way.
void InterleaveUsers(RecordedStream& stream);

// How many models a run describes at most.
inline constexpr std::size_t kPopularModels = 12;

// What one policy did with one seed.
struct ReplayRun {
  std::vector<double> reward_curve;   // taken up to each checkpoint
  std::vector<double> matched_curve;  // events that counted up to each checkpoint; all but in logs
  double times_chance = 0;            // the reward, of a log for each event that counted, as a
                                      // multiple of chance; NaN if none counted
  double changes_per_1000 = 0;        // changes that the policy detected, per 1000 events it
                                      // learned from
  std::size_t models = 0;             // at the end
  double us_per_event = 0;            // processor time of choosing and learning, microseconds
  // The numbers of the events after which a change was detected, ascending.
  std::vector<std::size_t> changes = {};
  // Where models are shared: those that most users are on at the end, the most popular one first.
  std::vector<ModelDescription> popular_models = {};

  double reward() const { return reward_curve.back(); }
  double matched() const { return matched_curve.back(); }
  // Reward for each event that counted: the click rate of a log. NaN if none counted.
  double mean_reward() const { return reward() / matched(); }
  // Its standard error, were the events independent: of 0/1 rewards.
  double mean_reward_error() const;
};

// Plays a policy that has learned nothing yet through the stream. Candidates come in a random order
// that depends on the seed and the event alone; the policy's keys are {seed, number of the event}.
// The reward follows the choice at once. Of a stream of positives it is 1 for the positive one and
// else 0. Of a log it is known only where the policy chooses what was shown: such events count, and
// at all others the policy learns nothing and nothing is counted. As the log chose uniformly at
// random, the policy meets the same as it would have met live, and its reward for each event that
// counts is an unbiased estimate (Li, Chu, Langford & Wang, WSDM 2011, Theorem 1).
// A function of its arguments, but for the timing. `progress` is called with the share done since
// the last call.
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
  // What random choice has by then on average; of a log, the log's own reward.
  std::vector<double> checkpoint_chance;
  std::vector<ReplayResults> policies;  // in the order asked for
};

// Plays every policy on every seed, each run for itself: a policy's result does not depend on
// threads, on the other policies, or on the number of seeds. kInvalidArgument for a policy that
// cannot be made, yardsticks that need the truth among them, before anything is played.
Result<ReplayComparison> CompareOnStream(const RecordedStream& stream,
                                         const sim::RunnerOptions& options);

}  // namespace codband::replay
