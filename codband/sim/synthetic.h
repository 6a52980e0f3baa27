#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "codband/base/status.h"
#include "codband/sim/arm_pool.h"
#include "codband/sim/environment.h"
#include "codband/sim/reward_model.h"

namespace codband::sim {

// Which parameter users change to (1 to 3: the paper's §4.1).
enum class Setting {
  kDirichletProcess = 1,  // drawn by a Chinese restaurant process over all assignments so far
  kFixedSet = 2,          // drawn uniformly from the other models - 1
  kStationary = 3,        // users never change
  kNovel = 4,             // ours: always a new one that no user had before
};

// Who visits in a round of N slots, N the number of users.
enum class VisitOrder {
  kTurn,    // every user once, in order
  kRandom,  // a user drawn uniformly for every slot
  kZipf,    // a user drawn for every slot, the i-th with a chance that is proportional to 1/i
};

// The paper's synthetic population. `pool` arms have coordinates i drawn from N(0, (d-i)/d) and are
// scaled to norm 1; each visit offers `arms` different ones of them, drawn uniformly (with pool =
// arms always the same). Parameters are uniform on the sphere, subject to a least distance. Rewards
// are xᵀθ + N(0, noise²). Users change independently of each other, each time after a number of
// rounds drawn uniformly from [period_min, period_max].
//
// The members below `dim` go beyond the paper; their defaults are the paper's.
// A new member needs its entry in experiments/simulation_settings.cc, which does not compile
// without.
struct SyntheticOptions {
  Setting setting = Setting::kFixedSet;
  std::size_t users = 100;
  std::size_t models = 10;  // parameters at the start
  std::size_t rounds = 3000;
  std::size_t period_min = 500;
  std::size_t period_max = 3000;
  double noise = 0.1;  // standard deviation, for the kinds of rewards that have one
  std::size_t arms = 10;
  std::size_t pool = 1000;
  std::size_t dim = 25;

  VisitOrder order = VisitOrder::kTurn;

  // Gradual instead of abrupt changes: over a period a user's parameter moves from one to the next
  // along the geodesic on the sphere, a little every round. The user counts as having the nearer of
  // the two, and as changed in the round in which that becomes the next one: an alarm on the first
  // half of the way is a false alarm.
  bool drift = false;

  // Approximate distance between parameters: all of them lie at the same distance from a common
  // random direction, and no two (setting 4: no two between which a user changes) are closer than
  // three quarters of this value or farther apart than √2 of it. Without a value they are spread
  // over the whole sphere, at least 0.85 apart (0.9 in setting 1), √2 on average.
  std::optional<double> separation = {};

  RewardKind rewards = RewardKind::kGaussian;

  // Arms are items: policies see their ids, and each has an effect of its own on what a reward is
  // drawn from, N(0, this variance), for all users alike. 0: ids without effects; without a value
  // arms have no ids.
  std::optional<double> item_effects = {};
  // The same for each pair of an item and a parameter: favourites of a taste.
  std::optional<double> group_item_effects = {};

  FeatureKind features = FeatureKind::kGaussian;
  // Of clicks: the chance of an arm with fit 0. That of fit v is 1 + 4 v times as large, from 0
  // to 1. Without a value it is 0.5, and that of fit v (1 + v)/2.
  std::optional<double> click_rate = {};
  // How far users of one parameter are apart: each has their own, which differs from it by a vector
  // with about this square of the norm. Yardsticks know the common one.
  double individual = 0;
  // Rounds that an arm is in the pool before another one takes its place; 0: all.
  std::size_t item_life = 0;
  // Every visit is in one of so many contexts, drawn uniformly, which turns tastes: the features of
  // an arm are a / √2, once by themselves and once more in the place of the context, zeros in the
  // places of the others, where a are features as above, of length dim / (1 + contexts).
  std::size_t contexts = 0;

  // Users are spread over so many instances of a policy, which learn together; see
  // PartitionOptions for this and the next three.
  std::size_t partitions = 1;
  std::size_t publish_min_ms = 100;
  std::size_t publish_max_ms = 5'000;
  std::size_t pool_delay_ms = 100;

  // The values that the paper uses for this setting.
  static SyntheticOptions Paper(Setting setting);

  // kInvalidArgument names the field, its value and what is allowed.
  Status Validate() const;

  bool operator==(const SyntheticOptions&) const = default;

 private:
  Status ValidateSizes() const;
  Status ValidateRewards() const;
  Status ValidateCombinations() const;
};

// kInvalidArgument if the options are not valid, or if `models` parameters at the least distance
// cannot be placed in `dim` dimensions.
Result<std::unique_ptr<Environment>> MakeSynthetic(const SyntheticOptions& options,
                                                   std::uint64_t seed);

}  // namespace codband::sim
