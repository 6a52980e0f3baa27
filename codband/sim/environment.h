#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "codband/policy/ground_truth.h"
#include "codband/policy/policy.h"

namespace codband::sim {

// One visit: a user and the arms offered to them. The reward of every arm is drawn before a policy
// chooses, so that all policies are compared on the same draws.
struct Visit {
  UserId user = 0;
  std::vector<double> arms;     // row-major
  std::vector<ItemId> items;    // of the arms; empty: they have no ids
  std::vector<double> means;    // expected reward of each arm
  std::vector<double> rewards;  // reward of each arm, if it is chosen
};

// How a population is spread over instances of a policy that learn together (policy/shared_pool.h).
// Times are in visits of all users: at a thousand a second, the defaults are 100 ms and 5 s.
struct PartitionOptions {
  std::size_t partitions = 1;       // users are spread over them by a hash; 1: one policy for all
  std::size_t publish_min = 100;    // a register is published at the earliest after so many visits,
  std::size_t publish_max = 5'000;  // and at the latest after so many, if there is something new
  std::size_t pool_delay = 100;     // until the others have it

  bool operator==(const PartitionOptions&) const = default;
};

// A simulated population of N users. Time passes in rounds of N visits, one slot for each user; the
// environment decides whether every user visits once in a round or visitors are drawn at random.
// Everything is a function of the seed: two environments made with the same seed give the same
// visits, which is how policies are compared on identical rounds. Not thread-safe: each run has its
// own.
class Environment : public GroundTruth {
 public:
  virtual std::size_t dim() const = 0;
  virtual std::size_t user_count() const = 0;  // users are 0 … user_count - 1
  virtual std::size_t round_count() const = 0;

  // The standard deviation σ of a typical reward, for policies that take it as a parameter.
  virtual double noise() const = 0;

  // How policies are to play it.
  virtual PartitionOptions partitions() const { return {}; }

  // Starts round 0, 1, 2, …, in order: users whose period is over change.
  virtual void StartRound(std::size_t round) = 0;

  // Whether the user changed at the start of the current round, even if they do not visit in it.
  virtual bool changed(UserId user) const = 0;

  // The visit in one of the slots 0 … user_count - 1 of the current round; visit.user is the
  // visitor. Reuses the memory of `visit`.
  virtual void MakeVisit(std::size_t slot, Visit& visit) const = 0;
};

}  // namespace codband::sim
