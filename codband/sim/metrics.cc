#include "codband/sim/metrics.h"

#include <algorithm>
#include <utility>

#include "codband/base/check.h"

namespace codband::sim {
namespace {

template <typename T>
std::uint64_t PairsOfEqual(std::vector<T> values) {
  std::ranges::sort(values);
  std::uint64_t pairs = 0;
  for (std::size_t first = 0; first < values.size();) {
    std::size_t last = first;
    while (last < values.size() && values[last] == values[first]) ++last;
    const std::uint64_t count = last - first;
    pairs += count * (count - 1) / 2;
    first = last;
  }
  return pairs;
}

std::optional<double> Ratio(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return std::nullopt;
  return static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

double ChangeMetrics::false_alarms_per_1000() const {
  return 1000 * Ratio(false_alarms, stable_steps).value_or(0);
}

std::optional<double> ChangeMetrics::median_delay() const {
  if (delays.empty()) return std::nullopt;
  std::vector<std::uint32_t> sorted = delays;
  std::ranges::sort(sorted);
  const std::size_t middle = sorted.size() / 2;
  if (sorted.size() % 2 == 1) return sorted[middle];
  return (static_cast<double>(sorted[middle - 1]) + sorted[middle]) / 2;
}

void ChangeMetrics::Add(const ChangeMetrics& other) {
  true_changes += other.true_changes;
  detected += other.detected;
  false_alarms += other.false_alarms;
  stable_steps += other.stable_steps;
  delays.insert(delays.end(), other.delays.begin(), other.delays.end());
}

void ChangeTracker::Step(UserId user, bool changed, bool alarm) {
  std::optional<std::uint64_t>& waiting = waiting_since_[user];
  const std::uint64_t now = steps_[user]++;
  if (changed) {
    ++metrics_.true_changes;
    waiting = now;
  }
  if (!waiting) {
    ++metrics_.stable_steps;
    metrics_.false_alarms += alarm;
  } else if (alarm) {
    ++metrics_.detected;
    metrics_.delays.push_back(static_cast<std::uint32_t>(now - *waiting));
    waiting.reset();
  }
}

std::optional<double> ClusterMetrics::precision() const { return Ratio(same_both, same_model); }
std::optional<double> ClusterMetrics::recall() const { return Ratio(same_both, same_truth); }

void ClusterMetrics::Add(const ClusterMetrics& other) {
  same_both += other.same_both;
  same_model += other.same_model;
  same_truth += other.same_truth;
}

ClusterMetrics CompareClusters(std::span<const ModelId> models, std::span<const ModelId> truth) {
  CODBAND_CHECK(models.size() == truth.size());
  std::vector<std::pair<ModelId, ModelId>> both;
  for (std::size_t u = 0; u < models.size(); ++u) both.emplace_back(models[u], truth[u]);
  return {.same_both = PairsOfEqual(std::move(both)),
          .same_model = PairsOfEqual(std::vector<ModelId>(models.begin(), models.end())),
          .same_truth = PairsOfEqual(std::vector<ModelId>(truth.begin(), truth.end()))};
}

}  // namespace codband::sim
