#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "codband/base/status.h"
#include "codband/sim/environment.h"
#include "codband/sim/reward_model.h"

namespace codband::sim {

// How users come to a new parameter when they change (1 to 3: the paper's §4.1).
enum class Setting {
  kDirichletProcess = 1,  // by a Chinese restaurant process over all assignments so far
  kFixedSet = 2,          // uniformly one of the other models - 1
  kStationary = 3,        // never
  kNovel = 4,             // ours: always to one that nobody had before
};

// Who comes in a round.
enum class VisitOrder {
  kTurn,    // every user once, in order
  kRandom,  // as many visits as there are users, each by a random user
};

// The paper's synthetic population: `pool` arms whose coordinate i is drawn N(0, (d-i)/d) and
// which are scaled to norm 1; parameters uniform on the sphere and well apart; each visit offers
// `arms` different ones of them (with pool = arms always the same); rewards xᵀθ + N(0, noise²).
// Users change independently of each other, each time after a uniform number of rounds in
// [period_min, period_max].
//
// The members below `dim` go beyond the paper; their defaults are the paper's.
struct SyntheticOptions {
  Setting setting = Setting::kFixedSet;
  std::size_t users = 100;
  std::size_t models = 10;  // parameters at the start
  std::size_t rounds = 3000;
  std::size_t period_min = 500;
  std::size_t period_max = 3000;
  double noise = 0.1;  // of the kinds of rewards that have one
  std::size_t arms = 10;
  std::size_t pool = 1000;
  std::size_t dim = 25;

  VisitOrder order = VisitOrder::kTurn;

  // Users do not jump: over a period the parameter of each turns from one to the next, on the
  // shortest way on the sphere, a little every round. Such a user counts as having the nearer of
  // the two, and as changed in the round in which that becomes the next one. So an alarm on the
  // first half of the way is a false one.
  bool drift = false;

  // About how far parameters lie apart: all of them at the same distance from a random direction,
  // and no two (setting 4: no two between which a user changes) closer than three quarters of this
  // or farther than √2 of it. Without a value they are spread over the whole sphere, at least 0.85
  // apart (0.9 in setting 1), √2 on average.
  std::optional<double> separation = {};

  RewardKind rewards = RewardKind::kGaussian;

  // The values that the paper uses for this setting.
  static SyntheticOptions Paper(Setting setting);

  // kInvalidArgument names the field, its value and what is allowed.
  Status Validate() const;
};

// kInvalidArgument if the options are not valid, or if no `models` parameters that far apart can be
// found in so few dimensions.
Result<std::unique_ptr<Environment>> MakeSynthetic(const SyntheticOptions& options,
                                                   std::uint64_t seed);

}  // namespace codband::sim
