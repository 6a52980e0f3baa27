#pragma once

#include <cstddef>
#include <span>

#include "codband/policy/policy.h"

namespace codband {

// What only a simulation knows. The yardstick policies (oracle-*) use it to measure how much of a
// learner's regret comes from not knowing it.
class GroundTruth {
 public:
  virtual ~GroundTruth() = default;

  // The true parameters so far, numbered from 0; the number may grow, a parameter never changes.
  virtual std::size_t model_count() const = 0;
  virtual std::span<const double> parameter(std::size_t model) const = 0;

  // The parameter that this user has now; while a user drifts from one to another, the nearer one.
  virtual std::size_t model_of(UserId user) const = 0;

  // The hazard rate: the probability that a user changes between two of their visits, on average.
  virtual double hazard() const = 0;
};

}  // namespace codband
