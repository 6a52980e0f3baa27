#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "codband/base/status.h"
#include "codband/sim/environment.h"

namespace codband {

// How users come to a new parameter when they change (the paper's §4.1).
enum class Setting {
  kDirichletProcess = 1,  // by a Chinese restaurant process over all assignments so far
  kFixedSet = 2,          // uniformly one of the other models - 1
  kStationary = 3,        // never
};

// The paper's synthetic population: `pool` arms whose coordinate i is drawn N(0, (d-i)/d) and
// which are scaled to norm 1; parameters uniform on the sphere and well apart; each visit offers
// `arms` different ones of them; rewards xᵀθ + N(0, noise²). Users change independently of each
// other, each time after a uniform number of rounds in [period_min, period_max].
struct SyntheticOptions {
  Setting setting = Setting::kFixedSet;
  std::size_t users = 100;
  std::size_t models = 10;  // parameters at the start
  std::size_t rounds = 3000;
  std::size_t period_min = 500;
  std::size_t period_max = 3000;
  double noise = 0.1;
  std::size_t arms = 10;
  std::size_t pool = 1000;
  std::size_t dim = 25;

  // The values that the paper uses for this setting.
  static SyntheticOptions Paper(Setting setting);

  // kInvalidArgument names the field, its value and what is allowed.
  Status Validate() const;
};

// kInvalidArgument if the options are not valid, or if no `models` parameters that far apart can be
// found in so few dimensions.
Result<std::unique_ptr<Environment>> MakeSynthetic(const SyntheticOptions& options,
                                                   std::uint64_t seed);

}  // namespace codband
