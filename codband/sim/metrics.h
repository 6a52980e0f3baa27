#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "codband/policy/policy.h"

namespace codband::sim {

// How well a policy detects changes. A true change is detected by the first alarm before the user's
// next change. The delay is counted in visits of the user, 0 if the alarm came with the first
// reward after the change. Several changes between two visits of a user count as one, since no
// policy can tell them apart. Every other alarm is a false alarm. A change without an alarm is
// missed, even shortly before the end. A step is stable if no change of the user awaits its alarm.
struct ChangeMetrics {
  std::uint64_t true_changes = 0;
  std::uint64_t detected = 0;
  std::uint64_t false_alarms = 0;
  std::uint64_t stable_steps = 0;
  std::vector<std::uint32_t> delays;  // of the detected changes

  std::uint64_t missed() const { return true_changes - detected; }
  double false_alarms_per_1000() const;
  std::optional<double> median_delay() const;

  void Add(const ChangeMetrics& other);
};

// Matches alarms with true changes of all users, step by step. Not thread-safe.
class ChangeTracker {
 public:
  explicit ChangeTracker(std::size_t users) : waiting_since_(users), steps_(users) {}

  // One visit of a user (0 … users - 1): whether it was the first after a true change, and whether
  // the policy raised an alarm when it learned the reward.
  void Step(UserId user, bool changed, bool alarm);

  const ChangeMetrics& metrics() const { return metrics_; }

 private:
  // By user: the step of a change that has not been detected yet, and the number of steps.
  std::vector<std::optional<std::uint64_t>> waiting_since_;
  std::vector<std::uint64_t> steps_;
  ChangeMetrics metrics_;
};

// How well the assignment of users to models agrees with the true groups: pairwise precision and
// recall, over pairs of users at the same moment.
struct ClusterMetrics {
  std::uint64_t same_both = 0;   // pairs on one model and in one true group
  std::uint64_t same_model = 0;  // pairs on one model
  std::uint64_t same_truth = 0;  // pairs in one true group

  // Of the pairs on one model, the share in one true group; none if there is no such pair.
  std::optional<double> precision() const;
  // Of the pairs in one true group, the share on one model; none if there is no such pair.
  std::optional<double> recall() const;

  void Add(const ClusterMetrics& other);
};

// One moment, from the policy's model and the true model of each user. O(users log users).
ClusterMetrics CompareClusters(std::span<const ModelId> models, std::span<const ModelId> truth);

}  // namespace codband::sim
