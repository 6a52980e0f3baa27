#include "codband/replay/boundaries.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "codband/base/check.h"

namespace codband::replay {
namespace {

// The events of one user, numbered from 0.
struct UserEvents {
  std::size_t count = 0;
  std::uint64_t last_origin = 0;
  std::vector<std::size_t> boundaries;  // ascending
  std::vector<std::size_t> changes;     // ascending
};

// The probability that `drawn` of `all` events, drawn without replacement, include at least one of
// `special` ones.
double ChanceOfAny(std::size_t all, std::size_t special, std::size_t drawn) {
  if (special + drawn > all) return 1;
  double none = 1;
  for (std::size_t i = 0; i < special; ++i) {
    none *= static_cast<double>(all - drawn - i) / static_cast<double>(all - i);
  }
  return 1 - none;
}

BoundaryCounts CountOfUser(const UserEvents& user, std::size_t window) {
  BoundaryCounts counts{.boundaries = user.boundaries.size(), .changes = user.changes.size()};
  std::size_t covered = 0;  // events at a boundary
  std::size_t end = 0;      // of what is covered so far
  for (const std::size_t boundary : user.boundaries) {
    const std::size_t last = std::min(user.count - boundary, window) + boundary;
    covered += last - std::max(boundary, end);
    end = last;
    const auto next = std::ranges::lower_bound(user.changes, boundary);
    if (next != user.changes.end() && *next < last) ++counts.found;
    counts.found_by_chance += ChanceOfAny(user.count, last - boundary, user.changes.size());
  }
  for (const std::size_t change : user.changes) {
    const auto after = std::ranges::upper_bound(user.boundaries, change);
    if (after != user.boundaries.begin() && change - *(after - 1) < window) ++counts.hits;
  }
  const auto n = static_cast<double>(user.count);
  const auto drawn = static_cast<double>(user.changes.size());
  const double share = static_cast<double>(covered) / n;
  counts.hits_by_chance = drawn * share;
  if (user.count > 1) {
    counts.hits_variance = drawn * share * (1 - share) * (n - drawn) / (n - 1);
  }
  return counts;
}

}  // namespace

void BoundaryCounts::Add(const BoundaryCounts& other) {
  boundaries += other.boundaries;
  found += other.found;
  found_by_chance += other.found_by_chance;
  changes += other.changes;
  hits += other.hits;
  hits_by_chance += other.hits_by_chance;
  hits_variance += other.hits_variance;
}

BoundaryCounts CountBoundaries(const RecordedStream& stream, std::span<const std::uint64_t> origins,
                               std::span<const std::size_t> changes, std::size_t window) {
  CODBAND_CHECK(origins.size() == stream.events.size() && window >= 1);
  std::unordered_map<UserId, std::size_t> numbers;
  std::vector<UserEvents>
      users;  // in order of appearance, so that floating-point sums are reproducible
  auto change = changes.begin();
  for (std::size_t i = 0; i < origins.size(); ++i) {
    const auto [number, fresh] = numbers.emplace(stream.events[i].user, users.size());
    if (fresh) users.emplace_back();
    UserEvents& user = users[number->second];
    if (!fresh && user.last_origin != origins[i]) user.boundaries.push_back(user.count);
    if (change != changes.end() && *change == i) {
      user.changes.push_back(user.count);
      ++change;
    }
    user.last_origin = origins[i];
    ++user.count;
  }
  CODBAND_CHECK(change == changes.end());
  BoundaryCounts sum;
  for (const UserEvents& user : users) sum.Add(CountOfUser(user, window));
  return sum;
}

}  // namespace codband::replay
