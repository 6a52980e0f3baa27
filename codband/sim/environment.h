#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "codband/policy/ground_truth.h"
#include "codband/policy/policy.h"

namespace codband::sim {

// One visit: a user comes and arms are on offer. What each of them would bring is drawn before a
// policy chooses, so that all policies meet the same luck.
struct Visit {
  UserId user = 0;
  std::vector<double> arms;     // row-major
  std::vector<double> means;    // expected rewards, one an arm
  std::vector<double> rewards;  // what the arm brings if it is taken, one an arm
};

// A simulated population. It goes from round to round; a round has as many visits as there are
// users, each in a slot of its own. Whether every user comes once a round, or some twice and some
// not at all, is up to the environment. All is a function of the seed, so that two environments
// made alike give the same visits: that is how policies are compared on identical rounds. Not
// thread-safe: each run has its own.
class Environment : public GroundTruth {
 public:
  virtual std::size_t dim() const = 0;
  virtual std::size_t user_count() const = 0;  // users are 0 … user_count - 1
  virtual std::size_t round_count() const = 0;

  // How far rewards lie from their means, about: σ, told to the policies that ask for it.
  virtual double noise() const = 0;

  // Moves on to round 0, 1, 2, …, in order: users whose time has come change.
  virtual void StartRound(std::size_t round) = 0;

  // Whether the user changed at the start of the current round, be it that the user comes or not.
  virtual bool changed(UserId user) const = 0;

  // The visit in one of the slots 0 … user_count - 1 of the current round; visit.user says who
  // comes. Uses the memory of `visit` again.
  virtual void MakeVisit(std::size_t slot, Visit& visit) const = 0;
};

}  // namespace codband::sim
