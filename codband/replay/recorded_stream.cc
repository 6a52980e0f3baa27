#include "codband/replay/recorded_stream.h"

#include <span>
#include <unordered_map>

#include "codband/base/random.h"

namespace codband::replay {
namespace {

// Far from the purposes of policies, which use the same seed and event.
constexpr std::uint64_t kInterleavePurpose = 2001;

}  // namespace

double RecordedStream::total_reward() const {
  double sum = 0;
  for (const Event& event : events) sum += event.reward;
  return sum;
}

double RecordedStream::chance() const {
  if (logged) return total_reward();
  double sum = 0;
  for (const Event& event : events) {
    sum += event.reward / static_cast<double>(event.candidate_count());
  }
  return sum;
}

void InterleaveUsers(RecordedStream& stream) {
  // A random order of the users' turns; each turn takes its user's next event.
  std::vector<UserId> turns;
  std::unordered_map<UserId, std::vector<RecordedStream::Event>> of_user;
  for (const RecordedStream::Event& event : stream.events) {
    turns.push_back(event.user);
    of_user[event.user].push_back(event);
  }
  RandomStream({.seed = 0, .event = 0}, kInterleavePurpose).Shuffle(std::span(turns));
  std::unordered_map<UserId, std::size_t> next;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    stream.events[i] = of_user[turns[i]][next[turns[i]]++];
  }
}

}  // namespace codband::replay
