#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "codband/policy/ground_truth.h"
#include "codband/policy/policy.h"

namespace codband {

// One visit: a user comes, arms are on offer, and each of them has an expected reward. The reward
// of arm i is means[i] + noise, whichever policy takes it.
struct Visit {
  UserId user = 0;
  std::vector<double> arms;   // row-major
  std::vector<double> means;  // one an arm
  double noise = 0;
};

// A simulated population. It goes from round to round; in each round every user comes once. All is
// a function of the seed, so that two environments made alike give the same visits: that is how
// policies are compared on identical rounds. Not thread-safe: each run has its own.
class Environment : public GroundTruth {
 public:
  virtual std::size_t dim() const = 0;
  virtual std::size_t user_count() const = 0;  // users are 0 … user_count - 1
  virtual std::size_t round_count() const = 0;

  // Moves on to round 0, 1, 2, …, in order: users whose time has come change.
  virtual void StartRound(std::size_t round) = 0;

  // Whether the user changed at the start of the current round.
  virtual bool changed(UserId user) const = 0;

  // The user's visit in the current round. Uses the memory of `visit` again.
  virtual void MakeVisit(UserId user, Visit& visit) const = 0;
};

}  // namespace codband
